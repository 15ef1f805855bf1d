// Package explain generates random trees of zones for the tests of explain: healthy ones, and ones with known faults.
//
// Start with Healthy in this file and Break in faults.go. Tree.Build puts the servers of a tree onto a simulated
// network.
package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/simnet"
)

// Tree is a root, a top-level domain and a domain below it, with all servers and resolvers.
type Tree struct {
	Domain string // "d17.com."
	Name   string // the name that is analyzed and compared
	Faults []string
	// Private makes the tree an internal name space, which is scanned with --private.
	Private bool

	seed     uint64
	rng      *rand.Rand
	hosts    []*host             // servers of the domain
	parent   [2][]string         // records of the domain at each server of the top-level domain
	staleDS  bool                // the second server of the top-level domain has no DS
	tldSigns string              // how the top-level domain is signed wrongly: words of the command sign
	root2    []string            // script of a second root server; nil: there is none
	atTLD    []string            // script lines of the second server of the top-level domain
	others   map[string][]string // script lines of other servers, by address
	records  []string            // records of the zone except SOA and NS
	soa      soa
	childNS  []string
	ttl      int    // TTL of most records
	end      string // last name of the chain of aliases
	signed   bool
	caches   map[string][]string // script lines of resolvers, by address
	ds       string              // DS line at the parent, if the tree is not signed
	oldAddr  string              // a second address of the last server
}

// host is a server of the domain.
type host struct {
	name   string
	addr   string
	soa    soa
	zone   bool     // has the zone
	lines  []string // its own script lines, after those of the zone
	listed bool     // listed by the child
}

type soa struct {
	ttl                             int
	mname, rname                    string
	serial                          int
	refresh, retry, expire, minimum int
}

func (s soa) line(zone string) string {
	return fmt.Sprintf("%s %d SOA %s %s %d %d %d %d %d", zone, s.ttl, s.mname, s.rname, s.serial, s.refresh, s.retry,
		s.expire, s.minimum)
}

// Addresses of the root, of the top-level domains and of another DNS operator.
const (
	rootAddr  = "198.41.0.4"
	rootAddr2 = "170.247.170.2"
	tldAddr1  = "192.5.6.30"
	tldAddr2  = "192.33.14.30"
	otherAddr = "93.184.2.1" // an operator that hosts the zones of others
)

// resolverAddrs are the resolvers. All are good; faults change the last one.
var resolverAddrs = []string{"8.8.8.8", "1.1.1.1", "9.9.9.10"}

// Healthy returns a tree without faults: two to four servers, inside the domain or not, with or without an alias,
// signed or not, with common TTLs and SOA times.
func Healthy(seed uint64) *Tree {
	rng := rand.New(rand.NewPCG(seed, 17))
	t := &Tree{rng: rng, Domain: fmt.Sprintf("d%d.com.", seed), others: map[string][]string{},
		caches: map[string][]string{}}
	t.Name = pick(rng, "www.", "app.", "a.b.") + t.Domain
	t.ttl = pick(rng, 60, 300, 900, 3600)
	t.signed = rng.IntN(4) == 0
	inside := rng.IntN(3) > 0
	t.soa = soa{ttl: pick(rng, 300, 900, 3600), mname: "ns1." + t.Domain,
		rname: pick(rng, "hostmaster.", `host\.master.`) + t.Domain, serial: 2026010101 + rng.IntN(90),
		refresh: pick(rng, 3600, 7200, 14400), retry: pick(rng, 900, 1800), expire: pick(rng, 1209600, 2419200),
		minimum: pick(rng, 60, 300, 900)}
	for i := range 2 + rng.IntN(3) {
		h := &host{name: fmt.Sprintf("ns%d.%s", i+1, t.Domain), addr: fmt.Sprintf("%d.%d.%d.1", []int{93, 23, 45, 66}[i],
			100+rng.IntN(100), 1+rng.IntN(250)), zone: true, listed: true, soa: t.soa}
		if !inside {
			h.name = fmt.Sprintf("ns%d.dnshost.net.", i+1)
		}
		t.hosts = append(t.hosts, h)
		t.childNS = append(t.childNS, h.name)
	}
	t.soa.mname = t.hosts[0].name
	for _, h := range t.hosts {
		h.soa = t.soa
	}
	for i := range t.parent {
		t.parent[i] = t.delegation(t.childNS)
	}
	t.addRecords()
	t.addMail(seed)
	return t
}

