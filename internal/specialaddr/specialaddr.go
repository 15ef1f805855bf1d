// Package specialaddr classifies IP addresses that are not ordinary addresses of the public internet.
//
// Start with Table.Classes. The package holds the only table of such addresses (table.go). Packages that send packets
// to addresses chosen by others, publish such addresses or open a firewall for them have their own policies. A policy
// is a set of classes:
//
//	if c := table.Classes(addr) & specialaddr.Special; c != 0 {
//		return fmt.Errorf("%s is %s", addr, c)
//	}
package specialaddr

import (
	"fmt"
	"net/netip"
	"slices"
)

// Class is a set of kinds of special-purpose addresses. The zero Class is that of a public address.
type Class uint16

// The classes.
const (
	Unspecified   Class = 1 << iota // "this network", which Linux sends to itself
	Loopback                        // this host
	LinkLocal                       // this link
	Private                         // networks of one organisation
	Shared                          // networks of an access provider behind carrier-grade NAT
	Metadata                        // services of a cloud that give credentials to machines
	Documentation                   // examples
	Benchmarking                    // measurements in laboratories
	Multicast                       // groups
	Reserved                        // not assigned, withdrawn, or for the use of a protocol
	Mapped                          // an IPv4 address in the form of IPv6
	Translated                      // a translator or tunnel sends packets on to an IPv4 address inside

	// Special are the classes that no host of the public internet has. Mapped and Translated addresses have the
	// classes of the IPv4 address inside, besides their own.
	Special = Mapped - 1
)

// words describes each class. The first class that an address has describes it best.
var words = []struct {
	class Class
	text  string
}{
	{Metadata, "a cloud metadata address"},
	{Unspecified, "an unspecified address"},
	{Loopback, "a loopback address"},
	{LinkLocal, "a link-local address"},
	{Private, "a private address"},
	{Shared, "a shared address (carrier-grade NAT)"},
	{Documentation, "a documentation address"},
	{Benchmarking, "a benchmarking address"},
	{Multicast, "a multicast address"},
	{Reserved, "a reserved address"},
	{Mapped, "an IPv4-mapped address"},
	{Translated, "an address that is translated to IPv4"},
}

// String describes an address of this class, such as "a private address".
func (c Class) String() string {
	for _, w := range words {
		if c&w.class != 0 {
			return w.text
		}
	}
	return "a public address"
}

// Table classifies addresses. The zero Table knows all registered addresses.
type Table struct {
	NAT64 []netip.Prefix // prefixes of the operator's own translators (RFC 6052), from ParseNAT64
}

// Classes returns the classes of an address and of every IPv4 address that packets to it may end at.
func (t Table) Classes(a netip.Addr) Class {
	a = a.WithZone("") // no prefix contains an address with a zone
	var c Class
	if a.Is4In6() {
		c, a = Mapped, a.Unmap()
	}
	c |= classOf(a)
	for _, end := range t.Ends(a) {
		c |= Translated | classOf(end)
	}
	return c
}

// Public reports whether a host of the public internet may have this address.
func (t Table) Public(a netip.Addr) bool { return t.Classes(a)&Special == 0 }

// Allowed reports whether an administrator has listed an address: one of the networks contains it. A special address
// needs a network inside its block. So 0.0.0.0/0 allows every public address and no private one, 10.0.0.0/8 allows
// the private ones in it, and 169.254.0.0/16 does not allow the cloud metadata service. The IPv4 address that a
// translated IPv6 address leads to must also be public or listed.
func (t Table) Allowed(networks []netip.Prefix, a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	named := func(a netip.Addr) bool {
		b := blockOf(a)
		return slices.ContainsFunc(networks, func(n netip.Prefix) bool {
			return n.Contains(a) && (b.class&Special == 0 || n.Bits() >= max(b.prefix.Bits(), 1))
		})
	}
	return named(a) && !slices.ContainsFunc(t.Ends(a), func(end netip.Addr) bool {
		return classOf(end)&Special != 0 && !named(end)
	})
}

// Ends returns the IPv4 addresses that packets to an IPv6 address may end at; none for most addresses.
func (t Table) Ends(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	a = a.WithZone("")
	b := a.As16()
	if i := slices.IndexFunc(t.NAT64, func(p netip.Prefix) bool { return p.Contains(a) }); i >= 0 {
		return []netip.Addr{embedded(b, t.NAT64[i].Bits())}
	}
	switch {
	case a.Is4In6(), nat64.Contains(a), stateless.Contains(a):
		return []netip.Addr{embedded(b, 96)}
	case compatible.Contains(a) && a != netip.IPv6Unspecified() && a != netip.IPv6Loopback():
		return []netip.Addr{embedded(b, 96)}
	case localNAT64.Contains(a):
		return localEnds(b)
	case sixToFour.Contains(a):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case teredo.Contains(a): // RFC 4380 section 4: the server, and the client with its bits inverted
		return []netip.Addr{netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	}
	return nil
}

// Tunnel returns "6to4" or "Teredo" for an address of these tunnels to IPv4, otherwise "". Most relays are gone: RFC
// 7526 withdrew those of 6to4.
func Tunnel(a netip.Addr) string {
	switch {
	case sixToFour.Contains(a):
		return "6to4"
	case teredo.Contains(a):
		return "Teredo"
	}
	return ""
}

// nat64Lengths are the lengths of prefixes that translators may have (RFC 6052 section 2.2).
var nat64Lengths = []int{32, 40, 48, 56, 64, 96}

// ParseNAT64 parses the prefix of a translator.
func ParseNAT64(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return p, fmt.Errorf("%q is not a prefix, such as 2001:db8:64::/96", s)
	case !p.Addr().Is6() || p.Addr().Is4In6() || !slices.Contains(nat64Lengths, p.Bits()):
		return p, fmt.Errorf("%s is not a prefix of NAT64: use an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits", p)
	}
	return p.Masked(), nil
}

// embedded returns the IPv4 address after a NAT64 prefix of the given length. Byte 8 holds no part of it (RFC 6052
// section 2.2).
func embedded(b [16]byte, bits int) netip.Addr {
	var v4 [4]byte
	at := bits / 8
	for i := range v4 {
		if at == 8 {
			at++
		}
		v4[i] = b[at]
		at++
	}
	return netip.AddrFrom4(v4)
}

// localEnds returns the IPv4 addresses that may be in an address of the prefix for local use. Only the operator knows
// how long the prefix of the translator is. An address of 0.0.0.0/8 shows that it is not at this position.
func localEnds(b [16]byte) (out []netip.Addr) {
	for _, bits := range []int{48, 56, 64, 96} {
		if end := embedded(b, bits); classOf(end)&Unspecified == 0 {
			out = append(out, end)
		}
	}
	if out == nil {
		out = []netip.Addr{netip.IPv4Unspecified()}
	}
	return out
}
