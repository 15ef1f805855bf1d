package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
)

// errAddress is that a server is where none of a registry can be. Referrals and redirects come from others, and could make
// us talk to what only we can reach.
var errAddress = errors.New("the address is not a public one")

// special are the blocks of the IANA registries of special-purpose addresses that netip does not tell from public ones.
var special = func() (p []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10",
	} {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}()

// nat64 are addresses with an IPv4 address in their last bytes (RFC 6052). Those of a network's own translators (RFC 8215) have it
// anywhere, and are special. sixToFour are addresses with an IPv4 address after their first two bytes (RFC 3056).
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// Public reports whether a is an address of the public internet. It is what Client.Allow is by default.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if b := a.As16(); nat64.Contains(a) {
		a = netip.AddrFrom4([4]byte(b[12:]))
	} else if sixToFour.Contains(a) {
		a = netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

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
		return Public(a)
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
