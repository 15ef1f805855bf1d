package specialaddr

import (
	"cmp"
	"net/netip"
	"slices"
)

// row is a block of addresses of one class. Of two blocks that contain an address, the longer prefix counts.
type row struct {
	block string
	class Class
	name  string // in its registry
	ref   string // where it is defined
}

// public is the class of rows that are exceptions from a larger block.
const public Class = 0

// ianaIPv4 is the IANA IPv4 Special-Purpose Address Registry, as of May 2025:
// https://www.iana.org/assignments/iana-ipv4-special-registry
// Blocks that the registry calls globally reachable are public here.
var ianaIPv4 = []row{
	{"0.0.0.0/8", Unspecified, "This network", "RFC 791 section 3.2"},
	{"0.0.0.0/32", Unspecified, "This host on this network", "RFC 1122 section 3.2.1.3"},
	{"10.0.0.0/8", Private, "Private-Use", "RFC 1918"},
	{"100.64.0.0/10", Shared, "Shared Address Space", "RFC 6598"},
	{"127.0.0.0/8", Loopback, "Loopback", "RFC 1122 section 3.2.1.3"},
	{"169.254.0.0/16", LinkLocal, "Link Local", "RFC 3927"},
	{"172.16.0.0/12", Private, "Private-Use", "RFC 1918"},
	{"192.0.0.0/24", Reserved, "IETF Protocol Assignments", "RFC 6890 section 2.1"},
	{"192.0.0.0/29", Reserved, "IPv4 Service Continuity Prefix", "RFC 7335"},
	{"192.0.0.8/32", Reserved, "IPv4 dummy address", "RFC 7600"},
	{"192.0.0.9/32", public, "Port Control Protocol Anycast", "RFC 7723"},
	{"192.0.0.10/32", public, "Traversal Using Relays around NAT Anycast", "RFC 8155"},
	{"192.0.0.170/32", Reserved, "NAT64/DNS64 Discovery", "RFC 8880, RFC 7050 section 2.2"},
	{"192.0.0.171/32", Reserved, "NAT64/DNS64 Discovery", "RFC 8880, RFC 7050 section 2.2"},
	{"192.0.2.0/24", Documentation, "Documentation (TEST-NET-1)", "RFC 5737"},
	{"192.31.196.0/24", public, "AS112-v4", "RFC 7535"},
	{"192.52.193.0/24", public, "AMT", "RFC 7450"},
	{"192.88.99.0/24", Reserved, "Deprecated (6to4 Relay Anycast)", "RFC 7526"},
	{"192.88.99.2/32", Reserved, "6a44-relay anycast address", "RFC 6751"},
	{"192.168.0.0/16", Private, "Private-Use", "RFC 1918"},
	{"192.175.48.0/24", public, "Direct Delegation AS112 Service", "RFC 7534"},
	{"198.18.0.0/15", Benchmarking, "Benchmarking", "RFC 2544"},
	{"198.51.100.0/24", Documentation, "Documentation (TEST-NET-2)", "RFC 5737"},
	{"203.0.113.0/24", Documentation, "Documentation (TEST-NET-3)", "RFC 5737"},
	{"240.0.0.0/4", Reserved, "Reserved", "RFC 1112 section 4"},
	{"255.255.255.255/32", Reserved, "Limited Broadcast", "RFC 8190, RFC 919 section 7"},
}

// ianaIPv6 is the IANA IPv6 Special-Purpose Address Registry, as of May 2025. Its newest entry is that of RFC 9780:
// https://www.iana.org/assignments/iana-ipv6-special-registry
var ianaIPv6 = []row{
	{"::1/128", Loopback, "Loopback Address", "RFC 4291"},
	{"::/128", Unspecified, "Unspecified Address", "RFC 4291"},
	{"::ffff:0:0/96", Mapped, "IPv4-mapped Address", "RFC 4291"},
	{"64:ff9b::/96", Translated, "IPv4-IPv6 Translat.", "RFC 6052"},
	{"64:ff9b:1::/48", Private | Translated, "IPv4-IPv6 Translat.", "RFC 8215"},
	{"100::/64", Reserved, "Discard-Only Address Block", "RFC 6666"},
	{"100:0:0:1::/64", Reserved, "Dummy IPv6 Prefix", "RFC 9780"},
	{"2001::/23", Reserved, "IETF Protocol Assignments", "RFC 2928"},
	{"2001::/32", Translated, "TEREDO", "RFC 4380, RFC 8190"},
	{"2001:1::1/128", public, "Port Control Protocol Anycast", "RFC 7723"},
	{"2001:1::2/128", public, "Traversal Using Relays around NAT Anycast", "RFC 8155"},
	{"2001:1::3/128", public, "DNS-SD Service Registration Protocol Anycast", "RFC 9665"},
	{"2001:2::/48", Benchmarking, "Benchmarking", "RFC 5180, RFC Errata 1752"},
	{"2001:3::/32", public, "AMT", "RFC 7450"},
	{"2001:4:112::/48", public, "AS112-v6", "RFC 7535"},
	{"2001:10::/28", Reserved, "Deprecated (previously ORCHID)", "RFC 4843"},
	{"2001:20::/28", public, "ORCHIDv2", "RFC 7343"},
	{"2001:30::/28", public, "Drone Remote ID Protocol Entity Tags (DETs) Prefix", "RFC 9374"},
	{"2001:db8::/32", Documentation, "Documentation", "RFC 3849"},
	{"2002::/16", Translated, "6to4", "RFC 3056"},
	{"2620:4f:8000::/48", public, "Direct Delegation AS112 Service", "RFC 7534"},
	{"3fff::/20", Documentation, "Documentation", "RFC 9637"},
	{"5f00::/16", Reserved, "Segment Routing (SRv6) SIDs", "RFC 9602"},
	{"fc00::/7", Private, "Unique-Local", "RFC 4193, RFC 8190"},
	{"fe80::/10", LinkLocal, "Link-Local Unicast", "RFC 4291"},
}

