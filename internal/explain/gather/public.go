package gather

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/nameplane/nameplane/internal/registry"
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
		if !registry.Public(to.Addr()) {
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
	if a, ok := to.(*net.UDPAddr); !ok || !registry.Public(a.AddrPort().Addr()) {
		return 0, errPrivate
	}
	return c.PacketConn.WriteTo(b, to)
}

var errPrivate = errors.New("the address is private and not asked")
