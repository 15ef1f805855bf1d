package compare

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

// askedTypes are the types to ask for at every name, besides the types found there.
var askedTypes = []uint16{
	dns.TypeA, dns.TypeAAAA, dns.TypeNS, dns.TypeSOA, dns.TypeCNAME, dns.TypeDNAME, dns.TypeMX,
	dns.TypeTXT, dns.TypeSRV, dns.TypeDS, dns.TypeHTTPS, dns.TypeANY, 65280,
}

// extraNames are names that do not follow from the zones.
var extraNames = []string{
	// RFC 4592 §2.2.1: its examples of synthesis and of no synthesis
	"host3.wild.test.", "foo.bar.wild.test.", "host1.wild.test.", "sub.*.wild.test.", "_telnet._tcp.host1.wild.test.",
	"host.subdel.wild.test.", "ghost.*.wild.test.", "*.wild.test.", "_tcp.host1.wild.test.", "host2.wild.test.",
	// label boundaries: \. is part of a label
	`attacker\.example.test.`, `attacker\.example.torture.test.`, `x.attacker\.example.test.`, `attacker.example.test.`,
	`attacker\.torture.test.`, `www\.child.torture.test.`, `xtorture.test.`, `x\.torture.test.`,
	// names outside the zones
	".", "test.", "example.org.", "www.example.org.", "orture.test.",
	// DNAME: below, deep below, a wildcard at its target, the name itself
	"y.d.chain.test.", "x.y.d.chain.test.", "any.wc.d.chain.test.", "*.d.chain.test.", "x.dring.chain.test.",
	"www.dx.chain.test.", "www.cut.dx.chain.test.", "a.b.c.dout.chain.test.", "w.ddd.chain.test.", "c.dd.chain.test.",
	"foo.apexd.test.", "host1.apexd.test.", "a.b.apexd.test.", "_ssh._tcp.host1.apexd.test.",
	// DNAME whose expansion has exactly 255 bytes, and one byte more
	strings.Repeat("p", 43) + ".long.chain.test.", strings.Repeat("p", 51) + ".long.chain.test.",
	strings.Repeat("p", 52) + ".long.chain.test.", strings.Repeat("p", 63) + ".long.chain.test.",
	strings.Repeat("a", 51) + ".d.long.test.", strings.Repeat("a", 52) + ".d.long.test.",
	"x." + strings.Repeat("a", 51) + ".d.long.test.",
	// wildcards below an empty non-terminal, and beside one
	"x.ent.wild.torture.test.", "y.x.wild.torture.test.", "x.only.ent.wild.torture.test.", "x.ent2.wild.torture.test.",
	"x.host.wild.torture.test.", "b.*.star.torture.test.", "x.y.*.star.torture.test.", "x.a.*.star.torture.test.",
	"x.cut.under.torture.test.", "deep.x.under.torture.test.", "x.y.z.sub.torture.test.", "*.sub.torture.test.",
}

// torture reads the zones of testdata. It returns the zones for the servers, and the questions.
func torture(t *testing.T) ([]peers.Zone, []question) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.zone")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/*.zone: %v, %v", files, err)
	}
	var zones []peers.Zone
	types := map[string][]uint16{}
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		zones = append(zones, peers.Zone{Name: readNames(t, path, types), File: path})
	}
	// Parents come first, so that a server that checks delegations sees them in the natural order.
	slices.SortFunc(zones, func(a, b peers.Zone) int { return dns.CountLabel(a.Name) - dns.CountLabel(b.Name) })
	return zones, questions(types)
}

// readNames adds the names of a zone file, and the targets of its records, to types. It returns the name of the zone.
func readNames(t *testing.T, path string, types map[string][]uint16) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	apex := ""
	p := dns.NewZoneParser(f, "", path)
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		h := rr.Header()
		if h.Rrtype == dns.TypeSOA {
			apex = h.Name
		}
		types[h.Name] = append(types[h.Name], h.Rrtype)
		if target := pointsTo(rr); target != "" {
			types[target] = append(types[target], dns.TypeA)
		}
	}
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	return apex
}

func pointsTo(rr dns.RR) string {
	switch rr := rr.(type) {
	case *dns.CNAME:
		return rr.Target
	case *dns.DNAME:
		return rr.Target
	case *dns.NS:
		return rr.Ns
	case *dns.MX:
		return rr.Mx
	}
	return ""
}

// questions combines all names and their variants with all types, in a stable order.
func questions(types map[string][]uint16) []question {
	asked := map[question]bool{}
	ask := func(name string, more []uint16) {
		name, ok := wireName(name)
		if !ok {
			return
		}
		for _, t := range askedTypes {
			asked[question{name, t}] = true
		}
		for _, t := range more {
			asked[question{name, t}] = true
		}
	}
	for name, more := range types {
		ask(name, more)
		for _, variant := range variants(name) {
			ask(variant, more)
		}
	}
	for _, name := range extraNames {
		ask(name, nil)
		ask(mixCase(name), nil)
	}
	list := make([]question, 0, len(asked))
	for q := range asked {
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b question) int {
		return strings.Compare(fmt.Sprintf("%s %05d", a.name, a.qtype), fmt.Sprintf("%s %05d", b.name, b.qtype))
	})
	return list
}

// variants returns the ancestors of a name, a child, a sibling, the wildcards of both, and the name in another case.
func variants(name string) []string {
	variant := []string{"nx-child." + name, "nx.deep." + name, "*." + name, mixCase(name)}
	starts := dns.Split(name)
	for i, at := range starts {
		if i == 0 {
			continue
		}
		variant = append(variant, name[at:])
		if i == 1 {
			variant = append(variant, "nx-sibling."+name[at:], "*."+name[at:])
		}
	}
	return variant
}

// mixCase changes every second letter. \DDD escapes contain no letters.
func mixCase(name string) string {
	b := []byte(name)
	for i := 0; i < len(b); i += 2 {
		if c := b[i] | 0x20; 'a' <= c && c <= 'z' {
			b[i] ^= 0x20
		}
	}
	return string(b)
}

// wireName returns a name as it is unpacked from the wire, so that the question of a reply can be compared. It
// returns false when the name is longer than 255 bytes.
func wireName(name string) (string, bool) {
	buf := make([]byte, 512)
	n, err := dns.PackDomainName(name, buf, 0, nil, false)
	if err != nil || n > 255 {
		return "", false
	}
	spelled, _, err := dns.UnpackDomainName(buf, 0)
	return spelled, err == nil
}
