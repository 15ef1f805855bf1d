package hostile

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestManyLists has a tenant ask for lists that take long, over many connections, while another tenant works. Each
// change of the other tenant must succeed, and the lists are answered or refused with a time to wait. The test checks
// that all of them end, and logs how long the changes took. BenchmarkBesideHostile and TestBesideEach check that time.
func TestManyLists(t *testing.T) {
	const clients, changes = 64, 60
	b := besiege(t, unit(t))
	if status, message := b.send(b.hostile, "text/dns", bytes.NewReader(zoneFile("lists.example.org.", 19_000))); status !=
		"COMPLETE" {
		t.Fatalf("import: %s %s", status, message)
	}
	stop := make(chan struct{})
	var lists sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(stop)
		lists.Wait()
	})
	defer end()
	for range clients {
		lists.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := b.Call(http.MethodGet, "/v2/recordsets?data=*1*&sort_key=updated_at&limit=1000", nil,
					"X-Auth-Token: "+b.hostile)
				if err != nil || !r.OK() && (r.Status != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "") {
					t.Errorf("a list: %d %.200s %v", r.Status, r.Body, err)
					return
				}
			}
		})
	}
	var took []time.Duration
	for i := range changes {
		start := time.Now()
		b.must(b.victim, b.zone+"/recordsets", map[string]any{"name": fmt.Sprintf("n%d.victim.example.org.", i), "type": "A",
			"records": []string{"192.0.2.1"}}, new(struct{}))
		took = append(took, time.Since(start))
		time.Sleep(20 * time.Millisecond)
	}
	end()
	slices.Sort(took)
	t.Logf("%d changes beside %d clients that list: p50 %v, at most %v", changes, clients, took[changes/2],
		took[changes-1])
}
