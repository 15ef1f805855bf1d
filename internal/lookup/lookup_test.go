package lookup_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// set parses a line such as "www.example.org. 300 A 192.0.2.1 | 192.0.2.2" as a record set.
func set(t testing.TB, line string) rr.Set {
	t.Helper()
	f := strings.SplitN(line, " ", 4)
	typ, err := rr.ParseType(f[2])
	if err != nil {
		t.Fatal(err)
	}
	var ttl uint32
	if _, err := fmt.Sscan(f[1], &ttl); err != nil {
		t.Fatal(err)
	}
	var data []string
	for _, text := range strings.Split(f[3], " | ") {
		d, err := rr.ParseData(typ, text)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		data = append(data, d)
	}
	n, err := dnsname.Parse(f[0])
	if err != nil {
		t.Fatal(err)
	}
	return rr.NewSet(n, typ, ttl, data...)
}

const soaData = "ns.example.org. hostmaster.example.org. 1 3600 600 86400 60"

// build returns a snapshot and a reference of the same zones, each given as its apex and its lines. Every zone gets
// SOA and NS.
func build(t testing.TB, zones map[string][]string) (*zone.Snapshot, *reference) {
	t.Helper()
	ref := newReference()
	var nodes []*zone.Nodes
	for apex, lines := range zones {
		name := dnsname.MustParse(apex)
		b := zone.NewNodes(uuid.New(), name).Edit()
		for _, l := range append([]string{apex + " 300 SOA " + soaData, apex + " 300 NS ns.example.org."}, lines...) {
			s := set(t, l)
			b.Put(s)
			ref.add(name, s)
		}
		nodes = append(nodes, b.Done())
	}
	return zone.NewSnapshot(nodes...), ref
}

// ask looks up a name in snap and returns the answer in the form of the reference.
func ask(t testing.TB, snap *zone.Snapshot, n dnsname.Name, typ rr.Type) refAnswer {
	t.Helper()
	r := reply(n, typ, 65535)
	lookup.Answer(snap, lookup.Question{Name: []byte(n.Wire()), Type: typ}, r)
	return parse(t, r)
}

func reply(n dnsname.Name, typ rr.Type, limit int) *lookup.Reply {
	msg := make([]byte, 12, limit)
	msg[5] = 1
	msg = append(msg, n.Wire()...)
	msg = append(msg, byte(typ>>8), byte(typ), 0, 1)
	return &lookup.Reply{Msg: msg, Limit: limit}
}

func parse(t testing.TB, r *lookup.Reply) refAnswer {
	t.Helper()
	b := r.Msg
	b[7], b[6] = byte(r.Answers), byte(r.Answers>>8)
	b[9], b[8] = byte(r.Authorities), byte(r.Authorities>>8)
	b[11], b[10] = byte(r.Additionals), byte(r.Additionals>>8)
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatalf("reply does not unpack: %v\n%x", err, b)
	}
	a := refAnswer{rcode: int(r.Rcode), aa: r.Authoritative, answer: texts(m.Answer), auth: texts(m.Ns),
		glue: texts(m.Extra)}
	sort.Strings(a.glue)
	return a
}

func texts(rrs []dns.RR) []string {
	var out []string
	for _, r := range rrs {
		h := r.Header()
		data, _ := rr.FromRR(r)
		t := rr.Type(h.Rrtype)
		n := dnsname.MustParse(h.Name)
		out = append(out, strings.ToLower(fmt.Sprintf("%s %d %s %s", n, h.Ttl, t, rr.DataText(t, data))))
	}
	return out
}

