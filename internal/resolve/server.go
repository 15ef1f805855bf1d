package resolve

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Transport is how a server is spoken to.
type Transport uint8

// The transports.
const (
	UDP Transport = iota // and TCP when the reply does not fit (RFC 7766 §5)
	TCP
	TLS // RFC 7858
)

var transports = [...]struct {
	name string
	port uint16
}{UDP: {"udp", 53}, TCP: {"tcp", 53}, TLS: {"tls", 853}}

func (t Transport) String() string { return transports[t].name }

// Server is a DNS server to be asked. Servers are comparable.
type Server struct {
	Transport Transport
	Addr      netip.AddrPort
	Name      string // what the certificate of a TLS server must be for; empty: its address
	Once      bool   // return a truncated reply over UDP as it is, and do not ask again over TCP
}

// ParseServer reads a server: an address with or without a port, perhaps with a transport in front of it, and behind a
// "#" the name in the certificate of a TLS server:
//
//	192.0.2.1  [2001:db8::1]:5353  tcp://192.0.2.1  tls://192.0.2.1:853#dns.example.org
//
// It must be an address: to find the one of a name is what the server is for.
func ParseServer(s string) (Server, error) {
	srv := Server{}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "udp", s
	}
	for t := UDP; t <= TLS; t++ {
		if scheme == t.String() {
			return srv.parse(t, s, rest)
		}
	}
	return Server{}, fmt.Errorf("server %q: the transport must be udp, tcp or tls", s)
}

func (srv Server) parse(t Transport, s, rest string) (Server, error) {
	srv.Transport = t
	host, name, named := strings.Cut(rest, "#")
	if named && t != TLS {
		return Server{}, fmt.Errorf("server %q: only a tls server has a name", s)
	}
	if named {
		n, err := dnsname.Parse(name)
		if err != nil || n.IsRoot() {
			return Server{}, fmt.Errorf("server %q: %q is not the name of a host", s, name)
		}
		srv.Name = strings.TrimSuffix(n.String(), ".")
	}
	var err error
	if srv.Addr, err = parseAddr(host, transports[t].port); err != nil {
		return Server{}, fmt.Errorf("server %q: give an IP address, with a port behind a colon if it is not %d", s, transports[t].port)
	}
	return srv, nil
}

// parseAddr reads an address with an optional port. IPv6 may be without brackets when there is no port.
func parseAddr(s string, port uint16) (netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		if ap.Port() == 0 {
			return netip.AddrPort{}, fmt.Errorf("port 0 of %q", s)
		}
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		s = strings.TrimSuffix(inner, "]")
	}
	a, err := netip.ParseAddr(s)
	return netip.AddrPortFrom(a.Unmap(), port), err
}

// String is the form that ParseServer reads.
func (s Server) String() string {
	out := s.Addr.String()
	if s.Transport != UDP {
		out = s.Transport.String() + "://" + out
	}
	if s.Name != "" {
		out += "#" + s.Name
	}
	return out
}
