package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// changes is the result of a number of writers.
type changes struct {
	Done     int
	Errors   int
	First    string // the first error, for the report
	PerSec   float64
	P50, P99 time.Duration
}

// writers make one change after another. Each begins when its last change was acknowledged, or at a common rate.
type writers struct {
	count  int
	length time.Duration
	rate   int // changes per second of all together; 0 is as fast as possible
	calls  int // number of changes; 0 is as many as fit into length
}

// run calls change with a different number each time, so that every change changes something.
func (w writers) run(change func(writer, n int) error) changes {
	var next atomic.Int64
	taken := make([][]time.Duration, w.count)
	failed := make([][]error, w.count)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range w.count {
		wg.Go(func() {
			for {
				n := next.Add(1)
				if w.rate > 0 {
					due := time.Duration(n) * time.Second / time.Duration(w.rate)
					if due > w.length {
						return // return before the wait, which would count as time
					}
					time.Sleep(time.Until(begin.Add(due)))
				}
				if w.calls > 0 && int(n) > w.calls || w.calls == 0 && time.Since(begin) > w.length {
					return
				}
				start := time.Now()
				if err := change(i, int(n)); err != nil {
					failed[i] = append(failed[i], err)
					continue
				}
				taken[i] = append(taken[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	return summary(slices.Concat(taken...), slices.Concat(failed...), time.Since(begin))
}

// summary computes rate and percentiles. Failed changes count only as errors.
func summary(taken []time.Duration, failed []error, length time.Duration) changes {
	c := changes{Done: len(taken), Errors: len(failed), PerSec: float64(len(taken)) / length.Seconds()}
	if len(failed) > 0 {
		c.First = failed[0].Error()
	}
	if len(taken) > 0 {
		slices.Sort(taken)
		c.P50, c.P99 = taken[len(taken)/2], taken[len(taken)*99/100]
	}
	return c
}

// row returns the cells that every table about changes has.
func (c changes) row(who string) []string {
	return []string{who, fmt.Sprintf("%.0f", c.PerSec), millis(c.P50), millis(c.P99), fmt.Sprint(c.Errors)}
}

// millis keeps two digits: the shortest change takes some tenths of a millisecond.
func millis(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
}

// newAddress returns a different address for each number.
func newAddress(n int) string {
	return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)
}
