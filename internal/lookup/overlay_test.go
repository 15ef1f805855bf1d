package lookup_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// overlay builds an overlay zone from lines in canonical order.
func overlay(t testing.TB, apex string, lines ...string) *zone.Nodes {
	t.Helper()
	l := zone.NewLoader(uuid.New(), dnsname.MustParse(apex))
	l.Overlay()
	var sets []rr.Set
	for _, line := range lines {
		sets = append(sets, set(t, line))
	}
	slices.SortStableFunc(sets, func(a, b rr.Set) int { return a.Name.Compare(b.Name) })
	for _, s := range sets {
		if err := l.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return l.Done()
}

const (
	refused  = 5
	nxdomain = 3
)

func TestOverlay(t *testing.T) {
	snap, _ := build(t, map[string][]string{"example.org.": {
		"www.example.org. 300 A 192.0.2.1",
		"out.example.org. 300 CNAME app.example.com.",
		"far.example.org. 300 CNAME x.app.example.com.",
	}})
	snap = snap.With([]*zone.Nodes{
		overlay(t, ".", "app.example.com. 30 A 198.51.100.1", "*.edge.test. 30 A 198.51.100.2",
			"real.edge.test. 30 AAAA 2001:db8::1",
			"a.ent.edge.test. 30 A 198.51.100.3", "www.example.org. 30 A 198.51.100.9", "both.example.net. 30 A 198.51.100.4"),
		overlay(t, "example.net.", "both.example.net. 30 A 198.51.100.5"),
		overlay(t, "special.example.org.", "special.example.org. 30 A 198.51.100.6"),
	}, nil)
	soa := func(apex string) []string { return []string{apex + " 30 soa . . 1 3600 600 86400 30"} }
	for _, tt := range []struct {
		name, typ string
		want      refAnswer
	}{
		{"app.example.com.", "A", refAnswer{aa: true, answer: []string{"app.example.com. 30 a 198.51.100.1"}}},
		{"app.example.com.", "AAAA", refAnswer{aa: true, auth: soa(".")}},
		{"app.example.com.", "DS", refAnswer{aa: true, auth: soa(".")}},
		{"example.com.", "A", refAnswer{rcode: refused}}, // an overlay does not own its empty non-terminals
		{"x.app.example.com.", "A", refAnswer{rcode: refused}},
		{".", "SOA", refAnswer{rcode: refused}},
		{".", "NS", refAnswer{rcode: refused}},
		{"any.edge.test.", "A", refAnswer{aa: true, answer: []string{"any.edge.test. 30 a 198.51.100.2"}}},
		{"b.any.edge.test.", "A", refAnswer{aa: true, answer: []string{"b.any.edge.test. 30 a 198.51.100.2"}}},
		{"any.edge.test.", "AAAA", refAnswer{aa: true, auth: soa(".")}},
		{"real.edge.test.", "A", refAnswer{aa: true, auth: soa(".")}}, // the wildcard does not cover its sibling
		{"ent.edge.test.", "A", refAnswer{rcode: refused}},
		{"edge.test.", "A", refAnswer{rcode: refused}},
		// The most specific zone always wins.
		{"www.example.org.", "A", refAnswer{aa: true, answer: []string{"www.example.org. 300 a 192.0.2.1"}}},
		{"both.example.net.", "A", refAnswer{aa: true, answer: []string{"both.example.net. 30 a 198.51.100.5"}}},
		{"special.example.org.", "A", refAnswer{aa: true, answer: []string{"special.example.org. 30 a 198.51.100.6"}}},
		{"special.example.org.", "DS", refAnswer{aa: true, auth: soa("special.example.org.")}},
		{"below.special.example.org.", "A", refAnswer{rcode: nxdomain, aa: true,
			auth: []string{"example.org. 60 soa ns.example.org. hostmaster.example.org. 1 3600 600 86400 60"}}},
		// Chains also pass through overlays.
		{"out.example.org.", "A", refAnswer{aa: true, answer: []string{"out.example.org. 300 cname app.example.com.",
			"app.example.com. 30 a 198.51.100.1"}}},
		{"out.example.org.", "AAAA", refAnswer{aa: true, answer: []string{"out.example.org. 300 cname app.example.com."},
			auth: soa(".")}},
		{"far.example.org.", "A", refAnswer{aa: true, answer: []string{"far.example.org. 300 cname x.app.example.com."}}},
	} {
		t.Run(tt.name+" "+tt.typ, func(t *testing.T) {
			typ, err := rr.ParseType(tt.typ)
			if err != nil {
				t.Fatal(err)
			}
			got := ask(t, snap, dnsname.MustParse(tt.name), typ)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(refAnswer{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOverlayEdit(t *testing.T) {
	z := overlay(t, ".", "app.example.com. 30 A 198.51.100.1")
	b := z.Edit()
	b.Put(set(t, "new.example.com. 30 A 198.51.100.2"))
	b.Put(rr.Set{Name: dnsname.MustParse("app.example.com."), Type: rr.TypeA})
	snap := zone.NewSnapshot(b.Done())
	if got := ask(t, snap, dnsname.MustParse("app.example.com."), rr.TypeA); got.rcode != refused {
		t.Errorf("a removed name is answered with %+v", got)
	}
	if got := ask(t, snap, dnsname.MustParse("new.example.com."), rr.TypeA); len(got.answer) != 1 {
		t.Errorf("an added name is answered with %+v", got)
	}
}

func TestOverlayRotates(t *testing.T) {
	snap := zone.NewSnapshot(overlay(t, ".", "app.example.com. 30 A 198.51.100.1 | 198.51.100.2 | 198.51.100.3"))
	name := dnsname.MustParse("app.example.com.")
	first := map[string]int{}
	for rotation := range uint32(6) {
		r := reply(name, rr.TypeA, 512)
		r.Rotation = rotation
		lookup.Answer(snap, lookup.Question{Name: []byte(name.Wire()), Type: rr.TypeA}, r)
		got := parse(t, r).answer
		if len(got) != 3 {
			t.Fatalf("rotation %d: %d records", rotation, len(got))
		}
		first[got[0]]++
		slices.Sort(got)
		if len(slices.Compact(got)) != 3 {
			t.Fatalf("turn %d: %v", rotation, got)
		}
	}
	if len(first) != 3 {
		t.Errorf("answers began with %v", first)
	}
}

func TestOverlayAllocatesNothing(t *testing.T) {
	snap := zone.NewSnapshot(overlay(t, ".", "app.example.com. 30 A 198.51.100.1 | 198.51.100.2",
		"*.edge.test. 30 A 198.51.100.2"))
	for _, n := range []string{"app.example.com.", "x.edge.test.", "nobody.example.com."} {
		wire := []byte(dnsname.MustParse(n).Wire())
		r := reply(dnsname.MustParse(n), rr.TypeA, 512)
		end := len(r.Msg)
		if got := testing.AllocsPerRun(100, func() {
			r.Msg = r.Msg[:end]
			lookup.Answer(snap, lookup.Question{Name: wire, Type: rr.TypeA}, r)
		}); got != 0 {
			t.Errorf("%s: %v allocations", n, got)
		}
	}
}

// TestOverlayRootAfterChain checks the owner of the root's SOA in a negative answer, when the name at the end of a
// chain is split into three parts.
func TestOverlayRootAfterChain(t *testing.T) {
	snap := zone.NewSnapshot(
		overlay(t, "example.net.", "a.example.net. 30 CNAME x.b.example.net."),
		overlay(t, "b.example.net.", "x.b.example.net. 30 CNAME y.b.example.net."),
		overlay(t, ".", "y.b.example.net. 30 AAAA 2001:db8::1"))
	got := ask(t, snap, dnsname.MustParse("a.example.net."), rr.TypeA)
	want := refAnswer{aa: true, auth: []string{". 30 soa . . 1 3600 600 86400 30"},
		answer: []string{"a.example.net. 30 cname x.b.example.net.", "x.b.example.net. 30 cname y.b.example.net."}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(refAnswer{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
