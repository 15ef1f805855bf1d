package system

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// laterPod checks that a pod that starts after the addresses of a name are known need not query it.
func laterPod(s *story) {
	s.sys.Authority.Fresh(s.ns+".test", time.Minute)
	s.firewall()
	addr := s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	for i, n := range s.sys.Nodes {
		later := s.sys.Pod(n, s.ns, fmt.Sprintf("later%d", i))
		if err := s.sys.Settled(soon); err != nil {
			s.Fatal(err)
		}
		if !rig.Connects(later, addr, 80, soon) {
			s.Errorf("%s is not reached from %s", addr, later.Port)
		}
		s.dropped(later, s.sys.Authority.New()[0])
	}
}

// hostNetwork has a pod in the host network, which has no port on the switch, so that no rule matches it. Its packets
// use the node's own port, through the same switch and rules as those of other pods.
func hostNetwork(s *story) {
	n := s.sys.Nodes[0]
	s.firewall(rig.DenyRest...)
	host := s.sys.HostPod(n, s.ns, "host")
	if err := s.sys.Settled(soon); err != nil {
		s.Fatal(err)
	}
	ports, err := n.NBCtl("--bare", "--columns=ports", "find", "Port_Group", `external_ids:"k8s.ovn.org/name"=`+s.ns)
	if err != nil || len(strings.Fields(ports)) != 1 {
		s.Errorf("the port group has %q, %v, want the one pod that is on the switch", ports, err)
	}
	for _, to := range s.sys.Authority.New() {
		s.dropped(s.pod, to)
		if !rig.Connects(host, to, 80, soon) {
			s.Errorf("%s is not reached from the network of the node", to)
		}
	}
}

// throughService checks that the destination of a packet to a service decides, and not the address of the service.
func throughService(s *story) {
	allowed, other := s.sys.Authority.New(), s.sys.Authority.New()
	s.sys.Authority.Say(s.name("www"), rig.Answer{Addrs: allowed, TTL: time.Minute})
	n := s.sys.Nodes[0]
	services := map[string]netip.Addr{"10.96.80.1": allowed[0], "10.96.80.2": other[0]}
	for vip, to := range services {
		name := "svc-" + vip
		if _, err := n.NBCtl("--wait=hv", "lb-add", name, vip+":80", to.String()+":80", "tcp", "--", "ls-lb-add", n.Node,
			name); err != nil {
			s.Fatal(err)
		}
		defer func() { _, _ = n.NBCtl("--wait=hv", "--if-exists", "lb-del", name) }()
	}
	for vip := range services {
		if !rig.Connects(s.pod, netip.MustParseAddr(vip), 80, soon) {
			s.Fatalf("%s is not reached without a firewall", vip)
		}
	}
	s.firewall("allow www."+s.ns+".test", "deny 0.0.0.0/0", "deny ::/0")
	s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	if !rig.Connects(s.pod, netip.MustParseAddr("10.96.80.1"), 80, soon) {
		s.Error("the service whose endpoint is allowed is not reached")
	}
	// The report must not say that it is denied, as it would for an ordinary address.
	if r, err := s.sys.Explain(s.ns, "10.96.80.1:80"); err == nil ||
		!strings.Contains(err.Error(), "10.96.80.1 is a service address") {
		s.Errorf("explain of a service: %+v, %v", r, err)
	}
	s.dropped(s.pod, netip.MustParseAddr("10.96.80.2"))
	s.firewall("allow 10.96.80.2/32", "deny 0.0.0.0/0", "deny ::/0") // no packet has this address when rules match
	s.dropped(s.pod, netip.MustParseAddr("10.96.80.2"))
}

// datagramsSurvive checks that UDP packets of an existing flow continue to a removed address, and that others do not.
func datagramsSurvive(s *story) {
	old, next := s.sys.Authority.New(), s.sys.Authority.New()
	s.sys.Authority.Say(s.name("www"), rig.Answer{Addrs: old, TTL: time.Second})
	s.firewall("allow www."+s.ns+".test", "deny 0.0.0.0/0", "deny ::/0")
	s.reaches(s.pod, s.server, s.name("www"), dns.TypeA)
	to := netip.AddrPortFrom(old[0], 443)
	stream, err := s.pod.DialUDP(to)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if err := say(stream); err != nil {
		s.Fatal(err)
	}
	s.sys.Authority.Say(s.name("www"), rig.Answer{Addrs: next, TTL: time.Second})
	s.within(soon, "the address left", func() error {
		if err := say(stream); err != nil {
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
	for range 10 {
		if err := say(stream); err != nil {
			s.Fatalf("the stream broke: %v", err)
		}
	}
	if echoes(s, to) {
		s.Errorf("a new stream to %s is let through", to)
	}
}

// say sends a datagram and waits until it comes back; a busy machine may lose one.
func say(c *net.UDPConn) error {
	var err error
	for range 3 {
		if err = c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
			return err
		}
		if _, err = c.Write([]byte("hello")); err == nil {
			if _, err = c.Read(make([]byte, 16)); err == nil {
				return nil
			}
		}
	}
	return err
}
