package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// lessons is what came of teaching many names.
type lessons struct {
	sent, answered, failed, late int64
	unanswered                   int // names for which no question was answered
	left                         int // addresses that left their set meanwhile
	took                         time.Duration
	unstored                     int // wildcards that did not have all of their names in time
}

func (l lessons) rows(f *figure) {
	f.row("questions of pods before, wildcard by wildcard", "%d sent, %d answered, %d failed, %d not sent in time, in %v", l.sent, l.answered, l.failed, l.late, l.took.Round(time.Second))
	f.row("names without an answer to any of them", "%d", l.unanswered)
	f.row("addresses that left their set meanwhile", "%d", l.left)
	f.row(fmt.Sprintf("wildcards without all of their names in the custom resource within %v", storedIn), "%d", l.unstored)
}

// storedIn is how long the custom resource of a wildcard is waited for before the next one is taught.
const storedIn = 20 * time.Second

// teach asks for the names of one wildcard after the other, all of one before any of the next, and waits until they are stored: what is
// learned together is written together. Nobody asks for the names of the first ones meanwhile but the resolver.
func (s site) teach(t cluster.T, groups, each int, name func(int) string) lessons {
	var out lessons
	begun := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	leavers := make(chan int, 1)
	go func() { leavers <- s.leavers(ctx) }()
	defer cancel()
	for g := range groups {
		var names []string
		for i := range each {
			names = append(names, name(g*each+i))
		}
		left, err := s.teachGroup(&out, names)
		if err != nil {
			t.Fatalf("%v", err)
		}
		out.unanswered += left
		pattern := fmt.Sprintf("*.g%d.%s", g, suffix)
		if err := rig.Within(storedIn, func() error { return s.complete(pattern, each-left) }); err != nil {
			out.unstored++
			t.Logf("%s: %v", pattern, err)
		}
	}
	cancel()
	out.left, out.took = <-leavers, time.Since(begun)
	return out
}

// leavers looks every second, until ctx ends, for addresses that are in no set any more, and counts them.
func (s site) leavers(ctx context.Context) int {
	seen, left := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for ctx.Err() == nil {
		if now, err := s.inSets(); err == nil {
			for a := range seen {
				if !now[a] {
					left[a] = true
				}
			}
			for a := range now {
				seen[a] = true
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return len(left)
}

// complete tells whether the status of a wildcard has so many names.
func (s site) complete(pattern string, want int) error {
	obj, err := s.Name(pattern)
	if err != nil {
		return err
	}
	if have := len(obj.Status.ResolvedNames); have < want {
		return fmt.Errorf("%d of %d names are stored", have, want)
	}
	return nil
}

// teachGroup asks for some names until all were answered once, as fast as this machine can take it with much to do besides, and
// tells how many were not.
func (s site) teachGroup(out *lessons, names []string) (int, error) {
	var missing sync.Map
	for _, n := range names {
		missing.Store(n, true)
	}
	l := load{told: func(name string) { missing.Delete(name) }}
	left := names
	for range 6 {
		err := l.run(context.Background(), s.pod, []netip.AddrPort{s.DNS[0].At, s.DNS[1].At}, 100, func() (next string) {
			if len(left) > 0 {
				next, left = left[0], left[1:]
			}
			return next
		})
		if err != nil {
			return 0, err
		}
		left = nil
		missing.Range(func(name, _ any) bool { left = append(left, name.(string)); return true })
		if len(left) == 0 {
			break
		}
	}
	out.sent, out.answered = out.sent+l.sent.Load(), out.answered+l.answered.Load()
	out.failed, out.late = out.failed+l.failed.Load(), out.late+l.late.Load()
	return len(left), nil
}
