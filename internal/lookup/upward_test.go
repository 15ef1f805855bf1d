package lookup_test

import (
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// TestChainUpward follows CNAMEs for DS. For DS, a zone's apex is answered from the zone above, so a chain can climb:
// each of its names is then written as a pointer into the one before.
func TestChainUpward(t *testing.T) {
	snap, ref := build(t, map[string][]string{
		".":      {"www. 300 A 192.0.2.1"},
		"t.":     {"c.t. 300 CNAME x.b.t.", "b.t. 300 CNAME t.", "e.t. 300 CNAME y.d.b.t."},
		"b.t.":   {"x.b.t. 300 CNAME b.t.", "d.b.t. 300 CNAME b.t."},
		"d.b.t.": {"y.d.b.t. 300 CNAME d.b.t."},
	})
	for _, n := range []string{"c.t.", "e.t.", "x.b.t.", "y.d.b.t.", "b.t.", "t.", "."} {
		name := dnsname.MustParse(n)
		got, want := ask(t, snap, name, rr.TypeDS), ref.ask(name, rr.TypeDS)
		if got.String() != want.String() {
			t.Errorf("DS %s\n got %s\nwant %s", n, got, want)
		}
	}
}