// otherBlocks are blocks of other registries and RFCs.
var otherBlocks = []row{
	{"224.0.0.0/4", Multicast, "Multicast", "RFC 5771"},
	{"::/0", Reserved, "Reserved by IETF", "RFC 4291 section 2.4"}, // all but what IANA has assigned for unicast
	{"2000::/3", public, "Global Unicast", "RFC 4291 section 2.4"},
	{"::/96", Reserved | Translated, "IPv4-compatible", "RFC 4291 section 2.5.5.1, deprecated"},
	{"::ffff:0:0:0/96", Reserved | Translated, "IPv4-translated", "RFC 2765 section 2.1, replaced by RFC 6145"},
	{"fec0::/10", Private | Reserved, "Site-Local", "RFC 3879, deprecated"},
	{"ff00::/8", Multicast, "Multicast", "RFC 4291 section 2.7"},
}

// metadata are the addresses at which clouds give machines their credentials and configuration, as of May 2025.
var metadata = []row{
	{"169.254.169.254/32", LinkLocal | Metadata, "instance metadata", "AWS, Azure, Google Cloud, OpenStack and others"},
	{"169.254.170.2/32", LinkLocal | Metadata, "task credentials", "AWS ECS"},
	{"169.254.170.23/32", LinkLocal | Metadata, "pod identity", "AWS EKS"},
	{"169.254.0.23/32", LinkLocal | Metadata, "instance metadata", "Tencent Cloud"},
	{"169.254.42.42/32", LinkLocal | Metadata, "instance metadata", "Scaleway"},
	{"100.100.100.200/32", Shared | Metadata, "instance metadata", "Alibaba Cloud"},
	{"168.63.129.16/32", Metadata, "wire server", "Azure"},
	{"192.0.0.192/32", Reserved | Metadata, "instance metadata", "Oracle Cloud Classic"},
	{"fd00:ec2::254/128", Private | Metadata, "instance metadata", "AWS"},
	{"fd00:ec2::23/128", Private | Metadata, "pod identity", "AWS EKS"},
	{"fd20:ce::254/128", Private | Metadata, "instance metadata", "Google Cloud"},
	{"fd00:42::42/128", Private | Metadata, "instance metadata", "Scaleway"},
	{"fe80::a9fe:a9fe/128", LinkLocal | Metadata, "instance metadata", "OpenStack"},
}

// Blocks whose addresses hold an IPv4 address.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	compatible = netip.MustParsePrefix("::/96")
	stateless  = netip.MustParsePrefix("::ffff:0:0:0/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
)

// block is a row that is ready for the search.
type block struct {
	prefix netip.Prefix
	class  Class
}

// index lists the blocks of IPv4 and IPv6 by the first byte of their addresses, the longest prefix first. Most first
// bytes have no block in IPv4 and two in IPv6, so a search is short.
var index = func() (out [2][256][]block) {
	for _, r := range slices.Concat(ianaIPv4, ianaIPv6, otherBlocks, metadata) {
		b := block{netip.MustParsePrefix(r.block), r.class}
		family, first := familyOf(b.prefix.Addr())
		for i := range 1 << max(0, 8-b.prefix.Bits()) {
			out[family][first+i] = append(out[family][first+i], b)
		}
	}
	for _, family := range out {
		for _, blocks := range family {
			slices.SortFunc(blocks, func(a, b block) int { return cmp.Compare(b.prefix.Bits(), a.prefix.Bits()) })
		}
	}
	return out
}()

// familyOf returns where the blocks of an address are in the index.
func familyOf(a netip.Addr) (family, first int) {
	if a.Is4() {
		b := a.As4()
		return 0, int(b[0])
	}
	b := a.As16()
	return 1, int(b[0])
}

// blockOf returns the block of an address that has the longest prefix; the zero block for none.
func blockOf(a netip.Addr) block {
	family, first := familyOf(a)
	for _, b := range index[family][first] {
		if b.prefix.Contains(a) {
			return b
		}
	}
	return block{}
}

// classOf returns the class of an address itself. An invalid address is unspecified.
func classOf(a netip.Addr) Class {
	if !a.IsValid() {
		return Unspecified
	}
	return blockOf(a).class
}
