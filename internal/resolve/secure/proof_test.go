package secure

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

func absolute(s string) dnsname.Name {
	if s == "@" {
		return dnsname.MustParse("zone.test.")
	}
	return dnsname.MustParse(s + ".zone.test.")
}

func types(words []string) (out []uint16) {
	for _, w := range words {
		t, err := rr.ParseType(w)
		if err != nil {
			panic(err)
		}
		out = append(out, uint16(t))
	}
	return out
}

// proofs are NSEC records of zone.test. in the form "owner next TYPES", and what they must prove.
var proofs = []struct {
	name    string
	records []string
	prove   string // a kind, a name, and a type or a number
	want    Cause
}{
	{"a name", []string{"@ b NS SOA", "b d A"}, "name c", NoCause},
	{"a name, last record", []string{"b @ A", "@ b NS SOA"}, "name c", NoCause},
	{"a name, not covered", []string{"@ b NS SOA"}, "name c", BadDenial},
	{"a name, a wildcard may be there", []string{"b d A"}, "name c", BadDenial},
	{"a name, a wildcard is there", []string{"@ * NS SOA", "* b A", "b d A"}, "name c", BadDenial},
	{"a name that is there", []string{"@ c NS SOA", "c d A"}, "name c", BadDenial},
	{"a name that has names below", []string{"@ b NS SOA", "b x.c A"}, "name c", BadDenial},
	{"a name below a delegation", []string{"@ c NS SOA", "c d NS"}, "name x.c", BadDenial},
	{"a name below an alias of a tree", []string{"@ c NS SOA", "c d DNAME"}, "name x.c", BadDenial},
	{"a name deep down", []string{"@ c NS SOA", "c d A"}, "name x.c", NoCause},

	{"a type", []string{"c d A"}, "data c TXT", NoCause},
	{"a type that is there", []string{"c d A TXT"}, "data c TXT", BadDenial},
	{"a type beside an alias", []string{"c d CNAME"}, "data c TXT", BadDenial},
	{"a type of a name with names below only", []string{"b x.c A"}, "data c TXT", NoCause},
	{"a type by the parent", []string{"c d NS"}, "data c TXT", BadDenial},
	{"a type of a name that is not there", []string{"b d A", "@ b NS SOA"}, "data c TXT", BadDenial},
	{"a type of another name", []string{"x y A"}, "data c TXT", BadDenial},
	{"a type of a wildcard", []string{"b d A", "* b A"}, "data c TXT", NoCause},
	{"a type that the wildcard has", []string{"b d A", "* b TXT"}, "data c TXT", BadDenial},
	{"DS", []string{"c d NS"}, "data c DS", NoCause},
	{"DS by the child", []string{"c d NS SOA"}, "data c DS", BadDenial},

	{"nothing nearer", []string{"b d A"}, "closer c 2", NoCause},
	{"something nearer", []string{"b z.c A"}, "closer y.c 2", BadDenial},
	{"something nearer, not shown", []string{"x y A"}, "closer c 2", BadDenial},
}

func prove(t *testing.T, p prover, text string) judgement {
	t.Helper()
	words := strings.Fields(text)
	switch words[0] {
	case "name":
		return p.noName(absolute(words[1]))
	case "data":
		return p.noData(absolute(words[1]), types(words[2:])[0])
	}
	return p.noCloser(absolute(words[1]), int(words[2][0]-'0'))
}

func TestNSEC(t *testing.T) {
	for _, tt := range proofs {
		var n nsecs
		for _, r := range tt.records {
			words := strings.Fields(r)
			n.add(absolute("@"), absolute(words[0]), &dns.NSEC{NextDomain: absolute(words[1]).String(),
				TypeBitMap: types(words[2:])})
		}
		if got := prove(t, &n, tt.prove); got.cause != tt.want {
			t.Errorf("%s: %q %s, want %q", tt.name, got.cause, got.why, tt.want)
		}
	}
}

// hashed returns NSEC3 records of a zone, which is a map of names to types. It returns the records that match or
// cover the names in give.
func hashed(zone map[string]string, optOut bool, give []string) *nsec3s {
	n := &nsec3s{zone: absolute("@"), memo: map[hashKey]string{}}
	var order []string
	at := map[string]*dns.NSEC3{}
	for name, list := range zone {
		h := n.hash(absolute(name))
		order = append(order, h)
		at[h] = &dns.NSEC3{Hash: dns.SHA1, TypeBitMap: types(strings.Fields(list))}
		if optOut {
			at[h].Flags = 1
		}
	}
	slices.Sort(order)
	for _, g := range give {
		h := n.hash(absolute(g))
		i, _ := slices.BinarySearch(order, h)
		if at[h] == nil {
			i = (i + len(order) - 1) % len(order)
		}
		at[order[i]].NextDomain = order[(i+1)%len(order)]
		n.add(dnsname.MustParse(order[i]+".zone.test."), at[order[i]])
	}
	return n
}

