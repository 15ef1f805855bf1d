//go:build soak

package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestManyZones creates 100,000 zones of one tenant, under the limits of the files in deploy. Another tenant must be
// able to work, and all zones must exist after a kill.
func TestManyZones(t *testing.T) {
	const all = 100_000
	b := besiege(t, unit(t))
	b.Must(http.MethodPatch, "/v2/quotas/"+b.project, `{"zones": -1}`, nil, "X-Auth-All-Projects: true")
	start := time.Now()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < all && !b.Ended(); i = next.Add(1) - 1 {
				r, err := b.Call(http.MethodPost, "/v2/zones",
					map[string]any{"name": fmt.Sprintf("z%d.example.", i), "email": "a@example.org"},
					"X-Auth-Token: "+b.hostile)
				if err != nil || !r.OK() {
					t.Errorf("zone %d: %d %s %v", i, r.Status, r.Body, err)
					return
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d zones in %v", all, time.Since(start))
	b.alive("100,000 zones")
	start = time.Now()
	r, err := b.Call(http.MethodGet, "/v2/zones", nil, "X-Auth-Token: "+b.victim)
	if err != nil || !r.OK() || strings.Count(string(r.Body), `"email"`) != 1 {
		t.Fatalf("the victim's list: %d %s %v", r.Status, r.Body, err)
	}
	t.Logf("a list of one zone among them in %v", time.Since(start))
	start = time.Now()
	b.Restart()
	t.Logf("served again after %v", time.Since(start))
	for i := range all {
		if i%97 == 0 || i == all-1 {
			if a := b.Ask(fmt.Sprintf("z%d.example.", i), dns.TypeSOA); len(a.Answer) != 1 {
				t.Fatalf("zone %d is lost: %v", i, a)
			}
		}
	}
	b.alive("the restart")
}
