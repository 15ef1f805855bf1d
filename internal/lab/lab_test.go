package lab_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// walk resolves a name from the root of the lab.
func walk(t *testing.T, l *lab.Lab, name string) *iterate.Trace {
	t.Helper()
	opts := iterate.Options{Hints: l.Hints, Probe: "probe", Budget: resolve.NewBudget(400, 1000, nil),
		MaxTime: 20 * time.Second, Timeouts: []time.Duration{2 * time.Second, 3 * time.Second}}
	it := &iterate.Iterator{Exchanger: &resolve.Client{Dial: l.Dial, AsIs: true}, Options: opts}
	trace, err := it.Run(t.Context(), iterate.Question{Name: dnsname.MustParse(name), Type: rr.TypeA})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestWalk(t *testing.T) {
	check := func(t *testing.T, l *lab.Lab) {
		t.Helper()
		trace := walk(t, l, "www.example.org.")
		if trace.Result != iterate.Answer || len(trace.Chain) != 2 || len(trace.Unfinished) != 0 {
			t.Errorf("www.example.org. is %v over %v, unfinished %v", trace.Result, trace.Chain, trace.Unfinished)
		}
	}
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l, err := lab.Start(ctx, lab.Options{Memory: true})
			if err != nil {
				t.Fatal(err)
			}
			check(t, l)
			cancel()
			if err := l.Wait(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) // until the client has closed its connections
		})
	})
	t.Run("sockets", func(t *testing.T) {
		dir := t.TempDir()
		l := start(t, lab.Options{Dir: dir})
		check(t, l)
		other, err := lab.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		check(t, other)
	})
}

// start starts a lab that ends with the test.
func start(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l, err := lab.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := l.Wait(); err != nil {
			t.Error(err)
		}
	})
	return l
}
