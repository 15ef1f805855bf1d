package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/enforce"
)

func (e *engine) begun() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.begun
}

// TestLull: what the short way wrote is not looked for at once each time, and what objects say does not wait for it.
func TestLull(t *testing.T) {
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
		time.Sleep(between) // a pass began with that
		if err := program(e, www, time.Minute, "192.0.2.101"); err != nil {
			t.Fatal(err)
		}
		w.set(e, []enforce.Pattern{www}, learned{www: {addr("192.0.2.200")}})
		time.Sleep(between + d.trip)
		synctest.Wait()
		found := false
		for _, a := range d.set(www) {
			found = found || a == addr("192.0.2.200")
		}
		if !found {
			t.Error("a change of objects waited for the lull")
		}
	})
}
