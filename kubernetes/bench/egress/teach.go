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

// teaching is the result of teaching many names.
type teaching struct {
	sent, answered, failed, late int64
	unanswered                   int // names without an answer to any query
	left                         int // addresses that left their set meanwhile
	took                         time.Duration
	unstored                     int // wildcards that did not have all of their names in time
}

func (l teaching) rows(f *figure) {
	f.row("queries of pods before that, one wildcard after the other",
		"%d sent, %d answered, %d failed, %d not sent in time, in %v",
		l.sent, l.answered, l.failed, l.late, l.took.Round(time.Second))
	f.row("names without an answer to any of them", "%d", l.unanswered)
	f.row("addresses that left their set meanwhile", "%d", l.left)
	f.row(fmt.Sprintf("wildcards without all of their names in the custom resource within %v", storedIn), "%d", l.unstored)
}

// storedIn is the maximum wait for the custom resource of a wildcard before the next one is taught.
const storedIn = 20 * time.Second

// teach queries the names of one wildcard after the other, and waits until they are stored: names that are learned
// together are written together. Meanwhile only the resolver queries the names of the first wildcards.
func (s site) teach(t cluster.T, groups, each int, name func(int) string) teaching {
	var out teaching
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

// leavers checks every second, until ctx ends, for addresses that are no longer in any set, and counts them. A read
// that fails is skipped: an address that has left is still missing a second later.
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

// complete returns an error unless the status of a wildcard has the given number of names.
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

// teachGroup queries names until each was answered once, as fast as this busy machine allows. It returns the number of
// names without an answer.
func (s site) teachGroup(out *teaching, names []string) (int, error) {
	var missing sync.Map
	for _, n := range names {
		missing.Store(n, true)
	}
	l := load{onAnswer: func(name string) { missing.Delete(name) }}
	left := names
	// Lost datagrams are asked again. Six rounds bound the time if a server does not answer at all.
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
