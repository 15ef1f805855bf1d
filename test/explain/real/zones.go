package real

import (
	"fmt"
	"strings"
)

// rootServers are the public root servers, which nameplane and resolvers have built in.
var rootServers = strings.Fields(`
	a 198.41.0.4 2001:503:ba3e::2:30 b 170.247.170.2 2801:1b8:10::b c 192.33.4.12 2001:500:2::c
	d 199.7.91.13 2001:500:2d::d e 192.203.230.10 2001:500:a8::e f 192.5.5.241 2001:500:2f::f
	g 192.112.36.4 2001:500:12::d0d h 198.97.190.53 2001:500:1::53 i 192.36.148.17 2001:7fe::53
	j 192.58.128.30 2001:503:c27::2:30 k 193.0.14.129 2001:7fd::1 l 199.7.83.42 2001:500:9f::42
	m 202.12.27.33 2001:dc3::35`)

// Addresses of authoritative servers. They are public addresses, since checkers object to those for documentation.
// The namespace has no route to the public servers at these addresses.
const (
	gtldA, gtldB    = "192.5.6.30", "192.33.14.30"
	gtldA6, gtldB6  = "2001:503:a83e::2:30", "2001:503:231d::2:30"
	alpha           = "185.49.140.10"  // NSD: good.com, other.net, and an older bad.com
	beta            = "194.246.96.10"  // BIND: good.com, other.net and live.com
	gamma           = "45.54.76.10"    // the same BIND
	badGlue         = "185.159.196.21" // NSD: ns1.bad.com in the glue of the parent
	badChild        = "185.159.196.22" // the same NSD: ns1.bad.com in the child
	badThird        = "185.159.196.23" // the same NSD: ns3.bad.com
	lame            = "185.159.197.24" // NSD without any of these zones
	soaOf           = "@ %d SOA ns1.%s hostmaster.%s %d 14400 3600 1209600 %d\n"
	delegationTTL   = 172800
	negativeSeconds = 6 // of live.com; short, since tests wait for it
)

// NewNegative is the negative TTL of new.com, in seconds.
const NewNegative = 600

// NearNegative is the negative TTL of near.com, in seconds.
const NearNegative = 12

// rootHints returns the hints file of the recursors.
func rootHints() string { return rootNS(".", 3600000) }

// rootNS returns NS records for the root servers, and their addresses.
func rootNS(owner string, ttl int) string {
	var b strings.Builder
	for i := 0; i < len(rootServers); i += 3 {
		host := rootServers[i] + ".root-servers.net."
		fmt.Fprintf(&b, "%s %d NS %s\n%s %d A %s\n%s %d AAAA %s\n", owner, ttl, host, host, ttl, rootServers[i+1], host, ttl,
			rootServers[i+2])
	}
	return b.String()
}

func rootAddrs() (out []string) {
	for i := 0; i < len(rootServers); i += 3 {
		out = append(out, rootServers[i+1:i+3]...)
	}
	return out
}

// gtldNS returns NS records for the servers of com and net.
func gtldNS(owner string) string {
	return fmt.Sprintf("%[1]s %[2]d NS a.gtld-servers.net.\n%[1]s %[2]d NS b.gtld-servers.net.\n", owner, delegationTTL)
}

func gtldGlue() string {
	return fmt.Sprintf(
		"a.gtld-servers.net. %[1]d A %[2]s\na.gtld-servers.net. %[1]d AAAA %[3]s\nb.gtld-servers.net. %[1]d A %[4]s\n"+
			"b.gtld-servers.net. %[1]d AAAA %[5]s\n",
		delegationTTL, gtldA, gtldA6, gtldB, gtldB6)
}

// delegation returns the records of a domain at its registry. Servers are NAME, or NAME=ADDRESS with glue.
func delegation(domain string, servers ...string) string {
	var b strings.Builder
	for _, s := range servers {
		host, glue, ok := strings.Cut(s, "=")
		fmt.Fprintf(&b, "%s. %d NS %s.\n", domain, delegationTTL, host)
		if ok {
			fmt.Fprintf(&b, "%s. %d A %s\n", host, delegationTTL, glue)
		}
	}
	return b.String()
}

func rootZone() string {
	return ". 86400 SOA a.root-servers.net. nstld.verisign-grs.com. 2026111500 1800 900 604800 86400\n" +
		rootNS(".", 518400) + gtldNS("com.") + gtldNS("net.") + gtldGlue()
}

