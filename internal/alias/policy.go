package alias

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/follow"
)

// Policy is what an operator decides about targets: which addresses of outside ones are refused, how long the last good ones
// stay, and which zones are ours. Whoever owns a target could otherwise make names of ours lead into networks that trust them.
// Addresses in our own zones are their owners' to choose.
type Policy struct {
	AllowPrivate bool         // private, loopback, link-local and other special addresses
	AllowOwn     bool         // the addresses of this server
	Own          []netip.Addr // which they are

	StaleLimit time.Duration // addresses are withdrawn when nothing newer came for that long; 0: they stay
	AllZones   bool          // the zones of all projects are ours, and not only those of the ALIAS's own
}

// special are networks that no address of the public internet is in, beyond those that netip knows (RFC 6890).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("fec0::/10"),
}

// Networks of IPv6 whose addresses hold one of IPv4.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
)

// refuses is why an address is refused; empty: it is not.
func (p Policy) refuses(a netip.Addr) (follow.Cause, string) {
	plain := within(a)
	if !p.AllowOwn && slices.Contains(p.Own, plain) {
		return causeOwn, fmt.Sprintf("%s is an address of this server", a)
	}
	if p.AllowPrivate {
		return "", ""
	}
	word := ""
	switch {
	case plain.IsLoopback():
		word = "a loopback"
	case plain.IsPrivate():
		word = "a private"
	case plain.IsLinkLocalUnicast(), plain.IsLinkLocalMulticast():
		word = "a link-local"
	case plain.IsUnspecified(), plain.IsMulticast(), slices.ContainsFunc(special, func(n netip.Prefix) bool { return n.Contains(plain) }):
		word = "a special"
	default:
		return "", ""
	}
	return causePrivate, fmt.Sprintf("%s is %s address", a, word)
}

// within is the address that packets to an address end at: those of IPv6 that stand for one of IPv4 (RFC 4291 §2.5.5, RFC 6052
// §2.1, RFC 3056 §2) lead to where that does.
func within(a netip.Addr) netip.Addr {
	plain := a.Unmap()
	if plain.Is4() {
		return plain
	}
	b := plain.As16()
	switch {
	case nat64.Contains(plain):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(plain):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case compatible.Contains(plain) && !plain.IsUnspecified() && !plain.IsLoopback():
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return plain
}

// refusesOne is refuses for any of several.
func (p Policy) refusesOne(addrs []netip.Addr) (follow.Cause, string) {
	for _, a := range addrs {
		if cause, detail := p.refuses(a); cause != "" {
			return cause, detail
		}
	}
	return "", ""
}

// refusesAny reports whether addresses of a record that came from elsewhere would be refused now.
func (p Policy) refusesAny(r Record) bool {
	return r.Outside != "" && slices.ContainsFunc(r.Families[:], func(f Family) bool {
		cause, _ := p.refusesOne(f.Addrs)
		return cause != ""
	})
}
