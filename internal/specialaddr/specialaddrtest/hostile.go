// Package specialaddrtest lists addresses for the tests of all packages with an address policy. Start with Hostile, the
// addresses that every policy must refuse.
package specialaddrtest

import "net/netip"

// Prefix is a NAT64 prefix of an operator, for the Tables of tests.
var Prefix = netip.MustParsePrefix("2a0f:64::/96")

// Hostile are addresses of the host itself, its link or its cloud, and unassigned ones. Every policy refuses them.
var Hostile = addrs(
	"127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1", "240.0.0.1", "255.255.255.255",
	"169.254.1.1", "fe80::1", "100.64.0.1", "100.127.255.254",
	"169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16", "192.0.0.192",
	"fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe",
	"::ffff:169.254.169.254", "::ffff:127.0.0.1", // IPv4-mapped
	"::127.0.0.1", "::ffff:0:127.0.0.1", // IPv4-compatible and IPv4-translated
	"64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::100.64.0.1", "64:ff9b::168.63.129.16",
	"64:ff9b:1::169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9fe:a9:fe00:808:808",
	"64:ff9b:1:7f:0:1:808:808",
	"2a0f:64::169.254.169.254", "2a0f:64::127.0.0.1",
	"2002:7f00:1::1", "2002:a9fe:a9fe::", "2002:6440:1::", // 6to4
	"2001:0:a9fe:a9fe::f6f6:f6f6", "2001:0:909:909::80ff:fffe", // Teredo: the server, and the client
	"100::1", "5f00::1", "fec0::1", "4000::1",
)

// Private are addresses of private networks and laboratories. Policies about the public internet refuse them.
var Private = addrs(
	"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "198.18.0.1", "fc00::1", "fd12:3456::1",
	"::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "64:ff9b:1::10.1.2.3", "2a0f:64::192.168.0.1", "2002:a01:203::1",
	"2001:0:a01:203::f6f6:f6f6",
)

// Public are addresses that no policy refuses.
var Public = addrs("9.9.9.9", "2620:fe::fe", "172.32.0.1", "100.128.0.1", "64:ff9b::9.9.9.9", "2a0f:64::9.9.9.9",
	"2002:909:909::1", "192.0.0.9", "2001:4:112::1")

func addrs(texts ...string) (out []netip.Addr) {
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}
