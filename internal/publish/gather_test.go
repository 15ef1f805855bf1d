package publish_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestTogether: with one processor, edits of callers who are ready at the same time share one step.
func TestTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var steps []int // edits of each step
	p := open(t, publish.Options{Committed: func(c []store.Change) { steps = append(steps, len(c)) }})
	z := newZone(t, p, "example.org.")
	var number atomic.Int64
	create := func() error {
		s := set(t, z.ID, fmt.Sprintf("n%d.example.org.", number.Add(1)), "A", 0, "192.0.2.1")
		return p.Commit(context.Background(), actor, func(tx *publish.Tx) error { _, err := tx.CreateSet(s); return err })
	}
	together := 0
	const tries, callers = 20, 8
	for range tries {
		if err := create(); err != nil { // alone, so that nobody waits for as many as there were last time
			t.Fatal(err)
		}
		steps = nil
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				if err := create(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if cmp.Equal(steps, []int{callers}) {
			together++
		}
	}
	if together < tries/2 { // not always: a goroutine can be stopped anywhere
		t.Errorf("%d callers shared one step in %d of %d tries, last %v", callers, together, tries, steps)
	}
}

// TestAfter: a caller has the zone as its edit left it.
func TestAfter(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	www := set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.1")
	for _, create := range []bool{true, false} {
		var left *zone.Zone
		if err := p.Commit(context.Background(), actor, func(tx *publish.Tx) (err error) {
			if left, err = tx.After(z.ID); err == nil && create {
				_, err = tx.CreateSet(www)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		var want zone.Zone
		if err := p.View(func(v store.View) (err error) { want, err = v.Zone(z.ID); return err }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, *left, cmpopts.EquateComparable(dnsname.Name{})); diff != "" {
			t.Errorf("the zone with a set created %v (-stored +left):\n%s", create, diff)
		}
		if left.Serial == z.Serial {
			t.Errorf("the serial is still %d", z.Serial)
		}
	}
}