func rootServersZone() string {
	return "@ 3600000 SOA a.root-servers.net. nstld.verisign-grs.com. 2026111500 14400 7200 1209600 3600000\n" +
		rootNS("@", 3600000)
}

func comZone() string {
	return "@ 900 SOA a.gtld-servers.net. nstld.verisign-grs.com. 2026111500 1800 900 604800 900\n" + gtldNS("@") +
		delegation("good.com", "ns1.good.com="+alpha, "ns2.good.com="+beta) +
		delegation("live.com", "ns1.live.com="+beta, "ns2.live.com="+gamma) +
		delegation("new.com", "ns1.new.com="+beta, "ns2.new.com="+gamma) +
		delegation("near.com", "ns1.near.com="+beta, "ns2.near.com="+gamma) +
		delegation("bad.com", "ns1.good.com", "ns1.bad.com="+badGlue, "lame.bad.com="+lame) +
		delegation("lame.com", "ns1.lame.com="+lame) +
		delegation("half.com", "ns1.half.com="+alpha, "ns2.half.com="+lame) +
		delegation("noglue.com", "ns1.noglue.com", "ns2.noglue.com")
}

func netZone() string {
	return "@ 900 SOA a.gtld-servers.net. nstld.verisign-grs.com. 2026111500 1800 900 604800 900\n" + gtldNS("@") +
		gtldNS("gtld-servers.net.") + gtldGlue() + rootNS("root-servers.net.", delegationTTL) +
		delegation("other.net", "ns1.good.com", "ns2.good.com")
}

func gtldServersZone() string {
	return "@ 900 SOA a.gtld-servers.net. nstld.verisign-grs.com. 2026111500 1800 900 604800 900\n" + gtldNS("@") +
		gtldGlue()
}

// apex returns the SOA and NS records of a healthy zone.
func apex(zone string, negative int, ns ...string) string {
	text := fmt.Sprintf(soaOf, max(negative, 6), zone+".", zone+".", 2026111501, negative)
	for _, s := range ns {
		host, addr, ok := strings.Cut(s, "=")
		text += "@ 3600 NS " + host + ".\n"
		if ok {
			text += fmt.Sprintf("%s. 3600 A %s\n", host, addr)
		}
	}
	return text
}

func goodZone() string {
	return apex("good.com", 600, "ns1.good.com="+alpha, "ns2.good.com="+beta) + `
@ 300 A 185.49.140.80
@ 300 AAAA 2a04:b900::80
@ 300 MX 10 mail
mail 300 A 185.49.140.25
www 300 A 185.49.140.80
www 300 AAAA 2a04:b900::80
shop 300 CNAME www.other.net.
loop 300 CNAME pool
pool 300 CNAME loop
`
}

func otherZone() string {
	return "@ 600 SOA ns1.good.com. hostmaster.good.com. 2026111501 14400 3600 1209600 600\n@ 3600 NS ns1.good.com.\n@ " +
		"3600 NS ns2.good.com.\n" +
		"@ 300 A 185.49.140.81\nwww 300 A 185.49.140.81\n"
}

func halfZone() string {
	return apex("half.com", 600, "ns1.half.com="+alpha, "ns2.half.com="+lame) + "www 300 A 185.49.140.82\n"
}

// liveZone returns the zone that tests change.
func liveZone() string {
	return apex("live.com", negativeSeconds, "ns1.live.com="+beta, "ns2.live.com="+gamma) +
		"www 300 A 185.49.140.83\na.target 300 A 185.49.140.84\nb.target 300 A 185.49.140.85\n"
}

// newZone returns the zone in which tests create names. Its negative TTL is long, so that no test is too slow to see
// it.
func newZone() string {
	return apex("new.com", NewNegative, "ns1.new.com="+beta, "ns2.new.com="+gamma) + "www 300 A 185.49.140.86\n"
}

// nearZone returns the zone in which NSEC ranges hide new names. Its negative TTL is short, since tests wait for it.
func nearZone() string {
	return apex("near.com", NearNegative, "ns1.near.com="+beta, "ns2.near.com="+gamma) + "www 300 A 185.49.140.87\n"
}

// badZone returns the zone with nine faults.
func badZone(serial int) string {
	return fmt.Sprintf(`@ 86400 SOA ns1.bad.com. host\@master.bad.com. %d 7200 7300 3600 86400
@ 3600 NS ns1.bad.com.
@ 3600 NS ns3.bad.com.
ns1 3600 A %s
ns3 3600 A %s
@ 300 A 185.159.196.80
www 300 CNAME nowhere.other.net.
`, serial, badChild, badThird)
}
