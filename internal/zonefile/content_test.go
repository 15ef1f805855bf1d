package zonefile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// slowSets is what Content.All must walk, made the obvious way.
func slowSets(records []zonefile.Record) []rr.Set {
	var sets []rr.Set
	for _, r := range records {
		i := slices.IndexFunc(sets, func(s rr.Set) bool { return s.Name == r.Name && s.Type == r.Type })
		if i < 0 {
			sets = append(sets, rr.NewSet(r.Name, r.Type, r.TTL, r.Data))
			continue
		}
		s := &sets[i]
		s.TTL, s.Data = min(s.TTL, r.TTL), rr.Normal(s.Type, append(s.Data, r.Data))
	}
	slices.SortFunc(sets, func(a, b rr.Set) int {
		if n := a.Name.Compare(b.Name); n != 0 {
			return n
		}
		return int(a.Type) - int(b.Type)
	})
	return sets
}

func TestContent(t *testing.T) {
	names := []string{
		"example.org.", "www.example.org.", "*.example.org.", "a.b.c.example.org.", `a\.b.example.org.`, `\000.example.org.`,
		`\001\000.example.org.`, "www.www.example.org.", ".", "org.",
	}
	for i := range 40 { // alike in more octets than are compared at first
		names = append(names, fmt.Sprintf("a-long-label-that-they-share-%d.example.org.", i))
	}
	types := []rr.Type{rr.TypeA, rr.TypeTXT, rr.TypeMX, 65280}
	rnd := rand.New(rand.NewPCG(5, 6))
	for n := range 200 {
		var records []zonefile.Record
		var b []byte
		for range n {
			r := zonefile.Record{
				Name: dnsname.MustParse(names[rnd.IntN(len(names))]),
				Type: types[rnd.IntN(len(types))],
				TTL:  rnd.Uint32N(3) * 0x7fff,
				Data: strings.Repeat("d", rnd.IntN(300)),
			}
			records = append(records, r)
			b = zonefile.AppendKept(b, r)
		}
		c, err := zonefile.NewContent(string(b))
		if err != nil {
			t.Fatal(err)
		}
		want := slowSets(records)
		got := slices.Collect(c.All())
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(dnsname.Name{})); diff != "" {
			t.Fatalf("sets of %d records (-want +got):\n%s", n, diff)
		}
		if c.Sets() != len(want) {
			t.Errorf("Sets() = %d of %d records, want %d", c.Sets(), n, len(want))
		}
		for range c.All() {
			break // must not go on
		}
	}
}

// TestDamagedContent: a file that was cut off is found out.
func TestDamagedContent(t *testing.T) {
	b := zonefile.AppendKept(nil, zonefile.Record{Name: dnsname.MustParse("example.org."), Type: rr.TypeA, Data: "1234"})
	first := len(b)
	b = zonefile.AppendKept(b, zonefile.Record{Name: dnsname.MustParse("www.example.org."), Type: rr.TypeA, Data: "1234"})
	for n := range len(b) {
		if _, err := zonefile.NewContent(string(b[:n])); (err == nil) != (n == 0 || n == first) {
			t.Errorf("the first %d of %d octets: err = %v", n, len(b), err)
		}
	}
}
