// Package system tests the egress firewall by name end to end: with a real API server, OVN, CoreDNS, all our parts, and
// packets of pods. Start with TestSystem, which lists the cases in their order.
package system

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

const (
	soon  = rig.Soon
	never = 500 * time.Millisecond // for packets that must not pass
)

// story is the environment of one subtest: its own namespace, a suffix for all its names, and a pod.
type story struct {
	*testing.T
	sys    *rig.System
	ns     string
	pod    *cluster.Pod
	server netip.AddrPort // the first replica
}

// TestSystem runs all subtests on one system: starting it takes longer than most of them.
func TestSystem(t *testing.T) {
	cluster.Need(t)
	sys := rig.Start(t, rig.Options{Nodes: 2, Bin: os.Getenv("NAMEPLANE_BIN")})
	for _, s := range []struct {
		name string
		run  func(*story)
	}{
		{"first", firstPacket},
		{"families", bothFamilies},
		{"ports", portsOfRules},
		{"shared", sharedName},
		{"edits", editedRules},
		{"repairs", repairedByHand},
		{"leaves", namespaceLeaves},
		{"later", laterPod},
		{"hostnet", hostNetwork},
		{"service", throughService},
		{"explained", explained},
		{"changes", changingAddress},
		{"streams", streamsSurvive},
		{"datagrams", datagramsSurvive},
		{"holdoff", withoutHold},
		{"stopped", agentStopped},
		{"apidown", apiServerDown},
		{"upgrade1", upgradeNamesFirst},
		{"upgrade2", upgradeNamesLast},
	} {
		t.Run(s.name, func(t *testing.T) {
			begun := time.Now()
			defer func() {
				if t.Failed() {
					t.Log(sys.Logs())
				}
			}()
			s.run(&story{T: t, sys: sys, ns: s.name, pod: sys.Pod(sys.Nodes[0], s.name, "web"), server: sys.DNS[0].At})
			// All parts must agree on the names before the next subtest.
			if err := sys.Firewall(s.name); err != nil {
				t.Error(err)
			}
			t.Logf("took %v", time.Since(begun).Round(time.Millisecond))
		})
	}
}

// name returns a name that no other subtest has.
func (s *story) name(label string) string { return fmt.Sprintf("%s.%s.test.", label, s.ns) }

// firewall allows all names of the subtest that are one label deep, and nothing else. With rules, it sets those.
func (s *story) firewall(rules ...string) {
	s.Helper()
	if rules == nil {
		rules = append([]string{"allow *." + s.ns + ".test"}, rig.DenyRest...)
	}
	if err := s.sys.Firewall(s.ns, rules...); err != nil {
		s.Fatal(err)
	}
}

// reaches queries a name and connects to its address, which must succeed with the first SYN.
func (s *story) reaches(pod *cluster.Pod, server netip.AddrPort, name string, qtype uint16) netip.Addr {
	s.Helper()
	got := rig.Try(pod, server, name, qtype, soon)
	if got.Problem != nil || got.Dialed.Err != nil || got.Dialed.Lost != 0 {
		s.Errorf("%s: %v; connecting to %s: %v with %d SYNs lost", name, got.Problem, got.Addr, got.Dialed.Err,
			got.Dialed.Lost)
	}
	return got.Addr
}

// dropped checks that nothing comes back from an address.
func (s *story) dropped(pod *cluster.Pod, to netip.Addr) {
	s.Helper()
	if d := pod.Dial(netip.AddrPortFrom(to, 80), never); d.Conn != nil || d.Refused() {
		s.Errorf("%s is reached, or says no itself: %v", to, d.Err)
		if d.Conn != nil {
			_ = d.Conn.Close()
		}
	}
}

func (s *story) within(limit time.Duration, what string, try func() error) {
	s.Helper()
	begun := time.Now()
	if err := rig.Within(limit, try); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
	s.Logf("%s after %v", what, time.Since(begun).Round(time.Millisecond))
}