func TestNSEC3(t *testing.T) {
	zone := map[string]string{"@": "NS SOA", "a": "A", "cut": "NS", "tree": "DNAME", "wild": "", "*.wild": "A",
		"alias": "CNAME"}
	tests := []struct {
		name   string
		optOut bool
		give   []string
		prove  string
		want   Cause
	}{
		{"a name", false, []string{"@", "c", "*"}, "name c", NoCause},
		{"a name, opt-out", true, []string{"@", "c", "*"}, "name c", OptOut},
		{"a name, no encloser", false, []string{"c", "*"}, "name c", BadDenial},
		{"a name deep down", false, []string{"a", "b.a", "*.a"}, "name x.b.a", NoCause},
		{"a name that is there", false, []string{"@", "a", "*"}, "name a", BadDenial},
		{"a name, a wildcard is there", false, []string{"wild", "c.wild", "*.wild"}, "name c.wild", BadDenial},
		{"a name below a delegation", false, []string{"cut", "x.cut", "*.cut"}, "name x.cut", BadDenial},
		{"a name below an alias of a tree", false, []string{"tree", "x.tree", "*.tree"}, "name x.tree", BadDenial},
		{"a type", false, []string{"a"}, "data a TXT", NoCause},
		{"a type that is there", false, []string{"a"}, "data a A", BadDenial},
		{"a type beside an alias", false, []string{"alias"}, "data alias A", BadDenial},
		{"a type by the parent", false, []string{"cut"}, "data cut A", BadDenial},
		{"a type of an empty name", false, []string{"wild"}, "data wild A", NoCause},
		{"a type of a wildcard", false, []string{"wild", "c.wild", "*.wild"}, "data c.wild TXT", NoCause},
		{"a type of a wildcard, opt-out", true, []string{"wild", "c.wild", "*.wild"}, "data c.wild TXT", OptOut},
		{"a type that the wildcard has", true, []string{"wild", "c.wild", "*.wild"}, "data c.wild A", BadDenial},
		{"a type of a name that is not there", false, []string{"@", "c"}, "data c A", BadDenial},
		{"DS", false, []string{"cut"}, "data cut DS", NoCause},
		{"DS by the child", false, []string{"@"}, "data @ DS", BadDenial},
		{"DS, opt-out", true, []string{"@", "c"}, "data c DS", OptOut},
		{"nothing nearer", false, []string{"c.wild"}, "closer c.wild 3", NoCause},
		{"nothing nearer, opt-out", true, []string{"c.wild"}, "closer x.c.wild 3", OptOut},
		{"something nearer", false, []string{"a"}, "closer a 2", BadDenial},
	}
	for _, tt := range tests {
		if got := prove(t, hashed(zone, tt.optOut, tt.give), tt.prove); got.cause != tt.want {
			t.Errorf("%s: %q %s, want %q", tt.name, got.cause, got.why, tt.want)
		}
	}
}

// TestOddNSEC3 checks that records of other zones, hashes, flags and parameters are ignored.
func TestOddNSEC3(t *testing.T) {
	n := &nsec3s{zone: absolute("@"), memo: map[hashKey]string{}}
	n.add(dnsname.MustParse("x.zone.test."), &dns.NSEC3{Hash: dns.SHA1, Iterations: 1, Salt: "ab"})
	for _, rec := range []*dns.NSEC3{{Hash: 2, Iterations: 1, Salt: "AB"}, {Hash: 1, Flags: 2, Iterations: 1,
		Salt: "AB"}, {Hash: 1, Iterations: 2, Salt: "AB"}, {Hash: 1, Iterations: 1}} {
		n.add(dnsname.MustParse("y.zone.test."), rec)
	}
	n.add(dnsname.MustParse("y.other.test."), &dns.NSEC3{Hash: 1, Iterations: 1, Salt: "AB"})
	if len(n.records) != 1 || n.salt != "AB" {
		t.Errorf("%+v", n)
	}
}

func TestDelegates(t *testing.T) {
	var n nsecs
	n.add(absolute("@"), absolute("c"), &dns.NSEC{NextDomain: absolute("d").String(), TypeBitMap: []uint16{dns.TypeTXT}})
	d := &denial{zone: &zone{name: absolute("@")}, nsec: n, broken: good, any: true}
	if j := d.noDS(absolute("c"), true); j.cause != BadDenial {
		t.Errorf("a referral to a name that is not a delegation: %+v", j)
	}
	if j := d.noDS(absolute("c"), false); !j.ok() {
		t.Errorf("no DS: %+v", j)
	}
}
