package system

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// explained compares three verdicts: those of nameplane-egress explain, ovn-trace, and a packet.
func explained(s *story) {
	s.sys.Authority.Fresh(s.ns+".test", 10*time.Minute)
	s.firewall("deny bad."+s.ns+".test", "allow web."+s.ns+".test tcp/80", "allow *."+s.ns+".test tcp/443 udp/443",
		"deny 192.0.2.0/25",
		"allow 192.0.2.0/24 udp/80 tcp/80", "allow all."+s.ns+".test", "deny 2001:db8::/32",
		"deny 198.0.0.0/8 tcp/80 tcp/443", "deny 192.0.2.128/25")
	dst := []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.207"),
		netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("2001:db8:ffff::1"),
		netip.MustParseAddr("198.51.100.77")}
	for _, label := range []string{"bad", "web", "all", "one", "two", "three"} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			m, _, err := rig.Ask(s.pod, s.server, s.name(label), qtype, soon)
			if err != nil || len(rig.Addrs(m)) != 1 {
				s.Fatalf("%s: %v %v", label, m, err)
			}
			dst = append(dst, rig.Addrs(m)[0])
		}
	}
	s.storedAll("*."+s.ns+".test", dst[5:])
	tuples, err := s.sys.Judge(s.sys.Nodes[0], s.pod, dst, rand.New(rand.NewPCG(1, 2)), 200)
	if err != nil {
		s.Fatal(err)
	}
	passed := 0
	for _, t := range tuples {
		if t.Explained != t.Traced || t.Explained != t.Passed {
			s.Errorf("%s", t)
		}
		if t.Passed {
			passed++
		}
	}
	s.Logf("%d tuples, of which %d passed", len(tuples), passed)

	r, err := s.sys.Explain(s.ns, s.name("web")+":80")
	if err != nil {
		s.Fatal(err)
	}
	for _, a := range r.Answers {
		if a.Action != "Allow" || a.Rule == nil || *a.Rule != 1 || len(a.Nodes) != 2 || !a.Nodes[0].Programmed ||
			!a.Nodes[1].Programmed {
			s.Errorf("explain says %+v", a)
		}
	}
	if len(r.InForce) != 2 || len(r.Silent) != 0 {
		s.Errorf("explain says that the rules are in force on %v, and not yet on %v", r.InForce, r.Silent)
	}
	if len(r.Answers) != 2 {
		s.Errorf("explain answers for %d addresses, want 2: %+v", len(r.Answers), r)
	}
}
