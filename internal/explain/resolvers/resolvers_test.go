package resolvers

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/simnet"
)

func TestBuiltIn(t *testing.T) {
	l := BuiltIn()
	if l.Date < "2026" || len(l.Resolvers) < 25 {
		t.Fatalf("list of %s with %d resolvers", l.Date, len(l.Resolvers))
	}
	votes := 0
	for _, r := range l.Resolvers {
		if r.Region == "" || r.Source == "" {
			t.Errorf("%s has no region or no source", r.ID)
		}
		for _, a := range append(append([]netip.Addr{}, r.V4...), r.V6...) {
			if !a.IsGlobalUnicast() || a.IsPrivate() {
				t.Errorf("%s: %s is not public", r.ID, a)
			}
		}
		if !r.Filters && !r.NoVote && len(r.V4) > 0 {
			votes++
		}
	}
	if votes < 15 {
		t.Errorf("only %d resolvers have a vote", votes)
	}
}

func TestRead(t *testing.T) {
	got, err := Read(strings.NewReader("date 2026-01-31\nresolver one Number One # the first\n  v4 192.0.2.1 192.0.2.2\n  region here\n  filters\n  doh https://one.test/q\n"), "x")
	want := List{Date: "2026-01-31", Resolvers: []Resolver{{ID: "one", Name: "Number One", Region: "here", Filters: true, DoH: "https://one.test/q",
		V4: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}}}}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"resolver a A\nv4 192.0.2.1":           "x: has no date",
		"date 2026-01-31":                      "x: has no resolver",
		"date 2026-01-31\nresolver a A":        "x: resolver a has no address",
		"date tomorrow":                        `x:1: "tomorrow" is not a day like 2026-01-31`,
		"\nv4 192.0.2.1":                       `x:2: "v4" stands before the first resolver`,
		"resolver a":                           "x:1: a resolver needs an id and a name",
		"resolver a A\nv4 ::1":                 `x:2: "::1" is not an address of this family`,
		"resolver a A\nv4 192.0.2.1 192.0.2.1": "x:2: 192.0.2.1 is in the list already, for a",
		"resolver a A\nresolver a B":           "x:2: resolver a is in the list already, for a",
		"resolver a A\ncolour red":             `x:2: "colour" is not known here`,
		"resolver a A\nfilters all":            `x:2: "all" follows "filters", which stands alone`,
		"resolver a A\ndoh http://a":           `x:2: "http://a" is not an https URL`,
		strings.Repeat("#", maxList+1):         "x: is longer than a mebibyte",
	} {
		if _, err := Read(strings.NewReader(text), "x"); err == nil || err.Error() != want {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	net := simnet.New(1)
	net.MustServer("192.0.2.1", "zone .\n. 60 NS a.root.\n")
	net.MustServer("192.0.2.2", "zone .\n. 60 NS a.root.\nfault refused")
	all := []Resolver{
		{ID: "good", V4: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
		{ID: "bad", V4: []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")}},
	}
	got := Check(t.Context(), net, all)
	if len(got) != 3 || !got[0].Answers || got[0].Problem != "" {
		t.Fatalf("checks are %+v", got)
	}
	if got[1].Answers || !strings.Contains(got[1].Problem, "REFUSED") || got[2].Answers || got[2].Problem == "" {
		t.Errorf("checks are %+v", got)
	}
	per := map[string]int{}
	for _, q := range net.History() {
		per[q.Server.String()]++
		if q.Name.String() != "." {
			t.Errorf("asked %v", q)
		}
	}
	for server, n := range per {
		if n > 2 {
			t.Errorf("%s was asked %d times", server, n)
		}
	}
}