func pick[T any](rng *rand.Rand, all ...T) T { return all[rng.IntN(len(all))] }

// inside reports whether the servers are inside the domain, so that they need glue.
func (t *Tree) inside() bool { return strings.HasSuffix(t.hosts[0].name, t.Domain) }

// delegation returns the lines of the parent for some nameservers.
func (t *Tree) delegation(ns []string) []string {
	out := []string{fmt.Sprintf("%s 172800 NS %s", t.Domain, strings.Join(ns, ", "))}
	for _, h := range t.hosts {
		if t.inside() && slices.Contains(ns, h.name) {
			out = append(out, fmt.Sprintf("%s 172800 %s %s", h.name, addressType(h.addr), h.addr))
		}
	}
	return out
}

// addressType returns the type of the record for an address.
func addressType(addr string) string {
	if strings.Contains(addr, ":") {
		return "AAAA"
	}
	return "A"
}

// addRecords adds the records of the zone, except SOA and NS.
func (t *Tree) addRecords() {
	t.end = t.Name
	addrs := []string{fmt.Sprintf("93.184.%d.%d", 10+t.rng.IntN(80), 1+t.rng.IntN(250))}
	if t.rng.IntN(3) == 0 {
		addrs = append(addrs, fmt.Sprintf("93.184.%d.%d", 10+t.rng.IntN(80), 1+t.rng.IntN(250)))
	}
	switch t.rng.IntN(3) {
	case 0: // an alias in the zone
		t.end = "web." + t.Domain
		t.add("%s %d CNAME %s", t.Name, t.ttl, t.end)
	case 1: // an alias into another zone
		t.end = fmt.Sprintf("e%d.edge.net.", t.rng.IntN(100))
		t.add("%s %d CNAME %s", t.Name, t.ttl, t.end)
	}
	a, aaaa := fmt.Sprintf("%s %d A %s", t.end, t.ttl, strings.Join(addrs, ", ")),
		fmt.Sprintf("%s %d AAAA 2606:2800:10::%x", t.end, t.ttl, 1+t.rng.IntN(60000))
	if strings.HasSuffix(t.end, t.Domain) {
		t.add("%s", a)
		t.add("%s", aaaa)
	} else {
		t.others[otherAddr] = append(t.others[otherAddr], a, aaaa)
	}
	t.add("%s %d A %s", t.Domain, t.ttl, addrs[0])
	t.add("%s 3600 MX 10 mail.%s", t.Domain, t.Domain)
	t.add("mail.%s 3600 A %s", t.Domain, addrs[0])
}

func (t *Tree) add(format string, a ...any) { t.records = append(t.records, fmt.Sprintf(format, a...)) }

// Build puts the tree onto a network.
func (t *Tree) Build(n *simnet.Net) error {
	servers := map[string][]string{}
	add := func(addr string, lines ...string) { servers[addr] = append(servers[addr], lines...) }
	t.addUpperZones(add)
	add(tldAddr2, t.atTLD...)
	for _, h := range t.hosts {
		if h.zone {
			add(h.addr, t.zoneAt(h)...)
		}
		add(h.addr, h.lines...)
	}
	if t.oldAddr != "" {
		add(t.oldAddr, t.zoneAt(t.last())...)
		add(t.oldAddr, t.last().lines...)
	}
	for addr, lines := range t.others {
		add(addr, lines...)
	}
	for _, r := range resolverAddrs {
		add(r, "resolve "+rootAddr, "clamp 86400 3600")
		add(r, t.caches[r]...)
	}
	for addr, lines := range servers {
		if _, err := n.Server(addr, strings.Join(lines, "\n")); err != nil {
			return fmt.Errorf("%s at %s: %w", t.Domain, addr, err)
		}
	}
	return nil
}

