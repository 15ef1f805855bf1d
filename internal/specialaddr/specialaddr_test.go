package specialaddr

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// registry is the content of IANA's registries of special-purpose addresses: block, name, and whether it is globally
// reachable.
const registry = `
0.0.0.0/8           | This network                                       | False
0.0.0.0/32          | This host on this network                          | False
10.0.0.0/8          | Private-Use                                        | False
100.64.0.0/10       | Shared Address Space                               | False
127.0.0.0/8         | Loopback                                           | False
169.254.0.0/16      | Link Local                                         | False
172.16.0.0/12       | Private-Use                                        | False
192.0.0.0/24        | IETF Protocol Assignments                          | False
192.0.0.0/29        | IPv4 Service Continuity Prefix                     | False
192.0.0.8/32        | IPv4 dummy address                                 | False
192.0.0.9/32        | Port Control Protocol Anycast                      | True
192.0.0.10/32       | Traversal Using Relays around NAT Anycast          | True
192.0.0.170/32      | NAT64/DNS64 Discovery                              | False
192.0.0.171/32      | NAT64/DNS64 Discovery                              | False
192.0.2.0/24        | Documentation (TEST-NET-1)                         | False
192.31.196.0/24     | AS112-v4                                           | True
192.52.193.0/24     | AMT                                                | True
192.88.99.0/24      | Deprecated (6to4 Relay Anycast)                    | N/A
192.88.99.2/32      | 6a44-relay anycast address                         | False
192.168.0.0/16      | Private-Use                                        | False
192.175.48.0/24     | Direct Delegation AS112 Service                    | True
198.18.0.0/15       | Benchmarking                                       | False
198.51.100.0/24     | Documentation (TEST-NET-2)                         | False
203.0.113.0/24      | Documentation (TEST-NET-3)                         | False
240.0.0.0/4         | Reserved                                           | False
255.255.255.255/32  | Limited Broadcast                                  | False
::1/128             | Loopback Address                                   | False
::/128              | Unspecified Address                                | False
::ffff:0:0/96       | IPv4-mapped Address                                | False
64:ff9b::/96        | IPv4-IPv6 Translat.                                | True
64:ff9b:1::/48      | IPv4-IPv6 Translat.                                | False
100::/64            | Discard-Only Address Block                         | False
100:0:0:1::/64      | Dummy IPv6 Prefix                                  | False
2001::/23           | IETF Protocol Assignments                          | False
2001::/32           | TEREDO                                             | N/A
2001:1::1/128       | Port Control Protocol Anycast                      | True
2001:1::2/128       | Traversal Using Relays around NAT Anycast          | True
2001:1::3/128       | DNS-SD Service Registration Protocol Anycast       | True
2001:2::/48         | Benchmarking                                       | False
2001:3::/32         | AMT                                                | True
2001:4:112::/48     | AS112-v6                                           | True
2001:10::/28        | Deprecated (previously ORCHID)                     | N/A
2001:20::/28        | ORCHIDv2                                           | True
2001:30::/28        | Drone Remote ID Protocol Entity Tags (DETs) Prefix | True
2001:db8::/32       | Documentation                                      | False
2002::/16           | 6to4                                               | N/A
2620:4f:8000::/48   | Direct Delegation AS112 Service                    | True
3fff::/20           | Documentation                                      | False
5f00::/16           | Segment Routing (SRv6) SIDs                        | False
fc00::/7            | Unique-Local                                       | False
fe80::/10           | Link-Local Unicast                                 | False
`

// TestRegistries compares the table with IANA's registries, entry by entry. An entry without a class of Special is
// public, or leads to an IPv4 address that decides.
func TestRegistries(t *testing.T) {
	rows := slices.Concat(ianaIPv4, ianaIPv6)
	lines := strings.Split(strings.TrimSpace(registry), "\n")
	if len(lines) != len(rows) {
		t.Fatalf("the table has %d rows, and the registries %d", len(rows), len(lines))
	}
	for i, line := range lines {
		var entry [3]string
		for n, f := range strings.Split(line, "|") {
			entry[n] = strings.TrimSpace(f)
		}
		r := rows[i]
		if r.block != entry[0] || r.name != entry[1] {
			t.Errorf("row %d is %s %q, want %s %q", i, r.block, r.name, entry[0], entry[1])
		}
		special := r.class&Special != 0
		if r.class&(Mapped|Translated) == 0 && special != (entry[2] != "True") {
			t.Errorf("%s (%s) is %s; the registry says globally reachable: %s", r.block, r.name, r.class, entry[2])
		}
	}
}

