package system

import (
	"errors"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// upgradeNamesFirst checks the first upgrade order: CoreDNS has the plugin before custom resources exist. Names that
// pods queried meanwhile are allowed when the resources appear, without another query.
func upgradeNamesFirst(s *story) {
	addrs := s.sys.Authority.New()
	s.sys.Authority.Say(s.name("www"), rig.Answer{Addrs: addrs, TTL: time.Minute})
	old := []*rig.Part{s.sys.Manager, s.sys.Nodes[0].Agent, s.sys.Nodes[1].Agent}
	for _, p := range old {
		p.Stop()
	}
	rules := append([]string{"allow www." + s.ns + ".test"}, rig.DenyRest...)
	if err := s.sys.SetFirewall(s.ns, rules...); err != nil {
		s.Fatal(err)
	}
	s.reaches(s.pod, s.server, s.name("www"), dns.TypeA) // nothing is enforced yet
	for _, p := range old {
		if err := p.Start(); err != nil {
			s.Fatal(err)
		}
	}
	if err := s.sys.Settled(soon); err != nil {
		s.Fatal(err)
	}
	s.within(soon, "the address was allowed without a question", func() error {
		got, err := s.sys.Nodes[0].Learned(s.name("www"))
		if err == nil && !slices.Contains(got, addrs[0]) {
			err = errors.New("it is not in the set")
		}
		return err
	})
	s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	s.dropped(s.pod, s.sys.Authority.New()[0])
}

// upgradeNamesLast checks the second upgrade order: rules are enforced while a CoreDNS has no plugin yet. It answers as
// before, and its answers stay denied until it is replaced. Addresses that other replicas learned are allowed for all.
func upgradeNamesLast(s *story) {
	s.sys.Authority.Fresh(s.ns+".test", time.Minute)
	s.firewall()
	stock, err := s.sys.Corefile("", s.sys.Authority.Addr)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.sys.Answers(stock); err != nil {
		s.Fatal(err)
	}
	known := s.reaches(s.pod, s.server, s.name("known"), dns.TypeA)
	if got := s.reaches(s.pod, stock.At, s.name("known"), dns.TypeA); got != known {
		s.Errorf("the old CoreDNS says %s, want %s", got, known)
	}
	m, _, err := rig.Ask(s.pod, stock.At, s.name("www"), dns.TypeA, soon)
	if err != nil || len(rig.Addrs(m)) != 1 {
		s.Fatalf("%v %v", m, err)
	}
	s.dropped(s.pod, rig.Addrs(m)[0])
	stock.Stop()
	// A switch that has just dropped a packet to an address may continue a moment longer, from its cache.
	replaced := s.replica("")
	s.within(soon, "what was closed was reached", func() error {
		got := rig.Try(s.pod, replaced.At, s.name("www"), dns.TypeA, soon)
		return errors.Join(got.Problem, got.Dialed.Err)
	})
	s.reaches(s.pod, replaced.At, s.name("other"), dns.TypeA)
}
