package gather

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/nameplane/nameplane/internal/specialaddr"
)

// Dial opens a connection, as the Dial of a resolve.Client does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// PublicOnly returns a Dial that opens connections to addresses of the public internet only. A server that scans
// names for others needs it: anybody's zone can name any address as a nameserver, including hosts behind the server's
// firewall.
func PublicOnly(dial Dial, table specialaddr.Table) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, err
		}
		if c := table.Classes(to.Addr()) & specialaddr.Special; c != 0 {
			return nil, notPublic(to.Addr(), c)
		}
		return dial(ctx, network, address)
	}
}

// Only returns a Dial that opens connections to one address and port. A server that uses PublicOnly needs it to query
// Options.Unused, which is not a public address. Zones that have this address as glue still cannot be queried there.
func Only(dial Dial, at netip.AddrPort) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if to, err := netip.ParseAddrPort(address); err != nil || to != at {
			return nil, fmt.Errorf("connect to %s: only %s is allowed", address, at)
		}
		return dial(ctx, network, address)
	}
}

// Listen opens a socket that is not connected.
type Listen func(ctx context.Context, network string) (net.PacketConn, error)

// PublicOnlyListen returns a Listen whose sockets send to public addresses only. Without it, probes would reach the
// addresses that PublicOnly refuses.
func PublicOnlyListen(listen Listen, table specialaddr.Table) Listen {
	return func(ctx context.Context, network string) (net.PacketConn, error) {
		conn, err := listen(ctx, network)
		if err != nil {
			return nil, err
		}
		return publicConn{conn, table}, nil
	}
}

type publicConn struct {
	net.PacketConn
	table specialaddr.Table
}

func (c publicConn) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, net.InvalidAddrError(to.String())
	}
	if class := c.table.Classes(a.AddrPort().Addr()) & specialaddr.Special; class != 0 {
		return 0, notPublic(a.AddrPort().Addr(), class)
	}
	return c.PacketConn.WriteTo(b, to)
}

// ErrNotAllowed is the error of a Dial for an address that it must not connect to. It says nothing about the address.
var ErrNotAllowed = errors.New("connections to it are not allowed")

func notPublic(a netip.Addr, c specialaddr.Class) error {
	return fmt.Errorf("%s is %s, and only public addresses are queried: %w", a, c, ErrNotAllowed)
}