// firstPacket has a pod that queries a new name and connects at once.
func firstPacket(s *story) {
	s.sys.Authority.Fresh(s.ns+".test", 30*time.Second)
	s.firewall()
	s.sys.Authority.Fresh("elsewhere.test", 30*time.Second)
	var all []netip.Addr
	for i := range 40 {
		all = append(all, s.reaches(s.pod, s.sys.DNS[i%2].At, rig.Name(i, s.ns+".test"), dns.TypeA))
	}
	far := s.sys.Pod(s.sys.Nodes[1], s.ns, "far")
	if err := s.sys.Settled(soon); err != nil {
		s.Fatal(err)
	}
	for i := range 10 { // both query at once, at the same replica and at different ones, on two nodes
		done := make(chan struct{})
		name := s.name(fmt.Sprintf("both%d", i))
		go func() {
			defer close(done)
			s.reaches(far, s.sys.DNS[i%2].At, name, dns.TypeA)
		}()
		all = append(all, s.reaches(s.pod, s.sys.DNS[0].At, name, dns.TypeA))
		<-done
	}
	for _, name := range []string{"www.elsewhere.test.", "deep.below." + s.ns + ".test.", s.ns + ".test."} {
		m, _, err := rig.Ask(s.pod, s.server, name, dns.TypeA, soon)
		if err != nil || len(rig.Addrs(m)) != 1 {
			s.Fatalf("%s: %v %v", name, m, err)
		}
		s.dropped(s.pod, rig.Addrs(m)[0])
	}
	for _, to := range s.sys.DNS[0].Pod.Addrs { // the firewall does not apply to pods
		if !s.pod.Ping(to, soon) {
			s.Errorf("no answer from the pod at %s", to)
		}
	}
	s.storedAll("*."+s.ns+".test", all)
}

// storedAll waits until the status of a name has these addresses.
func (s *story) storedAll(name string, want []netip.Addr) {
	s.Helper()
	s.within(soon, fmt.Sprintf("%d addresses were stored", len(want)), func() error {
		got, err := s.sys.Stored(name)
		for _, a := range want {
			if err == nil && !slices.Contains(got, a.String()) {
				err = fmt.Errorf("%s is not among %d addresses", a, len(got))
			}
		}
		return err
	})
}

// bothFamilies allows a name by both IPv4 and IPv6.
func bothFamilies(s *story) {
	addrs, other := s.sys.Authority.New(), s.sys.Authority.New()
	s.sys.Authority.Say(s.name("www"), rig.Answer{Addrs: addrs, TTL: 30 * time.Second})
	s.firewall("allow www."+s.ns+".test", "deny 0.0.0.0/0", "deny ::/0")
	if got := s.reaches(s.pod, s.server, s.name("www"), dns.TypeA); got != addrs[0] {
		s.Errorf("asked for A: %s, want %s", got, addrs[0])
	}
	if got := s.reaches(s.pod, s.server, s.name("www"), dns.TypeAAAA); got != addrs[1] {
		s.Errorf("asked for AAAA: %s, want %s", got, addrs[1])
	}
	for _, a := range other {
		s.dropped(s.pod, a)
	}
}

// portsOfRules checks that a port of an address is allowed, and that the next rule decides about another port.
func portsOfRules(s *story) {
	addrs := s.sys.Authority.New()
	s.sys.Authority.Say(s.name("www"), rig.Answer{Addrs: addrs, TTL: 30 * time.Second})
	s.firewall("allow www."+s.ns+".test tcp/80 udp/443", "deny 0.0.0.0/0", "deny ::/0")
	s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	if rig.Connects(s.pod, addrs[0], 443, never) {
		s.Errorf("TCP port 443 of %s is reached", addrs[0])
	}
	for port, want := range map[uint16]bool{443: true, 80: false} {
		if got := echoes(s, netip.AddrPortFrom(addrs[0], port)); got != want {
			s.Errorf("UDP port %d of %s echoes: %v, want %v", port, addrs[0], got, want)
		}
	}
}

func echoes(s *story, to netip.AddrPort) bool {
	s.Helper()
	c, err := s.pod.DialUDP(to)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(2 * never)); err != nil {
		s.Fatal(err)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		return false
	}
	_, err = c.Read(make([]byte, 16))
	return err == nil
}

// sharedName has two namespaces that allow one name, and one of them stops.
func sharedName(s *story) {
	other := s.ns + "-too"
	rules := append([]string{"allow www." + s.ns + ".test"}, rig.DenyRest...)
	// First: otherwise the resolver queries the name before it exists, and CoreDNS caches that.
	s.sys.Authority.Say(s.name("www"), rig.Answer{Addrs: s.sys.Authority.New(), TTL: 30 * time.Second})
	if err := s.sys.SetFirewall(other, rules...); err != nil {
		s.Fatal(err)
	}
	s.firewall(rules...)
	pod := s.sys.Pod(s.sys.Nodes[0], other, "web")
	s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	s.reaches(pod, s.server, s.name("www"), dns.TypeA)
	if err := s.sys.Firewall(other); err != nil {
		s.Fatal(err)
	}
	addr := s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	got, err := s.sys.Nodes[0].Learned(s.name("www"))
	if err != nil || !slices.Contains(got, addr) {
		s.Errorf("its set has %v, %v, want %s", got, err, addr)
	}
	if err := s.sys.Firewall(s.ns); err != nil { // checks that neither the name nor its sets are left
		s.Fatal(err)
	}
	s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
}
