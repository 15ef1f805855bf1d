package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/nameplane/nameplane/internal/simnet"
)

// table tells where the addresses of the lab are in truth.
type table struct {
	memory *simnet.Net // of which all DNS servers are in memory; nil: none
	places map[string]string
	hosts  map[string]netip.Addr // registries by their names
	pipes  map[string]*pipes     // registries in memory
}

// ErrElsewhere is that something is not in the lab.
var ErrElsewhere = errors.New("this is not in the lab, and nothing leaves it")

// Dial opens a connection to an address, or to a host of a registry, of the lab, over "udp" or "tcp". There is no way to others.
// The connection says that its peer is where it was dialled to.
func (l *Lab) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	network = strings.TrimRight(network, "46")
	famous, err := l.table.find(address)
	if err != nil {
		return nil, err
	}
	conn, err := l.table.open(ctx, network, famous.String())
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	if network == "udp" {
		return &peer{conn, net.UDPAddrFromAddrPort(famous)}, nil
	}
	return &peer{conn, net.TCPAddrFromAddrPort(famous)}, nil
}

// find is the address of a host, if the lab has it.
func (t *table) find(address string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(address); err == nil {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	at, ok := t.hosts[strings.TrimSuffix(strings.ToLower(host), ".")]
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("dial %s: %w", address, ErrElsewhere)
	}
	return netip.ParseAddrPort(net.JoinHostPort(at.String(), port))
}

func (t *table) open(ctx context.Context, network, famous string) (net.Conn, error) {
	if p, ok := t.pipes[famous]; ok && network == "tcp" {
		return p.dial(ctx)
	}
	if t.memory != nil {
		return t.memory.Dial(ctx, network, famous)
	}
	place, ok := t.places[famous]
	if !ok {
		return nil, ErrElsewhere
	}
	if a, err := netip.ParseAddrPort(place); err != nil || !a.Addr().IsLoopback() {
		return nil, ErrElsewhere // whatever a file says
	}
	var d net.Dialer
	return d.DialContext(ctx, network, place)
}

// peer is a connection whose peer has its famous address.
type peer struct {
	net.Conn
	remote net.Addr
}

func (p *peer) RemoteAddr() net.Addr { return p.remote }

// Listen opens a socket that sees packets from everywhere in the lab; it fits the Listen of a probe.Prober. Its network does not
// matter: addresses of both kinds are reached.
func (l *Lab) Listen(ctx context.Context, _ string) (net.PacketConn, error) {
	t := &l.table
	if t.memory != nil {
		return t.memory.ListenPacket(ctx, "udp")
	}
	conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	back := map[string]netip.AddrPort{}
	for famous, place := range t.places {
		if a, err := netip.ParseAddrPort(famous); err == nil {
			back[place] = a
		}
	}
	return &socket{conn, t.places, back}, nil
}

// socket is a socket on loopback whose peers have their famous addresses.
type socket struct {
	net.PacketConn
	places map[string]string
	back   map[string]netip.AddrPort
}

// WriteTo sends a packet into the lab.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	place, err := netip.ParseAddrPort(s.places[to.String()])
	if err != nil || !place.Addr().IsLoopback() {
		return 0, fmt.Errorf("send to %s: %w", to, ErrElsewhere)
	}
	return s.PacketConn.WriteTo(b, net.UDPAddrFromAddrPort(place))
}

// ReadFrom reads a packet. What does not come from the lab keeps its address.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.PacketConn.ReadFrom(b)
	if err == nil {
		if famous, ok := s.back[from.String()]; ok {
			return n, net.UDPAddrFromAddrPort(famous), nil
		}
	}
	return n, from, err
}