// TestRows looks up the first and the last address of each row, and checks that the row names its source.
func TestRows(t *testing.T) {
	rows := slices.Concat(ianaIPv4, ianaIPv6, otherBlocks, metadata)
	seen := map[string]bool{}
	for _, r := range rows {
		p, err := netip.ParsePrefix(r.block)
		if err != nil || p.Masked() != p || seen[r.block] || r.name == "" || r.ref == "" {
			t.Errorf("%+v: malformed, twice, or without name or reference (%v)", r, err)
		}
		seen[r.block] = true
		if p.Addr().Is4In6() || r.block == "::/0" {
			continue // Classes judges the IPv4 address; the ends of ::/0 are in other blocks
		}
		for _, a := range []netip.Addr{p.Addr(), last(p)} {
			within := slices.ContainsFunc(rows, func(x row) bool {
				q := netip.MustParsePrefix(x.block)
				return q.Bits() > p.Bits() && q.Contains(a)
			})
			if got := classOf(a); got != r.class && !within {
				t.Errorf("%s of %s (%s) has the class %s, want %s", a, r.block, r.name, got, r.class)
			}
		}
	}
}

// last returns the last address of a prefix.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestClasses(t *testing.T) {
	own := Table{NAT64: []netip.Prefix{nat64Prefix(t, "2001:db8:64::/96"), nat64Prefix(t, "2a00:64::/32"),
		nat64Prefix(t, "64:ff9b:1:abcd::/96")}}
	tests := []struct {
		table Table
		addr  string
		want  Class
	}{
		{Table{}, "9.9.9.9", 0},
		{Table{}, "2620:fe::fe", 0},
		{Table{}, "::ffff:9.9.9.9", Mapped},
		{Table{}, "64:ff9b::9.9.9.9", Translated},
		{Table{}, "2002:909:909::1", Translated},
		{Table{}, "192.0.0.9", 0},
		{Table{}, "192.0.0.11", Reserved},
		{Table{}, "172.15.255.255", 0},
		{Table{}, "172.31.255.255", Private},
		{Table{}, "172.32.0.0", 0},
		{Table{}, "100.63.255.255", 0},
		{Table{}, "100.64.0.1", Shared},
		{Table{}, "100.127.255.255", Shared},
		{Table{}, "100.128.0.0", 0},
		{Table{}, "4000::1", Reserved},
		{Table{}, "fdff::1", Private},
		{Table{}, "febf::1", LinkLocal},
		{Table{}, "fec0::1", Private | Reserved},
		{Table{}, "fe80::1%eth0", LinkLocal},
		{Table{}, "::ffff:169.254.169.254", Mapped | LinkLocal | Metadata},
		{Table{}, "64:ff9b::169.254.169.254", Translated | LinkLocal | Metadata},
		{Table{}, "64:ff9b::a9fe:a9fe%eth0", Translated | LinkLocal | Metadata},
		{Table{}, "64:ff9b::100.100.100.200", Translated | Shared | Metadata},
		{Table{}, "2002:7f00:1::1", Translated | Loopback},
		{Table{}, "2002:a9fe:a9fe::", Translated | LinkLocal | Metadata},
		{Table{}, "::127.0.0.1", Reserved | Translated | Loopback},
		{Table{}, "::ffff:0:10.0.0.1", Reserved | Translated | Private},
		{Table{}, "64:ff9b:1::10.0.0.1", Private | Translated},
		{Table{}, "64:ff9b:1:a9fe:a9:fe00::", Private | Translated | LinkLocal | Metadata | Reserved},   // 48 bits
		{Table{}, "64:ff9b:1:7f:0:1:808:808", Private | Translated | Loopback},                          // 56 bits
		{Table{}, "64:ff9b:1:0:a9:fea9:fe00:0", Private | Translated | LinkLocal | Metadata | Reserved}, // 64 bits
		{Table{}, "64:ff9b:1::", Private | Translated | Unspecified},
		{Table{}, "2001:0:909:909:0:0:f6f6:f6f6", Translated},                       // Teredo: 9.9.9.9 by 9.9.9.9
		{Table{}, "2001:0:a9fe:a9fe::f6f6:f6f6", Translated | LinkLocal | Metadata}, // its server
		{Table{}, "2001:0:909:909::80ff:fffe", Translated | Loopback},               // its client
		{Table{}, "2001:db8:64::10.0.0.1", Documentation},
		{own, "2001:db8:64::10.0.0.1", Documentation | Translated | Private},
		{own, "2a00:64:a9fe:a9fe::", Translated | LinkLocal | Metadata},
		{own, "2a00:64:909:909::", Translated},
		{own, "64:ff9b:1:abcd::9.9.9.9", Private | Translated}, // the length is known: not at other positions
		{own, "64:ff9b::10.0.0.1", Translated | Private},
	}
	for _, tt := range tests {
		a := netip.MustParseAddr(tt.addr)
		if got := tt.table.Classes(a); got != tt.want {
			t.Errorf("Classes(%s) = %012b, %s, want %012b, %s", tt.addr, got, got, tt.want, tt.want)
		}
		if got, want := tt.table.Public(a), tt.want&Special == 0; got != want {
			t.Errorf("Public(%s) = %v, want %v", tt.addr, got, want)
		}
	}
	if (Table{}).Public(netip.Addr{}) {
		t.Error("the invalid address is public")
	}
}

