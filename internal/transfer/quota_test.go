package transfer

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// TestQuota checks that neither a whole zone nor a difference exceeds the record quota of the project, and that the
// copy is kept unchanged.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := func(n int) (out []string) {
			for i := range n {
				out = append(out, a(fmt.Sprintf("h%d", i), "192.0.2.1"))
			}
			return out
		}
		m := &master{}
		m.set(1, hosts(8)...) // 10 sets and records, with SOA and NS
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		g.wantState(m, 1)
		step := func(serial uint32, records []string, sets, most int, want uint32, reason string) {
			t.Helper()
			err := g.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
				return tx.PutObject(store.KindQuota, "p", map[string]int{"zone_recordsets": sets, "zone_records": most})
			})
			if err != nil {
				t.Fatal(err)
			}
			m.set(serial, records...)
			g.Refresh(g.zone.ID, false)
			time.Sleep(time.Second)
			g.wantState(m, want)
			if s := g.State(g.zone.ID); !strings.Contains(s.Reason, reason) || (s.Reason == "") != (reason == "") {
				t.Errorf("serial %d: the owner reads %q, want %s", serial, s.Reason, reason)
			}
		}
		step(2, hosts(9), -1, 10, 1, "zone_records")
		step(3, hosts(9), 10, -1, 1, "zone_recordsets")
		step(4, hosts(9), 11, 11, 4, "")
		step(5, hosts(7), 5, 5, 5, "") // smaller, but still over a quota that was set later
		step(6, hosts(100), -1, 20, 5, "zone_records")
	})
}

// TestReason checks that the reason for the zone's owner is the same for an open and a closed port.
func TestReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{down: true}
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		if s := g.State(g.zone.ID); s.Reason != noDetails || !strings.Contains(s.Problem, "no answer") {
			t.Errorf("the owner reads %q, an administrator %q", s.Reason, s.Problem)
		}
	})
}
