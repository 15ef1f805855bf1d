package iterate_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// TestListedParent lists a server of the parent for the child zone, which it does not have. Its only reply is a
// referral when classified for the parent, and lame when classified for the child.
func TestListedParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const script, www = "set example.test. 60 NS ns1.example.test., ns1.nic.test.", "www.example.test. A"
		net := internet(map[string]string{"192.0.2.11": script, "192.0.2.12": script})
		trace := walk(t, net, www, iterate.Options{})
		if got, want := classes(trace, "test.", "example.test. A"), "11 udp referral, 12 udp referral"; got != want {
			t.Errorf("for the parent: %s, want %s", got, want)
		}
		if got, want := classes(trace, "example.test.", www), "11 udp upward, 21 udp answer, 22 udp answer"; got != want {
			t.Errorf("for the child: %s, want %s", got, want)
		}
		asked := map[string]int{}
		for _, q := range net.History() {
			asked[q.Server.String()+" "+q.Name.String()+" "+q.Type.String()+q.Transport.String()]++
		}
		for q, n := range asked {
			if n > 1 {
				t.Errorf("%s was asked %d times", q, n)
			}
		}
	})
}

// TestLongLoop has server names that form a loop over three zones.
func TestLongLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const script = "one.test. 60 NS ns.two.test.\ntwo.test. 60 NS ns.three.test.\nthree.test. 60 NS ns.two.test."
		trace := walk(t, internet(map[string]string{"192.0.2.11": script, "192.0.2.12": script}), "www.one.test. A",
			iterate.Options{})
		want := []string{"unknown", "., test., one.test., two.test. quick, three.test. quick",
			"NS-LOOP three.test. ns.two.test.",
			"ns.two.test. of one.test.: could not be looked up", "ns.three.test. of two.test.: could not be looked up",
			"ns.two.test. of three.test.: loop"}
		if diff := cmp.Diff(want, summary(trace)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestGivenUp has a server that never replies. Later questions are not sent to it and do not count against it.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := "latency 700ms"
		for i := range 8 {
			slow += fmt.Sprintf("\nc%d.example.test. 60 CNAME c%d.example.test.", i, i+1)
		}
		net := internet(map[string]string{"192.0.2.21": slow + "\nc8.example.test. 60 A 203.0.113.8",
			"192.0.2.22": "fault timeout"})
		trace := walk(t, net, "c0.example.test. A", iterate.Options{MaxTime: time.Minute})
		dead := netip.MustParseAddr("192.0.2.22")
		unknown := 0
		for _, e := range trace.Exchanges {
			if e.Server == dead && e.Class == iterate.Unknown {
				unknown++
			}
		}
		if trace.Health(dead) != iterate.Down || unknown == 0 || trace.Result != iterate.Answer || len(trace.Unfinished) > 0 {
			t.Errorf("%s, %d questions not sent, result %s, unfinished %v", trace.Health(dead), unknown, trace.Result,
				trace.Unfinished)
		}
	})
}
