package gather_test

import (
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/simnet"
)

// late is the script of a server with the previous version of the zone and of www.
const late = "serial example.test. 2026010100\nset www.example.test. 300 A 203.0.113.8\n"

// finding returns the first finding of a check.
func finding(f *explain.Facts, id string) explain.Finding {
	c, _ := check.Find(id)
	for _, x := range c.Judge(f) {
		return x
	}
	return explain.Finding{}
}

func TestSettle(t *testing.T) {
	const caughtUp = late +
		"at 2s serial example.test. 2026010101\nat 2s set www.example.test. 300 A 203.0.113.1, 203.0.113.2"
	tests := []struct {
		name, script string
		most         time.Duration // longest duration of the scan
		kind         explain.Kind
		was          uint32
		settled      bool
		soa, nam     explain.Status
	}{
		{"the same", "", 0, explain.Analyze, 0, false, explain.Pass, explain.Pass},
		{"behind", late, 0, explain.Analyze, 0, true, explain.Fail, explain.Fail},
		{"in transit", caughtUp, 0, explain.Analyze, 2026010100, true, explain.Pass, explain.Pass},
		{"in transit, compared", caughtUp, 0, explain.Compare, 2026010100, true, explain.Pass, explain.Pass},
		{"in transit, scanned", caughtUp, 0, explain.Scan, 2026010100, true, explain.Pass, ""},
		{"no time to wait", caughtUp, 4 * time.Second, explain.Analyze, 0, false, explain.Fail, explain.Fail},
		{"of another primary", "example.test. 3600 SOA ns.other.test. hostmaster.other.test. 7 7200 3600 1209600 300", 0,
			explain.Analyze, 0, false, explain.NotKnown, explain.Pass},
		{"silent by then", late + "at 2s fault timeout *", 0, explain.Analyze, 0, false, explain.Fail, explain.Fail},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t, map[string]string{"192.0.2.22": tt.script}, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				g.Options.MaxTime = tt.most
				f := scan(t, g, tt.kind)
				s := server(t, f, "example.test.", "192.0.2.22")
				if s.Was != tt.was || (f.Settled > 0) != tt.settled {
					t.Errorf("it was at %d, asked again after %v", s.Was, f.Settled)
				}
				if tt.settled && (f.Settled < 3*time.Second || f.Settled > 4*time.Second) {
					t.Errorf("asked again after %v", f.Settled)
				}
				if x := finding(f, "SOA03"); x.Status != tt.soa {
					t.Errorf("%s: %s", x.Status, x.Words)
				}
				if x := finding(f, "NAM11"); tt.nam != "" && x.Status != tt.nam {
					t.Errorf("%s: %s", x.Status, x.Words)
				}
				if x := finding(f, "NAM13"); tt.nam != "" && x.Status != explain.Pass {
					t.Errorf("%s", x.Words)
				}
				// A comparison makes resolvers send queries of their own.
				if n := len(net.History()); tt.kind != explain.Compare && (n > 150 || n != f.Queries) {
					t.Errorf("%d queries, the facts say %d", n, f.Queries)
				}
			})
		})
	}
}

// scan gathers facts of www.example.test, or of its domain.
func scan(t *testing.T, g *gather.Gatherer, kind explain.Kind) *explain.Facts {
	t.Helper()
	var f *explain.Facts
	var err error
	switch kind {
	case explain.Scan:
		f, err = g.Scan(t.Context(), "example.test")
	case explain.Analyze:
		f, err = g.Analyze(t.Context(), "www.example.test", nil)
	default:
		f, err = g.Compare(t.Context(), "www.example.test", nil)
	}
	return must(t, f, err)
}
