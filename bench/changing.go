package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/nameplane/nameplane/test/peers"
)

const changeRate = 1000 // per second

// load is a pattern of changes during a measurement of queries.
type load struct {
	name    string
	batch   int  // changes in a request; 0: there are none
	control bool // the server does not get them: the control
}

// sourceResult is what a source of changes did, and its own CPU time for each change in milliseconds. dnsperf loses
// that time, not the server: where dnsperf limits the queries, they lose that share of its core and nothing else.
type sourceResult struct {
	changes
	Each float64
}

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // it cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// loads returns the patterns to measure. The number of changes matters, not the number of requests, so both are
// varied. The source of changes shares dnsperf's core and slows it down, which the server does not cause. In the
// control the source answers its requests itself, without work. The control includes the cost of that answer, so the
// true ratio is a little lower than the ratio to the control.
func loads() []load {
	list := []load{{name: "no changes"}}
	for _, n := range []int{1, 10, 100} {
		name := fmt.Sprintf("batches of %d", n)
		if n == 1 {
			name = "a request for each"
		}
		list = append(list, load{name, n, false}, load{name + ", not applied (control)", n, true})
	}
	return list
}

// changing measures queries to nameplane while changes are applied.
func (b *bench) changing(ctx context.Context) error {
	if b.nameplane == "" {
		return nil
	}
	zone, err := writeZone(b.dir, zoneNames)
	if err != nil {
		return err
	}
	file, err := writeQueries(b.dir, mix(askedFor))
	if err != nil {
		return err
	}
	s, err := peers.Nameplane(b.nameplane).Start(ctx, []peers.Zone{zone},
		peers.Options{Core: serverCore, Ready: time.Minute})
	if err != nil {
		return err
	}
	defer s.Stop()
	perf := dnsperf{file: file, transport: "udp", length: b.seconds(5, 2)}
	rounds := 5
	if b.quick {
		rounds = 1
	}
	all := loads()
	if _, err := perf.measure(ctx, s); err != nil { // warms the caches
		return err
	}
	results := make([][]figures, len(all))
	applied := make([][]sourceResult, len(all))
	for range rounds {
		for i, l := range all {
			f, c, err := whileChanging(ctx, perf, s, l)
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			// The source of changes is not a disturbance. The rounds are interleaved, so a real disturbance affects all of
			// them.
			f.others = 0
			results[i], applied[i] = append(results[i], f), append(applied[i], c)
		}
	}
	b.report.table(fmt.Sprintf("nameplane over UDP while %d changes per second are applied by REST", changeRate),
		changingRows(all, results, applied))
	return b.changingAtLimit(ctx, s, file)
}

// changingRows compares each load with no changes, and with its control, which is the next row. The server's CPU time
// for a change is computed with the CPU time of a query without changes.
func changingRows(all []load, results [][]figures, applied [][]sourceResult) [][]string {
	rows := [][]string{{"changes", "queries/s", "ratio to no changes", "ratio to the control", "use of its core",
		"CPU µs/query", "CPU ms/change", "client CPU ms/change", "changes/s", "p50", "p99", "errors"}}
	quiet := medians(results[0])
	for i, l := range all {
		f, c := medians(results[i]), medianSource(applied[i])
		control, each, source := "-", "-", "-"
		if l.batch > 0 {
			source = fmt.Sprintf("%.2f", c.Each)
		}
		if l.batch > 0 && !l.control {
			control = ratio(f.qps, medians(results[i+1]).qps)
			each = fmt.Sprintf("%.2f", (f.cpu-quiet.cpu)*f.qps/c.PerSec/1000)
		}
		row := []string{l.name, fmt.Sprintf("%.0f", f.qps), ratio(f.qps, quiet.qps), control,
			fmt.Sprintf("%.0f %%", f.busy), fmt.Sprintf("%.2f", f.cpu), each, source}
		rows = append(rows, append(row, c.row("")[1:]...))
	}
	return rows
}

// medianSource returns the medians of several results of a source.
func medianSource(list []sourceResult) sourceResult {
	pick := func(of func(sourceResult) float64) float64 {
		values := make([]float64, len(list))
		for i, c := range list {
			values[i] = of(c)
		}
		return median(values)
	}
	return sourceResult{changes{
		PerSec: pick(func(c sourceResult) float64 { return c.PerSec }),
		P50:    time.Duration(pick(func(c sourceResult) float64 { return float64(c.P50) })),
		P99:    time.Duration(pick(func(c sourceResult) float64 { return float64(c.P99) })),
	}, pick(func(c sourceResult) float64 { return c.Each })}
}

// whileChanging starts the source shortly before dnsperf, and the source ends after it.
func whileChanging(ctx context.Context, perf dnsperf, asked *peers.Server, l load) (figures, sourceResult, error) {
	var c sourceResult
	if l.batch == 0 {
		f, err := perf.measure(ctx, asked)
		return f, c, err
	}
	s := spec{Zone: zoneName, Rate: changeRate, Batch: l.batch, Length: perf.length + 2*time.Second}
	if !l.control {
		token, err := asked.Token()
		if err != nil {
			return figures{}, c, err
		}
		s.URL, s.Token = asked.HTTP, token
	}
	var out bytes.Buffer
	source, err := startSource(ctx, s, &out)
	if err != nil {
		return figures{}, c, err
	}
	time.Sleep(time.Second) // the source lists the record sets first
	f, err := perf.measure(ctx, asked)
	if wait := source.Wait(); err == nil {
		err = wait
	}
	if err != nil {
		return f, c, err
	}
	err = json.Unmarshal(out.Bytes(), &c)
	if err == nil && c.Errors > 0 {
		err = fmt.Errorf("%d changes failed, the first with %s", c.Errors, c.First)
	}
	return f, c, err
}

// startSource runs this program as the source of changes, on the clients' core.
func startSource(ctx context.Context, s spec, out *bytes.Buffer) (*exec.Cmd, error) {
	in, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	source := exec.CommandContext(ctx, "taskset", "-c", clientCore, self, generateArg)
	source.Stdin, source.Stdout, source.Stderr = bytes.NewReader(in), out, os.Stderr
	return source, source.Start()
}
