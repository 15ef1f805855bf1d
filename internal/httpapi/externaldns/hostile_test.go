package externaldns_test

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
)

// TestEmptyEndpoints sends the elements that take the most memory for each byte of a body. A body of n bytes reserves
// 32 n of the memory budget. The empty endpoints took 200 n.
func TestEmptyEndpoints(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // garbage is not the subject
	s := newServer(t, publish.DefaultQuotas())
	s.zone(s.token, "e.test.")
	short := repeat(20_000, func(i int) string {
		return fmt.Sprintf(`{"dnsName":"%x.e.test","targets":["::"],"recordType":"AAAA"}`, i)
	})
	unknown := repeat(100_000, func(i int) string { return fmt.Sprintf(`"%x":0`, i) })
	empty := repeat(400_000, func(int) string { return "{}" })
	for name, tt := range map[string]struct{ path, body string }{
		"empty, adjusted": {"/adjustendpoints", "[" + empty + "]"},
		"empty, applied":  {"/records", `{"create":[` + empty + `]}`},
		"short, adjusted": {"/adjustendpoints", "[" + short + "]"},
		"short, applied":  {"/records", `{"delete":[` + short + `],"create":[` + short + `]}`},
		"properties":      {"/records", `{"create":[{"dnsName":"e.test","providerSpecific":[` + empty + `]}]}`},
		"unknown keys":    {"/records", `{` + unknown + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			peak := measurePeak(func() { s.send(s.webhook, s.token, "POST", tt.path, tt.body) })
			if most := 32 * len(tt.body); peak > most {
				t.Errorf("a body of %d bytes took %d bytes of memory, more than %d", len(tt.body), peak, most)
			}
		})
	}
}

// repeat returns the elements of a JSON array or object.
func repeat(n int, element func(int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = element(i)
	}
	return strings.Join(list, ",")
}

// measurePeak returns how many bytes the heap grew while fn ran.
func measurePeak(fn func()) int {
	heap := func() int {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	runtime.GC()
	base, peak := heap(), 0
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, heap())
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	fn()
	close(stop)
	<-done
	return peak - base
}

// TestQuotaComesFirst sends changes that exceed a quota, and whose last one is a conflict. The quota must refuse them
// before the conflict is found: while the changes are made, all other projects wait.
func TestQuotaComesFirst(t *testing.T) {
	q := publish.DefaultQuotas()
	q.ZoneRecordsets = 6
	s := newServer(t, q)
	zone := s.zone(s.token, "example.org.") // it has an SOA and an NS set
	s.recordSet(zone, "taken.example.org.", "A", "192.0.2.1")
	endpoint := func(name string) string {
		return `{"dnsName":"` + name + `.example.org","targets":["192.0.2.2"],"recordType":"A"}`
	}
	for _, n := range []int{4, 7} { // more than the zone has room for, and more than the quota
		body := `{"create":[` + repeat(n, func(i int) string { return endpoint(fmt.Sprint("n", i)) }) + `,` +
			endpoint("taken") + `]}`
		if w := s.apply(http.StatusInternalServerError, body); !strings.Contains(w.Body.String(),
			"Quota exceeded for zone_recordsets") {
			t.Errorf("%d endpoints: %s", n, w.Body)
		}
	}
	s.apply(http.StatusNoContent, `{"create":[`+endpoint("a")+`,`+endpoint("b")+`,`+endpoint("c")+`]}`)
	// Deletions make room, in any order.
	s.apply(http.StatusNoContent, `{"create":[`+endpoint("d")+`],"delete":[`+endpoint("a")+`]}`)
}
