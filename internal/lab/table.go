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

// table maps the public addresses of the lab to real ones.
type table struct {
	memory *simnet.Net           // the network of all DNS servers if they are in memory; otherwise nil
	local  map[string]string     // loopback addresses by public address
	hosts  map[string]netip.Addr // public addresses of registries by name
	pipes  map[string]*pipes     // registries in memory by public address
}

// ErrElsewhere reports that an address is not in the lab.
var ErrElsewhere = errors.New("the address is not in the lab, and connections to other addresses are not allowed")

// Dial opens a connection to an address of the lab, or to the host of a registry of the lab, over "udp" or "tcp". No
// other addresses can be reached. The remote address of the connection is the public one.
func (l *Lab) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	network = strings.TrimRight(network, "46")
	public, err := l.table.find(address)
	if err != nil {
		return nil, err
	}
	conn, err := l.table.open(ctx, network, public.String())
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	if network == "udp" {
		return &peer{conn, net.UDPAddrFromAddrPort(public)}, nil
	}
	return &peer{conn, net.TCPAddrFromAddrPort(public)}, nil
}

// find returns the public address of a host, if the lab has it.
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

// open connects to the real address of a public one.
func (t *table) open(ctx context.Context, network, public string) (net.Conn, error) {
	if p, ok := t.pipes[public]; ok && network == "tcp" {
		return p.dial(ctx)
	}
	if t.memory != nil {
		return t.memory.Dial(ctx, network, public)
	}
	local, ok := t.local[public]
	if !ok {
		return nil, ErrElsewhere
	}
	if a, err := netip.ParseAddrPort(local); err != nil || !a.Addr().IsLoopback() {
		return nil, ErrElsewhere // even if the file has another address
	}
	var d net.Dialer
	return d.DialContext(ctx, network, local)
}

// peer is a connection with the public address of its peer.
type peer struct {
	net.Conn
	remote net.Addr
}

func (p *peer) RemoteAddr() net.Addr { return p.remote }

// Listen opens a socket that receives packets from all servers of the lab. It can be the Listen function of a
// probe.Prober. The network argument is ignored: both address families can be reached.
func (l *Lab) Listen(ctx context.Context, _ string) (net.PacketConn, error) {
	t := &l.table
	if t.memory != nil {
		return t.memory.ListenPacket(ctx, "udp")
	}
	conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	public := map[string]netip.AddrPort{}
	for from, to := range t.local {
		if a, err := netip.ParseAddrPort(from); err == nil {
			public[to] = a
		}
	}
	return &socket{conn, t.local, public}, nil
}

// socket is a socket on loopback that translates the addresses of its peers.
type socket struct {
	net.PacketConn
	local  map[string]string         // loopback addresses by public address
	public map[string]netip.AddrPort // public addresses by loopback address
}

// WriteTo sends a packet to a public address of the lab.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	local, err := netip.ParseAddrPort(s.local[to.String()])
	if err != nil || !local.Addr().IsLoopback() {
		return 0, fmt.Errorf("send to %s: %w", to, ErrElsewhere)
	}
	return s.PacketConn.WriteTo(b, net.UDPAddrFromAddrPort(local))
}

// ReadFrom reads a packet. Packets from outside the lab keep their address.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.PacketConn.ReadFrom(b)
	if err == nil {
		if public, ok := s.public[from.String()]; ok {
			return n, net.UDPAddrFromAddrPort(public), nil
		}
	}
	return n, from, err
}