// zoneAt returns the lines of the zone at one of its servers.
func (t *Tree) zoneAt(h *host) []string {
	lines := []string{"zone " + t.Domain, h.soa.line(t.Domain),
		fmt.Sprintf("%s %d NS %s", t.Domain, 86400, strings.Join(t.childNS, ", "))}
	for _, x := range t.hosts {
		if t.inside() {
			lines = append(lines, fmt.Sprintf("%s 86400 %s %s", x.name, addressType(x.addr), x.addr))
		}
	}
	lines = append(lines, t.records...)
	if t.signed {
		lines = append(lines, "sign "+t.Domain)
	}
	return lines
}

// addUpperZones adds the root, com, net, and the operator of dnshost.net and edge.net.
func (t *Tree) addUpperZones(add func(string, ...string)) {
	t.addRoot(add)
	for i, addr := range []string{tldAddr1, tldAddr2} {
		add(addr, "zone com.", "com. 900 SOA a.gtld-servers.net. nstld.example.net. 1 1800 900 604800 900",
			"com. 172800 NS a.gtld-servers.net., b.gtld-servers.net.")
		add(addr, t.parent[i]...)
		if t.signed && (i == 0 || !t.staleDS) {
			add(addr, "ds "+t.Domain+" 86400")
		}
		if t.ds != "" {
			add(addr, t.ds)
		}
		add(addr, "sign com. "+t.tldSigns)
		add(addr, "zone net.", "net. 900 SOA a.gtld-servers.net. nstld.example.net. 1 1800 900 604800 900",
			"net. 172800 NS a.gtld-servers.net., b.gtld-servers.net.",
			"a.gtld-servers.net. 172800 A "+tldAddr1, "b.gtld-servers.net. 172800 A "+tldAddr2,
			"dnshost.net. 172800 NS a.dnshost.net., b.dnshost.net.", "a.dnshost.net. 172800 A "+otherAddr,
			"b.dnshost.net. 172800 A 23.192.2.1",
			"edge.net. 172800 NS a.dnshost.net., b.dnshost.net.")
	}
	for _, addr := range []string{otherAddr, "23.192.2.1"} {
		add(addr, "zone dnshost.net.", "dnshost.net. 3600 SOA a.dnshost.net. host.dnshost.net. 1 7200 3600 1209600 300",
			"dnshost.net. 86400 NS a.dnshost.net., b.dnshost.net.",
			"a.dnshost.net. 86400 A "+otherAddr, "b.dnshost.net. 86400 A 23.192.2.1")
		for _, h := range t.hosts {
			if strings.HasSuffix(h.name, "dnshost.net.") {
				add(addr, fmt.Sprintf("%s 86400 %s %s", h.name, addressType(h.addr), h.addr))
			}
		}
		add(addr, "zone edge.net.", "edge.net. 3600 SOA a.dnshost.net. host.dnshost.net. 1 7200 3600 1209600 60",
			"edge.net. 86400 NS a.dnshost.net., b.dnshost.net.")
		if addr != otherAddr {
			add(addr, t.others[otherAddr]...)
		}
	}
}

// addRoot adds the root servers.
func (t *Tree) addRoot(add func(string, ...string)) {
	zone := []string{"zone .", ". 86400 SOA a.root-servers.net. nstld.example.net. 1 1800 900 604800 86400",
		". 518400 NS a.root-servers.net.",
		"com. 172800 NS a.gtld-servers.net., b.gtld-servers.net.", "net. 172800 NS a.gtld-servers.net., b.gtld-servers.net.",
		"a.gtld-servers.net. 172800 A " + tldAddr1, "b.gtld-servers.net. 172800 A " + tldAddr2,
		"a.root-servers.net. 518400 A " + rootAddr, "ds com. 86400", "sign ."}
	if t.root2 != nil {
		zone = append(zone, ". 518400 NS b.root-servers.net.", "b.root-servers.net. 518400 A "+rootAddr2)
		add(rootAddr2, zone...)
		add(rootAddr2, t.root2...)
	}
	add(rootAddr, zone...)
}