func TestAnswer(t *testing.T) {
	snap, ref := build(t, map[string][]string{
		"example.org.": {
			"www.example.org. 300 A 192.0.2.1 | 192.0.2.2",
			"www.example.org. 300 AAAA 2001:db8::1",
			"alias.example.org. 300 CNAME www.example.org.",
			"far.example.org. 300 CNAME www.example.net.",
			"away.example.org. 300 CNAME www.example.com.",
			"loop1.example.org. 300 CNAME loop2.example.org.",
			"loop2.example.org. 300 CNAME loop1.example.org.",
			"a.ent.example.org. 300 TXT x",
			"*.wild.example.org. 300 A 192.0.2.3",
			"*.wild.example.org. 300 MX 10 mail.example.org.",
			"real.wild.example.org. 300 TXT here",
			"b.deep.wild.example.org. 300 TXT here",
			"*.cwild.example.org. 300 CNAME www.example.org.",
			"sub.example.org. 300 NS ns.sub.example.org. | ns.example.net. | ns.sib.example.org.",
			"ns.sub.example.org. 300 A 192.0.2.53",
			"ns.sub.example.org. 300 AAAA 2001:db8::53",
			"ns.sib.example.org. 300 A 192.0.2.54",
			"sub.example.org. 300 DS 1 8 2 e2d3c916f6deeac73294e8268fb5885044a833fc5459588f4a9184cfc41a5766",
			"tosub.example.org. 300 CNAME x.sub.example.org.",
			"d.example.org. 300 DNAME target.example.net.",
			"below.d.example.org. 300 A 192.0.2.9",
			"e.example.org. 300 DNAME d.example.org.",
			"child.example.org. 300 NS ns.child.example.org.",
			`attacker\.example.example.org. 300 A 192.0.2.66`,
		},
		"example.net.":        {"www.example.net. 60 A 198.51.100.1", "x.target.example.net. 60 A 198.51.100.2"},
		"child.example.org.":  {"www.child.example.org. 60 A 198.51.100.3"},
		"deep.a.example.net.": {"deep.a.example.net. 60 A 198.51.100.4"},
	})
	names := []string{"example.org.", "www.example.org.", "alias.example.org.", "far.example.org.", "away.example.org.",
		"loop1.example.org.", "ent.example.org.", "a.ent.example.org.", "b.ent.example.org.", "x.wild.example.org.",
		"y.x.wild.example.org.", "real.wild.example.org.", "z.real.wild.example.org.", "deep.wild.example.org.",
		"c.deep.wild.example.org.", "wild.example.org.", "*.wild.example.org.", "q.cwild.example.org.", "sub.example.org.",
		"x.sub.example.org.", "ns.sub.example.org.", "tosub.example.org.", "d.example.org.", "x.d.example.org.",
		"below.d.example.org.", "x.e.example.org.", "nope.example.org.", "nope.nope.example.org.", "example.net.",
		"child.example.org.", "www.child.example.org.", "zz.child.example.org.", "example.com.", ".", "org.",
		"deep.a.example.net.", "a.example.net.", "x.a.example.net.", "attacker.example.example.org.",
		`attacker\.example.example.org.`, strings.Repeat("l123456789.", 18) + strings.Repeat("x", 30) + ".d.example.org."}
	types := []rr.Type{rr.TypeA, rr.TypeAAAA, rr.TypeNS, rr.TypeSOA, rr.TypeCNAME, rr.TypeDNAME, rr.TypeDS, rr.TypeMX,
		rr.TypeANY}
	for _, n := range names {
		for _, typ := range types {
			name := dnsname.MustParse(n)
			got, want := ask(t, snap, name, typ), ref.ask(name, typ)
			if got.String() != want.String() {
				t.Errorf("Answer(%s %s)\n got %s\nwant %s", n, typ, got, want)
			}
		}
	}
}

// TestKinds checks a few answers against fixed values, so that lookup and reference cannot both be wrong.
func TestKinds(t *testing.T) {
	snap, _ := build(t, map[string][]string{"example.org.": {
		"www.example.org. 300 A 192.0.2.1", "*.w.example.org. 300 A 192.0.2.1",
		"sub.example.org. 300 NS ns.sub.example.org.", "ns.sub.example.org. 300 A 192.0.2.53",
		"c.example.org. 300 CNAME gone.example.org.",
		`\255dns.example.org. 300 TXT x`,
	}})
	tests := []struct {
		name, typ string
		kind      lookup.Kind
		want      string
	}{
		{"www.example.org.", "A", lookup.Positive,
			"rcode 0 aa true\nanswer www.example.org. 300 a 192.0.2.1\nauthority \nglue "},
		{"www.example.org.", "MX", lookup.NoData, "rcode 0 aa true\nanswer \nauthority example.org. 60 soa " + soaData +
			"\nglue "},
		{"no.example.org.", "A", lookup.NXDomain, "rcode 3 aa true\nanswer \nauthority example.org. 60 soa " + soaData +
			"\nglue "},
		{"x.w.example.org.", "A", lookup.Positive,
			"rcode 0 aa true\nanswer x.w.example.org. 300 a 192.0.2.1\nauthority \nglue "},
		{"x.sub.example.org.", "A", lookup.Referral,
			"rcode 0 aa false\nanswer \nauthority sub.example.org. 300 ns ns.sub.example.org.\nglue ns.sub.example.org. 300 " +
				"a 192.0.2.53"},
		{"c.example.org.", "A", lookup.NXDomain,
			"rcode 3 aa true\nanswer c.example.org. 300 cname gone.example.org.\n" +
				"authority example.org. 60 soa " + soaData + "\nglue "},
		{"example.com.", "A", lookup.Refused, "rcode 5 aa false\nanswer \nauthority \nglue "},
	}
	for _, tt := range tests {
		typ, _ := rr.ParseType(tt.typ)
		n := dnsname.MustParse(tt.name)
		r := reply(n, typ, 512)
		lookup.Answer(snap, lookup.Question{Name: []byte(n.Wire()), Type: typ}, r)
		if r.Kind != tt.kind {
			t.Errorf("%s %s: kind %s, want %s", tt.name, tt.typ, r.Kind, tt.kind)
		}
		if got := parse(t, r).String(); got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.name, tt.typ, got, tt.want)
		}
	}
}

