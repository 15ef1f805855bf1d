package mec_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/mec"
)

// BenchmarkCalls measures each call with 10,000 applications of 10 rules in the store, and reports the 99th percentile.
func BenchmarkCalls(b *testing.B) {
	const apps, rules = 10_000, 10
	g := start(b, mec.Options{})
	var wg sync.WaitGroup
	for w := range 64 { // concurrent, so that commits share an fsync
		wg.Go(func() {
			for a := w; a < apps; a += 64 {
				var list []mec.Rule
				for i := range rules {
					list = append(list, rule(b, "", fmt.Sprintf("r%d n%d.app%d.example.com 192.0.2.%d", i, i, a, i+1)))
				}
				if _, err := g.Replace(b.Context(), actor, fmt.Sprintf("app%d", a), list, nil); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	b.Logf("%d MiB of heap with %d rules", mem.HeapAlloc>>20, apps*rules)

	app := func(i int) string { return fmt.Sprintf("app%d", i*7919%apps) }
	state := func(i int) mec.State { return []mec.State{mec.Inactive, mec.Active}[i/apps%2] }
	for name, call := range map[string]func(i int) error{
		"list": func(i int) error { _, err := g.Rules(app(i)); return err },
		"get":  func(i int) error { _, err := g.Rule(app(i), "r3"); return err },
		"update": func(i int) error {
			_, err := g.Update(b.Context(), actor, app(i), "r3", func(r mec.Rule) (mec.Rule, error) {
				ttl := uint32(i)
				r.TTL = &ttl
				return r, nil
			})
			return err
		},
		"states": func(i int) error { _, err := g.SetStates(b.Context(), actor, app(i), state(i), nil); return err },
		"create and terminate": func(i int) error {
			if _, err := g.Create(b.Context(), actor, rule(b, fmt.Sprintf("new%d", i), "r new.example.com 192.0.2.1"),
				nil); err != nil {
				return err
			}
			_, err := g.Terminate(b.Context(), actor, fmt.Sprintf("new%d", i))
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				begin := time.Now()
				if err := call(i); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
