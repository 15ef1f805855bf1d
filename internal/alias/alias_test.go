package alias_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/publish"
)

const cdn = `
	zone example.net.
	cdn.example.net. 60 A 203.0.113.1, 203.0.113.2
	cdn.example.net. 120 AAAA 2001:db8::1
`

func TestFirstFlatten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"latency 10ms")
		r.zone("example.org.")
		before := r.serial("example.org.")
		r.must(r.put("example.org. 300 ALIAS cdn.example.net."))
		r.want("example.org.", "PENDING CREATE", "")
		if got := r.serial("example.org."); got != before {
			t.Errorf("the ALIAS alone stepped the serial from %d to %d", before, got)
		}
		r.wait(time.Second)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
		if got := r.serial("example.org."); got != before+1 {
			t.Errorf("serial %d, want one step from %d", got, before)
		}
		r.must(r.drop("example.org.", "ALIAS"))
		r.want("example.org.", "none", "")
		if got := r.serial("example.org."); got != before+2 {
			t.Errorf("serial %d after the deletion, want one step from %d", got, before+1)
		}
		r.net.Forget()
		r.wait(time.Hour)
		if n := r.asked("cdn.example.net."); n > 0 {
			t.Errorf("%d queries for a target that nobody has", n)
		}
	})
}

func TestZoneDeletion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		z := r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.", "www.example.org. 300 ALIAS cdn.example.net.")
		r.wait(0)
		r.want("www.example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
		key := r.key("www.example.org.")
		r.must(r.commit(func(tx *publish.Tx) error { return tx.DeleteZone(z.ID) }))
		r.wait(0)
		if _, ok := r.State(key); ok {
			t.Error("an ALIAS outlives its zone")
		}
	})
}

// TestMetrics checks that the metrics count aliases by state, and failing aliases by cause.
func TestMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"fault servfail broken.example.net.")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.", "a.example.org. 300 ALIAS gone.example.net.",
			"b.example.org. 300 ALIAS gone.example.net.", "c.example.org. 300 ALIAS broken.example.net.")
		r.wait(time.Second)
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(r.Collectors()...)
		families, err := reg.Gather()
		r.must(err)
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				if n := m.GetGauge().GetValue(); n > 0 && len(m.Label) == 1 {
					got[f.GetName()+" "+m.Label[0].GetValue()] = n
				}
			}
		}
		want := map[string]float64{"nameplane_alias_failing nxdomain": 2, "nameplane_alias_failing servfail": 1,
			"nameplane_alias_records ACTIVE": 1, "nameplane_alias_records ERROR": 3}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
