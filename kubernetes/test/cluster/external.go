package cluster

import (
	"fmt"
	"io"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// internet lists the prefixes whose addresses External answers for: those for benchmarks and documentation.
var internet = []netip.Prefix{
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32"),
}

// External is the internet of the pods: a namespace that answers as every address of the prefixes above, and forwards
// packets between the nodes that are connected to it.
type External struct {
	*NetNS
}

// StartExternal creates an internet. StartOVN connects nodes to it.
func StartExternal(t T) *External {
	t.Helper()
	p, err := newNetNS(t)
	if err != nil {
		t.Fatalf("the internet: %v", err)
	}
	lines := []string{
		"sysctl net.ipv4.ip_forward 1", "sysctl net.ipv6.conf.all.forwarding 1",
		// IPv6 does not accept an address of a local route as a source address.
		"sysctl net.ipv6.ip_nonlocal_bind 1",
	}
	for _, prefix := range internet {
		// A local route makes all addresses local to the namespace, without an entry for each.
		lines = append(lines, fmt.Sprintf("route add local %s dev lo", prefix))
	}
	if err := p.ip(lines...); err != nil {
		t.Fatalf("the internet: %v", err)
	}
	return &External{NetNS: p}
}

// Echo answers on a port of all addresses, by TCP and UDP, with the received data.
func (e *External) Echo(t T, port uint16) {
	t.Helper()
	addr := fmt.Sprintf("[::]:%d", port)
	l, err := e.Listen(addr)
	if err != nil {
		t.Fatalf("echo: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go echoTCP(l)
	c, err := e.ListenPacket(addr)
	if err != nil {
		t.Fatalf("echo: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatalf("echo: %v", err)
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO,
			1)
	}); err != nil || set != nil {
		t.Fatalf("echo: %v %v", err, set)
	}
	go echoUDP(c.(*net.UDPConn))
}

func echoTCP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}()
	}
}

// echoUDP returns the control message with the destination address: in a sent message it selects the source address.
func echoUDP(c *net.UDPConn) {
	buf, control := make([]byte, 65535), make([]byte, 128)
	for {
		n, m, _, from, err := c.ReadMsgUDPAddrPort(buf, control)
		if err != nil {
			return
		}
		_, _, _ = c.WriteMsgUDPAddrPort(buf[:n], control[:m], from)
	}
}
