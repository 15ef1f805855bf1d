package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/nameplane/nameplane/internal/specialaddr"
)

// errAddress is that a server is where none of a registry can be. Referrals and redirects come from others, and could make
// us talk to what only we can reach.
var errAddress = errors.New("the address is not a public one")

// dial opens a connection to a host and port that somebody named, if both are what a registry's server may have.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	// Well-known ports of other services are none of ours; registries in a lab have high ones.
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < 1024 && n != 43 && n != 80 && n != 443 {
		return nil, fmt.Errorf("port %s: no registry has its server there", port)
	}
	if a, err := netip.ParseAddr(host); err == nil && !c.allow(a) {
		return nil, errAddress
	}
	if c.Dial == nil {
		// Control sees the address that is connected to, after any lookup: a name cannot change it behind our back.
		d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { return c.check(address) }}
		return d.DialContext(ctx, network, address)
	}
	conn, err := c.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if err := c.check(conn.RemoteAddr().String()); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (c *Client) allow(a netip.Addr) bool {
	if c.Allow == nil {
		return specialaddr.Table{}.Public(a)
	}
	return c.Allow(a)
}

func (c *Client) check(address string) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !c.allow(a.Addr().Unmap()) {
		return errAddress
	}
	return nil
}
