package report_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// TestRows checks the unusual values in the tables of a report.
func TestRows(t *testing.T) {
	expires := func(d time.Duration) func(*explain.Facts) {
		return func(f *explain.Facts) { f.Registrations[0].Dates.Expires = at.Add(d) }
	}
	for _, test := range []struct {
		what   string
		change func(*explain.Facts)
		want   string
	}{
		{"expires soon", expires(49 * time.Hour), "expires    2026-01-03, in 2 days"},
		{"expires at once", expires(5 * time.Hour), "expires    2026-01-01, within a day"},
		{"has expired", expires(-40 * 24 * time.Hour), "expires    2025-11-22, 40 days ago"},
		{"a server says that the name is not there", func(f *explain.Facts) {
			f.Servers[0].Class = iterate.NXDomain
		}, "192.0.2.1  answers  "},
		{"the NS records of the zone were not read", func(f *explain.Facts) {
			f.Zones[0].ChildNS = nil
		}, "TTL of the NS records: 1 day at the parent, not known in the zone"},
		{"the zone has them with TTL 0", func(f *explain.Facts) {
			f.Zones[0].ChildNS[0].TTL = 0
		}, "1 day at the parent, 0 s in the zone"},
	} {
		f, _ := story(explain.Scan)
		test.change(f)
		var out bytes.Buffer
		if err := report.Make(f, nil).Text(&out, report.TextOptions{}); err != nil ||
			!strings.Contains(out.String(), test.want) {
			t.Errorf("%s: no %q, %v:\n%s", test.what, test.want, err, out.String())
		}
	}
}

// TestDig checks that the shown command repeats the query.
func TestDig(t *testing.T) {
	f := &explain.Facts{
		Answers: []explain.Answer{{Evidence: []int{0}}, {Evidence: []int{1}, Subnet: netip.MustParsePrefix("192.0.2.0/24")}},
		Caches:  []explain.Cache{{Samples: []explain.Sample{{Evidence: []int{2}, Recurse: true, NoCheck: true}}}},
	}
	for _, transport := range []string{"udp", "tcp", "udp", "udp"} {
		f.Exchanges = append(f.Exchanges,
			iterate.Exchange{Server: netip.MustParseAddr("192.0.2.1"), Transport: transport, EDNS: len(f.Exchanges) < 3,
				Question: iterate.Question{Name: name("www.example.org"), Type: rr.TypeA}})
	}
	want := []string{
		"dig @192.0.2.1 www.example.org. A +norecurse +dnssec",
		"dig @192.0.2.1 www.example.org. A +norecurse +subnet=192.0.2.0/24 +tcp +dnssec",
		"dig @192.0.2.1 www.example.org. A +cdflag",
		"dig @192.0.2.1 www.example.org. A +norecurse +noedns",
	}
	var got []string
	for _, e := range report.Make(f, []explain.Finding{{Status: explain.Fail, Evidence: []int{0, 1, 2, 3}}}).Evidence {
		got = append(got, e.Dig)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
