package resolve

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Transport is the protocol under DNS.
type Transport uint8

// The transports.
const (
	UDP Transport = iota // TCP follows when the reply is truncated (RFC 7766 §5)
	TCP
	TLS // RFC 7858
)

var transports = [...]struct {
	name string
	port uint16
}{UDP: {"udp", 53}, TCP: {"tcp", 53}, TLS: {"tls", 853}}

func (t Transport) String() string { return transports[t].name }

// Server is the address and the transport of a DNS server. Servers are comparable.
type Server struct {
	Transport Transport
	Addr      netip.AddrPort
	Name      string // the name in the certificate of a TLS server; empty: the certificate must have its address
	Once      bool   // return a truncated reply over UDP as it is, without a retry over TCP
}

// ParseServer parses a server: an IP address with an optional port, and an optional transport before it. The name in
// the certificate of a TLS server follows after a "#":
//
//	192.0.2.1  [2001:db8::1]:5353  tcp://192.0.2.1  tls://192.0.2.1:853#dns.example.org
//
// Host names are not accepted: a DNS server would be needed to resolve them.
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
		return Server{}, fmt.Errorf("server %q: give an IP address, "+
			"with a port behind a colon if it is not %d",
			s, transports[t].port)
	}
	return srv, nil
}

// parseAddr parses an address with an optional port. IPv6 addresses without a port need no brackets.
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

// String returns the form that ParseServer accepts.
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
