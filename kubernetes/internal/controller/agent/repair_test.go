package agent

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

func (e *engine) begun() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.begun
}

// TestRepairDelay checks that writes of the short path do not cause a pass each time, and that changes of objects are
// not delayed.
func TestRepairDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, w := start(t, d)
		settle()
		before := e.begun()
		for i := range 50 {
			if err := program(e, www, time.Minute, fmt.Sprintf("192.0.2.%d", i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20*time.Millisecond - d.trip - d.lag)
		}
		if n := e.begun() - before; n < 5 || n > 7 {
			t.Errorf("%d passes in a second of writes", n)
		}
		settle()
		if err := program(e, www, time.Minute, "192.0.2.100"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(minPassInterval) // a pass began with that
		if err := program(e, www, time.Minute, "192.0.2.101"); err != nil {
			t.Fatal(err)
		}
		w.set(e, []enforce.Pattern{www}, learned{www: {addr("192.0.2.200")}})
		time.Sleep(minPassInterval + d.trip)
		synctest.Wait()
		found := false
		for _, a := range d.set(www) {
			found = found || a == addr("192.0.2.200")
		}
		if !found {
			t.Error("a change of objects waited for repairDelay")
		}
	})
}

// TestRepairsInTime edits a set by hand at any moment during and after a pass that is as slow as in a large cluster. It
// must be repaired within a second.
func TestRepairsInTime(t *testing.T) {
	for at := time.Duration(0); at < 800*time.Millisecond; at += 40 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			d := newTables()
			d.passTrip = 200 * time.Millisecond
			e, w := start(t, d)
			settle()
			settle()
			w.set(e, []enforce.Pattern{www}, learned{www: {addr("192.0.2.1")}})
			time.Sleep(at)
			if _, err := d.write(func() {
				d.rows.Sets[0].Addresses = append(slices.Clone(d.rows.Sets[0].Addresses),
					"203.0.113.1")
			}); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			for slices.Contains(d.set(www), addr("203.0.113.1")) {
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("edited after %v, it was put right after %v", at, took)
			}
		})
	}
}
