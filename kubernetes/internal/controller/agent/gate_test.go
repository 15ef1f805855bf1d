package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// TestGate checks that a pass waits for requests that block a reply, but not indefinitely.
func TestGate(t *testing.T) {
	for _, c := range []struct {
		name      string
		lag, want time.Duration // time until the switch confirms, and until a pass begins
	}{
		{"hold", 30 * time.Millisecond, 31 * time.Millisecond},
		{"hold that runs out", time.Second, maxGateWait},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newTables()
				e, w := start(t, d)
				settle()
				settle()
				d.lag = c.lag
				programmed := make(chan error, 1)
				go func() { programmed <- program(e, www, time.Minute, "192.0.2.1") }()
				synctest.Wait()
				before, begun := e.begun(), time.Now()
				w.set(e, []enforce.Pattern{www}, learned{www: {addr("192.0.2.200")}})
				for e.begun() == before {
					time.Sleep(time.Millisecond)
				}
				if took := time.Since(begun); took < c.want || took > c.want+time.Millisecond {
					t.Errorf("a pass began after %v, want %v", took, c.want)
				}
				if err := <-programmed; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestGateForASet checks that a request that waits for a pass does not block that pass.
func TestGateForASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTables()
		e, _ := start(t, d)
		settle()
		settle()
		d.mu.Lock()
		d.rows.Sets = nil // by hand
		d.mu.Unlock()
		begun := time.Now()
		if err := program(e, www, time.Minute, "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took >= maxGateWait {
			t.Errorf("it took %v", took)
		}
	})
}
