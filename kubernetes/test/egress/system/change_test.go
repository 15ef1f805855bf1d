package system

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// changingAddress has a name with another address every second, and a TTL of one second.
func changingAddress(s *story) {
	var pool []netip.Addr
	for range 8 {
		pool = append(pool, s.sys.Authority.New()[0])
	}
	s.sys.Authority.Script(s.name("www"), rig.Rotate(pool, 1, time.Second, time.Second))
	s.firewall("allow www."+s.ns+".test", "deny 0.0.0.0/0", "deny ::/0")
	seen, n := map[netip.Addr]bool{}, 0
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); n++ {
		seen[s.reaches(s.pod, s.sys.DNS[n%2].At, s.name("www"), dns.TypeA)] = true
	}
	if len(seen) < 4 {
		s.Errorf("in 6 seconds the pod saw %d addresses", len(seen))
	}
	s.Logf("%d connections to %d addresses", n, len(seen))
}

// streamsSurvive checks that a connection continues after its address was removed, and that no new one is possible.
func streamsSurvive(s *story) {
	old, next := s.sys.Authority.New(), s.sys.Authority.New()
	s.sys.Authority.Say(s.name("www"), rig.Answer{Addrs: old, TTL: time.Second})
	s.firewall("allow www."+s.ns+".test", "deny 0.0.0.0/0", "deny ::/0")
	s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	stream := s.pod.Dial(netip.AddrPortFrom(old[0], 80), soon)
	if stream.Err != nil {
		s.Fatal(stream.Err)
	}
	defer func() { _ = stream.Conn.Close() }()
	if err := talk(stream.Conn); err != nil {
		s.Fatal(err)
	}
	s.sys.Authority.Say(s.name("www"), rig.Answer{Addrs: next, TTL: time.Second})
	s.within(soon, "the address left", func() error {
		if err := talk(stream.Conn); err != nil {
			s.Fatalf("the stream broke: %v", err)
		}
		got, err := s.sys.Nodes[0].Learned(s.name("www"))
		if err == nil && slices.Contains(got, old[0]) {
			err = fmt.Errorf("the set has %v", got)
		}
		return err
	})
	if err := s.sys.Nodes[0].Sync(); err != nil {
		s.Fatal(err)
	}
	s.dropped(s.pod, old[0])
	for range 10 {
		if err := talk(stream.Conn); err != nil {
			s.Fatalf("the stream broke: %v", err)
		}
	}
	if got := s.reaches(s.pod, s.server, s.name("www"), dns.TypeA); got != next[0] {
		s.Errorf("the name has %s now, want %s", got, next[0])
	}
}

// talk sends data and checks that it comes back.
func talk(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(soon)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 5))
	return err
}

// replica starts a CoreDNS with other options, and returns when it knows all names.
func (s *story) replica(lines string) *rig.Replica {
	s.Helper()
	r, err := s.sys.Replica(lines)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.sys.Answers(r); err != nil {
		s.Fatalf("%v\n%s", err, r.Log())
	}
	s.within(soon, "it knew all names", func() error { return s.sys.Knows(r) })
	return r
}

// withoutHold shows the purpose of holding: with `hold off` the reply arrives before the switch allows the address, and
// the first SYN is lost.
func withoutHold(s *story) {
	s.sys.Authority.Fresh(s.ns+".test", time.Minute)
	s.firewall()
	r := s.replica("hold off")
	defer r.Stop()
	agent := s.sys.Nodes[0].Agent
	if err := agent.Signal(syscall.SIGSTOP); err != nil {
		s.Fatal(err)
	}
	m, took, err := rig.Ask(s.pod, r.At, s.name("www"), dns.TypeA, soon)
	if err != nil || len(rig.Addrs(m)) == 0 {
		_ = agent.Signal(syscall.SIGCONT)
		s.Fatalf("%v %v", m, err)
	}
	s.Logf("the answer took %v", took)
	s.dropped(s.pod, rig.Addrs(m)[0])
	if err := agent.Signal(syscall.SIGCONT); err != nil {
		s.Fatal(err)
	}
	s.within(soon, "the address was reached", func() error {
		if !rig.Connects(s.pod, rig.Addrs(m)[0], 80, never) {
			return errors.New("no answer")
		}
		return nil
	})
}

