package mec_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/mec"
)

// collect reads n events and returns them as text.
func collect(t testing.TB, w *mec.Watcher, n int) []string {
	t.Helper()
	var out []string
	for len(out) < n {
		events, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			out = append(out, fmt.Sprintf("%d %s %s/%s %s", ev.Seq, ev.Kind, ev.Rule.App, ev.Rule.ID, ev.Rule.State))
		}
	}
	return out
}

func TestEvents(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "a a.example.com 192.0.2.1")
	g.create("app2", "b b.example.com 192.0.2.1 INACTIVE")
	if err := g.tryCreate("app2", "c a.example.com 192.0.2.2"); err == nil {
		t.Fatal("no conflict")
	}
	if err := g.setState("app1", "a", mec.Inactive); err != nil {
		t.Fatal(err)
	}
	g.delete("app1", "a")
	all := []string{"1 CREATED app1/a ACTIVE", "2 CREATED app2/b INACTIVE", "3 UPDATED app1/a INACTIVE",
		"4 DELETED app1/a INACTIVE"}
	check := func(w *mec.Watcher, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, collect(t, w, len(want))); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	check(g.Watch("", 0), all)
	check(g.Watch("", 2), all[2:])
	check(g.Watch("app2", 0), all[1:2])
	g = g.again(mec.Options{}) // the numbers continue
	check(g.Watch("", 3), all[3:])
	g.create("app1", "a a.example.com 192.0.2.1")
	check(g.Watch("", 4), []string{"5 CREATED app1/a ACTIVE"})

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := g.Watch("", 5).Next(ctx)
	wantIs(t, err, context.Canceled)
}

func TestEventGap(t *testing.T) {
	g := start(t, mec.Options{})
	g.KeepEvents(4)
	slow := g.Watch("", 1)
	for i := range 10 {
		g.create("app1", fmt.Sprintf("r%d n%d.example.com 192.0.2.1", i, i))
	}
	for _, w := range []*mec.Watcher{slow, g.Watch("", 100)} {
		_, err := w.Next(t.Context())
		var gap *mec.GapError
		if !errors.As(err, &gap) || gap.Oldest != 7 {
			t.Errorf("Next = %v, want a gap up to 7", err)
		}
		if got := collect(t, w, 4); !strings.HasPrefix(got[0], "7 ") {
			t.Errorf("after the gap: %v", got)
		}
	}
	if got := collect(t, g.Watch("", 0), 4); !strings.HasPrefix(got[0], "7 ") {
		t.Errorf("from the beginning: %v", got)
	}
}

// TestWatchWhileWriting checks that all watchers see the events of many writers in the same order.
func TestWatchWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, mec.Options{})
		const writers, each = 4, 10
		var wg sync.WaitGroup
		got := make([][]string, 3)
		for i := range got {
			wg.Go(func() { got[i] = collect(t, g.Watch("", 0), writers*each) })
		}
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if err := g.tryCreate(fmt.Sprintf("app%d", w),
						fmt.Sprintf("r%d n%d-%d.example.com 192.0.2.1", i, w, i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for i := 1; i < len(got); i++ {
			if diff := cmp.Diff(got[0], got[i]); diff != "" {
				t.Errorf("two watchers saw different feeds:\n%s", diff)
			}
		}
		for i, line := range got[0] {
			if !strings.HasPrefix(line, fmt.Sprintf("%d ", i+1)) {
				t.Fatalf("event %d is %q", i+1, line)
			}
		}
	})
}
