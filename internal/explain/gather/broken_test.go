package gather_test

import (
	"fmt"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/simnet"
)

// broken is a zone with nine faults: a lame server, different servers at parent and child, different glue, different
// versions, a bad mail address, three wrong times, and an alias without a target.
var broken = map[string]string{
	"192.0.2.11": brokenDelegation, "192.0.2.12": brokenDelegation,
	"192.0.2.41": brokenZone, // ns1.bad.test, as listed by the child
	"192.0.2.42": brokenZone + "serial bad.test. 5",
	"192.0.2.43": "fault refused *", // lame.bad.test
}

const (
	brokenDelegation = `
		bad.test. 172800 NS ns1.bad.test., lame.bad.test.
		ns1.bad.test. 172800 A 192.0.2.42
		lame.bad.test. 172800 A 192.0.2.43
	`
	brokenZone = `
		zone bad.test.
		bad.test. 86400 SOA ns1.bad.test. host\@master.bad.test. 4 7200 7300 3600 86400
		bad.test. 3600 NS ns1.bad.test., ns3.bad.test.
		ns1.bad.test. 3600 A 192.0.2.41
		ns3.bad.test. 3600 A 192.0.2.42
		www.bad.test. 300 CNAME nowhere.other.test.
	`
)

func TestBroken(t *testing.T) {
	run(t, broken, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		f, err := g.Scan(t.Context(), "bad.test")
		f = must(t, f, err)
		if n := len(net.History()); n > 150 || len(f.Unfinished) > 0 {
			t.Errorf("%d queries, unfinished %v", n, f.Unfinished)
		}
		z := (&iterate.Trace{Zones: f.Zones}).Zone(dnsname.MustParse("bad.test."))
		parent, child := fmt.Sprint(z.ParentNS[0].NS, z.ParentNS[0].TTL), fmt.Sprint(z.ChildNS[0].NS, z.ChildNS[0].TTL)
		if parent != "[lame.bad.test. ns1.bad.test.] 172800" || child != "[ns1.bad.test. ns3.bad.test.] 3600" {
			t.Errorf("the parent lists %s, the child %s", parent, child)
		}
		if s := server(t, f, "bad.test.", "192.0.2.43"); s.Class != iterate.LameRefused ||
			fmt.Sprint(s.Listed) != "[parent]" {
			t.Errorf("the lame server: %s, %v", s.Class, s.Listed)
		}
		for _, h := range z.Hosts {
			if h.Name.String() == "ns1.bad.test." && fmt.Sprint(h.Glue, h.Found) != "[192.0.2.42] [192.0.2.41]" {
				t.Errorf("glue %v, found %v", h.Glue, h.Found)
			}
		}
		old, recent := server(t, f, "bad.test.", "192.0.2.41").SOA, server(t, f, "bad.test.", "192.0.2.42").SOA
		if old == nil || recent == nil || old.Serial != 4 || recent.Serial != 5 {
			t.Fatalf("versions: %+v, %+v", old, recent)
		}
		got := fmt.Sprint(old.RName, old.Refresh, old.Retry, old.Expire, old.TTL, old.Minimum)
		if got != `host\@master.bad.test. 7200 7300 3600 86400 86400` {
			t.Errorf("SOA %s", got)
		}
		if d := f.Denials[0]; d.Zone != f.Zone || d.TTL != 86400 || d.Minimum != 86400 {
			t.Errorf("names are denied with %+v", d)
		}

		f = analyze(t, g, "www.bad.test")
		if len(f.Chain) != 1 || f.Chain[0].Agree != 2 || f.Chain[0].Servers != 2 || f.Outcomes[0].Result != iterate.NXDomain {
			t.Errorf("%+v, %s", f.Chain, outcomes(f))
		}
	})
}
