package gather

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Dial opens a connection, as the Dial of a resolve.Client does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// PublicOnly is a Dial that opens connections to addresses of the public internet only. A server that asks for others needs it:
// a stranger's zone can name any address as that of a nameserver, also those of hosts behind the server's firewall.
func PublicOnly(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, err
		}
		if !public(to.Addr()) {
			return nil, errPrivate
		}
		return dial(ctx, network, address)
	}
}

// Only is a Dial that opens connections to one address and port. It lets a server that is PublicOnly ask Options.Unused, which is no
// public address, and leaves it to nobody else: a zone that has it as glue is not asked there.
func Only(dial Dial, at netip.AddrPort) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if to, err := netip.ParseAddrPort(address); err != nil || to != at {
			return nil, fmt.Errorf("only %s is asked", at)
		}
		return dial(ctx, network, address)
	}
}

// Listen opens a socket that is not connected.
type Listen func(ctx context.Context, network string) (net.PacketConn, error)

// PublicOnlyListen is a Listen whose sockets send to public addresses only. Without it, the probes of a server that PublicOnly
// keeps from being asked would reach it all the same.
func PublicOnlyListen(listen Listen) Listen {
	return func(ctx context.Context, network string) (net.PacketConn, error) {
		conn, err := listen(ctx, network)
		if err != nil {
			return nil, err
		}
		return publicConn{conn}, nil
	}
}

type publicConn struct{ net.PacketConn }

func (c publicConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if a, ok := to.(*net.UDPAddr); !ok || !public(a.AddrPort().Addr()) {
		return 0, errPrivate
	}
	return c.PacketConn.WriteTo(b, to)
}

var errPrivate = errors.New("the address is private and not asked")

// special are networks that are no part of the public internet, besides those that package netip knows (RFC 6890).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("5f00::/16"), netip.MustParsePrefix("fec0::/10"),
}

// translated are addresses with an IPv4 address in their last octets (RFC 6052). Those of a network's own translators (RFC 8215)
// have it wherever it likes, and are special.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// sixToFour are addresses with an IPv4 address behind their first two octets (RFC 3056).
var sixToFour = netip.MustParsePrefix("2002::/16")

func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	within := func(p netip.Prefix) bool { return p.Contains(a) }
	if !a.IsGlobalUnicast() || a.IsPrivate() || slices.ContainsFunc(special, within) {
		return false
	}
	if b := a.As16(); translated.Contains(a) {
		return public(netip.AddrFrom4([4]byte(b[12:])))
	} else if sixToFour.Contains(a) {
		return public(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return true
}