func TestTruncation(t *testing.T) {
	lines := []string{"big.example.org. 300 A 192.0.2.1"}
	for i := 2; i < 100; i++ {
		lines[0] += fmt.Sprintf(" | 192.0.2.%d", i)
	}
	lines = append(lines, "c.example.org. 300 CNAME big.example.org.", "sub.example.org. 300 NS ns.sub.example.org.",
		"ns.sub.example.org. 300 A 192.0.2.1", "nx.example.org. 300 A 192.0.2.1")
	snap, _ := build(t, map[string][]string{"example.org.": lines})
	for _, name := range []string{"big.example.org.", "c.example.org.", "x.sub.example.org.", "no.example.org."} {
		n := dnsname.MustParse(name)
		full := reply(n, rr.TypeA, 65535)
		lookup.Answer(snap, lookup.Question{Name: []byte(n.Wire()), Type: rr.TypeA}, full)
		for limit := 12 + len(n.Wire()) + 4; limit <= len(full.Msg); limit++ {
			r := reply(n, rr.TypeA, limit)
			lookup.Answer(snap, lookup.Question{Name: []byte(n.Wire()), Type: rr.TypeA}, r)
			if len(r.Msg) > limit {
				t.Fatalf("%s: %d bytes, limit %d", name, len(r.Msg), limit)
			}
			if r.Truncated != (limit < len(full.Msg)) {
				t.Fatalf("%s limit %d of %d: truncated %v", name, limit, len(full.Msg), r.Truncated)
			}
			parse(t, r)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	snap, _ := build(t, map[string][]string{"example.org.": {
		"www.example.org. 300 A 192.0.2.1", "c.example.org. 300 CNAME www.example.org.",
		"*.w.example.org. 300 A 192.0.2.1", "d.example.org. 300 DNAME w.example.org.",
		"sub.example.org. 300 NS ns.sub.example.org.", "ns.sub.example.org. 300 A 192.0.2.53",
	}})
	for _, q := range []string{"www.example.org. A", "c.example.org. A", "x.w.example.org. A", "www.example.org. MX",
		"no.example.org. A", "x.d.example.org. A", "x.sub.example.org. A", "example.com. A", "example.org. ANY"} {
		name, typ, _ := strings.Cut(q, " ")
		n := dnsname.MustParse(name)
		tt, _ := rr.ParseType(typ)
		r := reply(n, tt, 1232)
		question := lookup.Question{Name: []byte(n.Wire()), Type: tt}
		head := len(r.Msg)
		if got := testing.AllocsPerRun(100, func() {
			r.Msg = r.Msg[:head]
			lookup.Answer(snap, question, r)
		}); got != 0 {
			t.Errorf("%s: %v allocations", q, got)
		}
	}
}

// randomZones returns zones over a small alphabet, so that names collide, nest and hide each other.
func randomZones(rnd *rand.Rand) map[string][]string {
	label := func() string { return []string{"a", "b", "*", "c", `x\.y`, "A"}[rnd.IntN(6)] }
	name := func(apex string) string {
		n := apex
		for range rnd.IntN(4) {
			n = label() + "." + strings.TrimPrefix(n, ".")
		}
		return n
	}
	apexes := []string{"t.", "a.t.", "b.a.t.", "u.", "."}
	zones := map[string][]string{}
	for _, apex := range apexes[:1+rnd.IntN(len(apexes))] {
		have := map[string]bool{}
		var lines []string
		for range rnd.IntN(14) {
			n := dnsname.MustParse(name(apex)).String()
			target := name(apexes[rnd.IntN(len(apexes))])
			l := []string{" 9 A 192.0.2.1 | 192.0.2.2", " 8 AAAA 2001:db8::1", " 7 TXT x", " 6 NS " + target, " 6 NS " +
				target + " | ns.u.",
				" 5 CNAME " + target, " 4 DNAME " + target, " 3 MX 5 " + target}[rnd.IntN(8)]
			typ := strings.Fields(l)[1]
			if have[n+typ] || have[n+"CNAME"] || typ == "CNAME" && (have[n] || n == apex) || n == apex && typ == "NS" {
				continue
			}
			have[n], have[n+typ] = true, true
			lines = append(lines, n+l)
		}
		zones[apex] = lines
	}
	return zones
}

func compareRandom(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	zones := randomZones(rnd)
	snap, ref := build(t, zones)
	for range 60 {
		n := "t."
		if rnd.IntN(4) == 0 {
			n = "u."
		}
		for range rnd.IntN(5) {
			n = []string{"a", "b", "*", "c", "d", `x\.y`}[rnd.IntN(6)] + "." + n
		}
		name := dnsname.MustParse(n)
		typ := []rr.Type{rr.TypeA, rr.TypeNS, rr.TypeCNAME, rr.TypeDS, rr.TypeDNAME, rr.TypeANY, rr.TypeMX}[rnd.IntN(7)]
		got, want := ask(t, snap, name, typ), ref.ask(name, typ)
		if got.String() != want.String() {
			t.Fatalf("seed %d: %s %s in %q\n got %s\nwant %s", seed, n, typ, zones, got, want)
		}
	}
}

func TestRandomZones(t *testing.T) {
	for seed := range uint64(300) {
		compareRandom(t, seed)
	}
}

func FuzzZones(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(compareRandom)
}