// agentStopped checks an agent that hangs. Its pods get the configured action, and those of other nodes are not
// affected.
func agentStopped(s *story) {
	s.sys.Authority.Fresh(s.ns+".test", time.Minute)
	s.firewall()
	far := s.sys.Pod(s.sys.Nodes[1], s.ns, "far")
	if err := s.sys.Settled(soon); err != nil {
		s.Fatal(err)
	}
	// Long enough for a running agent on a busy machine.
	const hold = "hold 3s\non_timeout "
	replicas := map[string]*rig.Replica{}
	for _, action := range []string{"answer", "servfail", "drop"} {
		replicas[action] = s.replica(hold + action)
		defer replicas[action].Stop()
		s.reaches(far, replicas[action].At, s.name("known"), dns.TypeA)
	}
	agent := s.sys.Nodes[1].Agent
	if err := agent.Signal(syscall.SIGSTOP); err != nil {
		s.Fatal(err)
	}
	defer func() { _ = agent.Signal(syscall.SIGCONT) }()
	for _, r := range replicas { // before the timeout is noticed; afterwards the state of the agent is unknown
		s.reaches(far, r.At, s.name("known"), dns.TypeA)
	}
	for action, r := range replicas {
		m, _, err := rig.Ask(far, r.At, s.name("new-"+action), dns.TypeA, 10*time.Second)
		switch action {
		case "answer":
			if err != nil || len(rig.Addrs(m)) != 1 {
				s.Errorf("%s: %v %v", action, m, err)
				continue
			}
			s.dropped(far, rig.Addrs(m)[0])
		case "servfail":
			if err != nil || m.Rcode != dns.RcodeServerFailure {
				s.Errorf("%s: %v %v", action, m, err)
			}
		case "drop":
			if err == nil {
				s.Errorf("%s: %v", action, m)
			}
		}
		s.reaches(s.pod, r.At, s.name("near-"+action), dns.TypeA)
	}
	counts, err := replicas["servfail"].Metrics()
	if err != nil {
		s.Fatal(err)
	}
	if n := counts[`coredns_dnsnameresolver_hold_duration_seconds_count{result="timeout"}`]; n == 0 {
		s.Errorf("no hold that ran out is counted: %v", counts)
	}
	if err := agent.Signal(syscall.SIGCONT); err != nil {
		s.Fatal(err)
	}
	s.within(soon, "the agent was trusted again", func() error {
		return rig.Try(far, replicas["servfail"].At, s.name("later"), dns.TypeA, 10*time.Second).Problem
	})
	s.reaches(far, replicas["servfail"].At, s.name("later"), dns.TypeA)
}

// apiServerDown checks that, without the API server, names are answered and known and new addresses can be reached.
// What was learned is stored when the server is back.
func apiServerDown(s *story) {
	s.sys.Authority.Fresh(s.ns+".test", time.Minute)
	s.firewall()
	s.sys.Authority.Say(s.name("short"), rig.Answer{Addrs: s.sys.Authority.New(), TTL: time.Second})
	s.reaches(s.pod, s.server, s.name("known"), dns.TypeA)
	s.sys.API.Kill()
	n, all := 0, []netip.Addr(nil)
	// longer than the TTL of one of them and its grace
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); n++ {
		server := s.sys.DNS[n%2].At
		s.reaches(s.pod, server, s.name("known"), dns.TypeA)
		s.reaches(s.pod, server, s.name("short"), dns.TypeA)
		if n < 20 {
			all = append(all, s.reaches(s.pod, server, rig.Name(n, s.ns+".test"), dns.TypeA))
		}
	}
	s.Logf("%d rounds without an API server", n)
	if err := errors.Join(s.sys.API.Start(), s.sys.Ready()); err != nil {
		s.Fatal(err)
	}
	s.storedAll("*."+s.ns+".test", all)
	if err := s.sys.Settled(soon); err != nil {
		s.Error(err)
	}
}
