package secure_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
)

// TestSimnet validates zones that simnet signs: a signer independent of the other tests.
func TestSimnet(t *testing.T) {
	const ok = "example.test. secure; "
	tests := []struct{ name, sign, ds, q, want string }{
		{"healthy", "sign example.test.", "ds example.test. 60", "www.example.test. A",
			"secure; " + ok + "www.example.test. answer secure"},
		{"no name", "sign example.test.", "ds example.test. 60", "nope.example.test. A",
			"secure; " + ok + "nope.example.test. nxdomain secure"},
		{"no type", "sign example.test.", "ds example.test. 60", "www.example.test. TXT",
			"secure; " + ok + "www.example.test. nodata secure"},
		{"not signed", "", "", "www.example.test. A",
			"insecure; example.test. insecure no-ds; www.example.test. answer insecure above"},
		{"no DS", "sign example.test.", "", "www.example.test. A",
			"insecure; example.test. insecure no-ds; www.example.test. answer insecure above"},
		{"SEC01", "sign example.test. key=other", "ds example.test. 60", "www.example.test. A",
			"bogus; example.test. bogus no-key; www.example.test. answer bogus above"},
		{"SEC02", "", "ds example.test. 60", "www.example.test. A",
			"bogus; example.test. bogus unsigned; www.example.test. answer bogus above"},
		{"SEC03", "sign example.test. expired", "ds example.test. 60", "www.example.test. A",
			"bogus; example.test. bogus expired; www.example.test. answer bogus above"},
		{"SEC04", "sign example.test. noproof", "ds example.test. 60", "nope.example.test. A",
			"bogus; " + ok + "nope.example.test. nxdomain bogus denial"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(1)
				net.MustServer("192.0.2.1",
					"zone .\n. 60 NS a.root.\na.root. 60 A 192.0.2.1\ntest. 60 NS ns.test.\nns.test. 60 A 192.0.2.11\nsign .\n"+
						"ds test. 60")
				net.MustServer("192.0.2.11",
					"zone test.\ntest. 60 NS ns.test.\nns.test. 60 A 192.0.2.11\nexample.test. 60 NS ns.example.test.\n"+
						"ns.example.test. 60 A 192.0.2.21\nsign test.\n"+tt.ds)
				net.MustServer("192.0.2.21",
					"zone example.test.\nexample.test. 60 NS ns.example.test.\nns.example.test. 60 A 192.0.2.21\n"+
						"www.example.test. 60 A 203.0.113.1\n"+tt.sign)
				anchor, err := secure.ParseAnchor(simnet.Anchor(dnsname.Root))
				if err != nil {
					t.Fatal(err)
				}
				opts := iterate.Options{Hints: []iterate.Host{{Name: dnsname.MustParse("a.root."), Glue: addrs("192.0.2.1")}},
					Probe:  "probe",
					Budget: resolve.NewBudget(400, 10, nil), MaxTime: 20 * time.Second, Timeouts: []time.Duration{2 * time.Second}}
				trace, err := (&iterate.Iterator{Exchanger: net, Options: opts}).Run(t.Context(), question(tt.q))
				if err != nil {
					t.Fatal(err)
				}
				if got := summary(validate(trace, []secure.Anchor{anchor}, time.Now())); strings.TrimSpace(got) != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}