func nat64Prefix(t *testing.T, s string) netip.Prefix {
	t.Helper()
	p, err := ParseNAT64(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAllowed checks that a wide network of an administrator does not allow special addresses.
func TestAllowed(t *testing.T) {
	tests := []struct {
		networks string
		addr     string
		want     bool
	}{
		{"0.0.0.0/0 ::/0", "9.9.9.9", true},
		{"0.0.0.0/0 ::/0", "::ffff:9.9.9.9", true},
		{"0.0.0.0/0 ::/0", "64:ff9b::9.9.9.9", true},
		{"0.0.0.0/0 ::/0", "2620:fe::fe", true},
		{"0.0.0.0/0 ::/0", "127.0.0.1", false},
		{"0.0.0.0/0 ::/0", "4000::1", false},
		{"0.0.0.0/0 ::/0", "::1", false},
		{"0.0.0.0/0 ::/0", "10.0.0.1", false},
		{"0.0.0.0/0 ::/0", "100.64.0.1", false},
		{"0.0.0.0/0 ::/0", "fd00::1", false},
		{"0.0.0.0/0 ::/0", "64:ff9b::10.0.0.1", false},
		{"0.0.0.0/0 ::/0", "2002:7f00:1::", false},
		{"0.0.0.0/0 ::/0", "::ffff:169.254.169.254", false},
		{"0.0.0.0/0 ::/0", "168.63.129.16", false},
		{"::/0 10.0.0.0/8", "64:ff9b::10.0.0.1", true},
		{"10.0.0.0/8", "64:ff9b::10.0.0.1", false},
		{"10.0.0.0/8", "10.1.2.3", true},
		{"10.0.0.0/7", "10.1.2.3", false},
		{"10.0.0.0/8", "::ffff:10.1.2.3", true},
		{"127.0.0.0/8", "127.0.0.1", true},
		{"fd00::/8", "fd00::1", true},
		{"fd00::/8", "fd00:ec2::254", false},
		{"169.254.0.0/16", "169.254.1.1", true},
		{"169.254.0.0/16", "169.254.169.254", false},
		{"169.254.169.254/32", "169.254.169.254", true},
		{"", "9.9.9.9", false},
		{"fe80::/10", "fe80::1%eth0", true},
	}
	for _, tt := range tests {
		var networks []netip.Prefix
		for _, s := range strings.Fields(tt.networks) {
			networks = append(networks, netip.MustParsePrefix(s))
		}
		if got := (Table{}).Allowed(networks, netip.MustParseAddr(tt.addr)); got != tt.want {
			t.Errorf("Allowed(%s, %s) = %v, want %v", tt.networks, tt.addr, got, tt.want)
		}
	}
}

// TestEmbedded checks the example of RFC 6052 section 2.4: 192.0.2.33 after a prefix of each length.
func TestEmbedded(t *testing.T) {
	for prefix, addr := range map[string]string{
		"2001:db8::/32":         "2001:db8:c000:221::",
		"2001:db8:100::/40":     "2001:db8:1c0:2:21::",
		"2001:db8:122::/48":     "2001:db8:122:c000:2:2100::",
		"2001:db8:122:300::/56": "2001:db8:122:3c0:0:221::",
		"2001:db8:122:344::/64": "2001:db8:122:344:c0:2:2100::",
		"2001:db8:122:344::/96": "2001:db8:122:344::192.0.2.33",
	} {
		table := Table{NAT64: []netip.Prefix{nat64Prefix(t, prefix)}}
		got := table.Ends(netip.MustParseAddr(addr))
		if want := netip.MustParseAddr("192.0.2.33"); len(got) != 1 || got[0] != want {
			t.Errorf("%s: Ends(%s) = %v, want %s", prefix, addr, got, want)
		}
	}
}

func TestParseNAT64(t *testing.T) {
	for _, s := range []string{"", "64:ff9b::", "10.0.0.0/8", "2001:db8::/33", "2001:db8::/128", "::ffff:10.0.0.0/96",
		"2001:db8::%eth0/96"} {
		if p, err := ParseNAT64(s); err == nil {
			t.Errorf("ParseNAT64(%q) = %s, want an error", s, p)
		}
	}
}

// TestNoAllocation checks for allocations, because the addresses of every answer are classified.
func TestNoAllocation(t *testing.T) {
	for _, s := range []string{"9.9.9.9", "2620:fe::fe", "10.0.0.1", "fe80::1"} {
		a := netip.MustParseAddr(s)
		if n := testing.AllocsPerRun(100, func() { _ = (Table{}).Classes(a) }); n > 0 {
			t.Errorf("Classes(%s) allocates %v times", s, n)
		}
	}
}

func BenchmarkClasses(b *testing.B) {
	for _, s := range []string{"9.9.9.9", "192.168.1.1", "2620:fe::fe", "2001:db8::1", "64:ff9b::9.9.9.9"} {
		b.Run(s, func(b *testing.B) {
			a := netip.MustParseAddr(s)
			for b.Loop() {
				_ = Table{}.Classes(a)
			}
		})
	}
}
