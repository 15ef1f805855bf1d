package zone_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// textData returns TXT data of about so many bytes.
func textData(size int) string {
	return strings.Repeat("\xff"+strings.Repeat("t", 255), size/256) + "\x01e"
}

// TestNodesOfAllSizes checks nodes of all sizes, from empty to a full message, under random changes.
func TestNodesOfAllSizes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	sizes := []int{0, 256, 1024, 8 << 10, 60 << 10}
	name := func(i int) dnsname.Name { return dnsname.MustParse(fmt.Sprintf("t%d.example.org.", i)) }
	want := map[dnsname.Name]string{}
	z := zone.NewNodes(uuid.New(), apex)
	for range 40 {
		b := z.Edit()
		for range 10 {
			n, d := name(rnd.IntN(200)), textData(sizes[rnd.IntN(len(sizes))])
			if rnd.IntN(4) == 0 {
				b.Put(rr.Set{Name: n, Type: rr.TypeTXT})
				delete(want, n)
				continue
			}
			b.Put(rr.NewSet(n, rr.TypeTXT, 60, d))
			want[n] = d
		}
		z = b.Done()
		checkTexts(t, z, want)
	}
	l := zone.NewLoader(uuid.New(), apex)
	l.Expect(len(want))
	var names []dnsname.Name
	for n := range want {
		names = append(names, n)
	}
	slices.SortFunc(names, dnsname.Name.Compare)
	for _, n := range names {
		if err := l.Add(rr.NewSet(n, rr.TypeTXT, 60, want[n])); err != nil {
			t.Fatal(err)
		}
	}
	checkTexts(t, l.Done(), want)
}

func checkTexts(t *testing.T, z *zone.Nodes, want map[dnsname.Name]string) {
	t.Helper()
	if z.Names() != len(want)+1 {
		t.Fatalf("Names() = %d, want %d", z.Names(), len(want)+1)
	}
	for n, d := range want {
		set, ok := z.Find([]byte(n.In(apex))).Find(rr.TypeTXT)
		if !ok || set.Count != 1 || set.Wire[12:] != d {
			t.Fatalf("%s: found %v, %d records in %d bytes, want 1 with %d bytes of data", n, ok, set.Count, len(set.Wire),
				len(d))
		}
	}
}

// TestChangeIsSmall checks that one change copies little memory, whatever the size of the zone and whatever must
// grow.
func TestChangeIsSmall(t *testing.T) {
	const n = 22_000 // slabs and pages are about to split
	z := zone.NewNodes(uuid.New(), apex)
	b := z.Edit()
	name := func(i int) dnsname.Name { return dnsname.MustParse(fmt.Sprintf("h%d.example.org.", i)) }
	for i := range n {
		b.Put(rr.NewSet(name(i), rr.TypeA, 60, data(rr.TypeA, i)))
	}
	z = b.Done()
	var before, after runtime.MemStats
	most := uint64(0)
	for i := n; i < n+500; i++ {
		s := rr.NewSet(name(i), rr.TypeA, 60, data(rr.TypeA, i))
		runtime.ReadMemStats(&before)
		b := z.Edit()
		b.Put(s)
		z = b.Done()
		runtime.ReadMemStats(&after)
		most = max(most, after.TotalAlloc-before.TotalAlloc)
	}
	if most > 128<<10 {
		t.Errorf("a change of a zone of %d names took %d bytes", z.Names(), most)
	}
}
