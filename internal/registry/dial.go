package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// errAddress reports that a server has an address that no registry can have. Referrals and redirects come from third
// parties, and could lead to servers that only this machine can reach.
var errAddress = errors.New("the address is not a public one")

// dial connects to a host and port from a referral or a list, if a registry's server may have both.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	// Reject the well-known ports of other services. Registries in a lab use high ports.
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < 1024 && n != 43 && n != 80 && n != 443 {
		return nil, fmt.Errorf("port %s: no registry server uses this port", port)
	}
	if a, err := netip.ParseAddr(host); err == nil && !c.allow(a) {
		return nil, errAddress
	}
	if c.Dial == nil {
		// Control gets the address of the connection after the lookup, so a name cannot resolve to another address later.
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
		return c.Special.Public(a)
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
