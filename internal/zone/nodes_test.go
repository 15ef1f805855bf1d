package zone_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

var apex = dnsname.MustParse("example.org.")

// model is a zone as a plain map.
type model map[dnsname.Name]map[rr.Type]rr.Set

func (m model) put(s rr.Set) {
	if len(s.Data) == 0 {
		delete(m[s.Name], s.Type)
		if len(m[s.Name]) == 0 {
			delete(m, s.Name)
		}
		return
	}
	if m[s.Name] == nil {
		m[s.Name] = map[rr.Type]rr.Set{}
	}
	m[s.Name][s.Type] = s
}

// names returns every name that must exist: those with records and all names above them.
func (m model) names() map[dnsname.Name]bool {
	out := map[dnsname.Name]bool{apex: true}
	for n := range m {
		for ; n != apex; n = n.Parent() {
			out[n] = true
		}
	}
	return out
}

func check(t *testing.T, z *zone.Nodes, m model, all []dnsname.Name) {
	t.Helper()
	want := m.names()
	if z.Names() != len(want) {
		t.Fatalf("Names() = %d, want %d", z.Names(), len(want))
	}
	cuts := false
	for _, n := range all {
		node := z.Find([]byte(n.In(apex)))
		if node.Found() != want[n] {
			t.Fatalf("Find(%s).Found() = %v, want %v", n, node.Found(), want[n])
		}
		if !node.Found() {
			continue
		}
		wild, _ := n.Child("*")
		if node.HasWildcard() != want[wild] {
			t.Fatalf("%s: HasWildcard = %v, want %v", n, node.HasWildcard(), want[wild])
		}
		_, ns := m[n][rr.TypeNS]
		_, dname := m[n][rr.TypeDNAME]
		if node.IsCut() != (ns && n != apex) || node.HasDNAME() != dname {
			t.Fatalf("%s: cut %v dname %v, want %v %v", n, node.IsCut(), node.HasDNAME(), ns, dname)
		}
		cuts = cuts || ns && n != apex || dname
		for _, typ := range types {
			s, ok := m[n][typ]
			got, found := node.Find(typ)
			if found != ok || found && got.Count != len(s.Data) {
				t.Fatalf("%s %s: found %v with %d records, want %v with %d", n, typ, found, got.Count, ok, len(s.Data))
			}
		}
	}
	if z.HasCuts() != cuts {
		t.Fatalf("HasCuts() = %v, want %v", z.HasCuts(), cuts)
	}
}

var types = []rr.Type{rr.TypeA, rr.TypeNS, rr.TypeTXT, rr.TypeDNAME}

func data(t rr.Type, i int) string {
	switch t {
	case rr.TypeA:
		return string([]byte{192, 0, 2, byte(i)})
	case rr.TypeTXT:
		return "\x01x"
	}
	return dnsname.MustParse(fmt.Sprintf("n%d.example.org.", i)).Wire()
}

// TestBatchAgainstModel makes random changes and compares with the model after each batch. At the end it checks that
// an old value has not changed.
func TestBatchAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	all := []dnsname.Name{apex}
	for i := range 40 {
		n := all[rnd.IntN(len(all))]
		label := fmt.Sprintf("l%d", i)
		if i%5 == 0 {
			label = "*"
		}
		c, err := n.Child(label)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	m := model{}
	z := zone.NewNodes(uuid.New(), apex)
	var old *zone.Nodes
	var oldModel model
	for i := range 600 {
		b := z.Edit()
		for range 1 + rnd.IntN(5) {
			s := rr.Set{Name: all[rnd.IntN(len(all))], Type: types[rnd.IntN(len(types))], TTL: 60}
			if rnd.IntN(2) == 0 {
				s = rr.NewSet(s.Name, s.Type, 60, data(s.Type, i%200))
			}
			m.put(s)
			b.Put(s)
		}
		z = b.Done()
		check(t, z, m, all)
		if i == 300 {
			old, oldModel = z, model{}
			for _, sets := range m {
				for _, s := range sets {
					oldModel.put(s)
				}
			}
		}
	}
	check(t, old, oldModel, all)
}

// TestGrowth fills a zone until pages split, and empties it again.
func TestGrowth(t *testing.T) {
	const n = 40_000
	z := zone.NewNodes(uuid.New(), apex)
	name := func(i int) dnsname.Name { return dnsname.MustParse(fmt.Sprintf("h%d.example.org.", i)) }
	for i := 0; i < n; {
		b := z.Edit()
		for end := i + 997; i < end && i < n; i++ {
			b.Put(rr.NewSet(name(i), rr.TypeA, 60, data(rr.TypeA, i)))
		}
		z = b.Done()
	}
	if z.Names() != n+1 {
		t.Fatalf("Names() = %d, want %d", z.Names(), n+1)
	}
	for i := range n {
		set, ok := z.Find([]byte(name(i).In(apex))).Find(rr.TypeA)
		if !ok || set.Wire[12:] != data(rr.TypeA, i) {
			t.Fatalf("%s is lost or wrong", name(i))
		}
	}
	b := z.Edit()
	for i := range n {
		b.Put(rr.Set{Name: name(i), Type: rr.TypeA})
	}
	if z = b.Done(); z.Names() != 1 {
		t.Fatalf("Names() = %d after removal, want 1", z.Names())
	}
}

func TestLoaderEqualsBatch(t *testing.T) {
	m := model{}
	b := zone.NewNodes(uuid.New(), apex).Edit()
	var sets []rr.Set
	for i := range 5000 {
		n := dnsname.MustParse(fmt.Sprintf("h%d.d%d.example.org.", i, i%70))
		switch {
		case i%50 == 0:
			n = dnsname.MustParse(fmt.Sprintf("*.w%d.x.example.org.", i))
		case i%33 == 0:
			n = dnsname.MustParse(fmt.Sprintf("d%d.example.org.", i%70))
		}
		typ := types[i%len(types)]
		sets = append(sets, rr.NewSet(n, typ, 60, data(typ, i)))
	}
	for _, s := range sets {
		m.put(s)
		b.Put(s)
	}
	slices.SortStableFunc(sets, func(a, b rr.Set) int { return a.Name.Compare(b.Name) })
	l := zone.NewLoader(uuid.New(), apex)
	for _, s := range sets {
		if err := l.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	var all []dnsname.Name
	for n := range m.names() {
		all = append(all, n)
	}
	check(t, l.Done(), m, all)
	check(t, b.Done(), m, all)
	if err := l.Add(rr.NewSet(dnsname.MustParse("example.net."), rr.TypeA, 1, "1234")); err == nil {
		t.Error("Add took a name of another zone")
	}
}

func TestSnapshot(t *testing.T) {
	s := zone.NewSnapshot() // grows several times during the test
	name := func(i int) dnsname.Name { return dnsname.MustParse(fmt.Sprintf("z%d.example.org.", i)) }
	var first *zone.Snapshot
	for i := range 1500 {
		s = s.With([]*zone.Nodes{zone.NewNodes(uuid.New(), name(i))}, nil)
		if i == 99 {
			first = s
		}
	}
	s = s.With(nil, []dnsname.Name{name(7), name(8)})
	if s.Len() != 1498 || first.Len() != 100 {
		t.Fatalf("Len() = %d and %d, want 1498 and 100", s.Len(), first.Len())
	}
	for i := range 1500 {
		if got := s.ZoneOf(name(i)) != nil; got != (i != 7 && i != 8) {
			t.Errorf("ZoneOf(%s) found %v", name(i), got)
		}
		if got := first.ZoneOf(name(i)) != nil; got != (i < 100) {
			t.Errorf("old snapshot: ZoneOf(%s) found %v", name(i), got)
		}
	}
	seen := 0
	for range s.All() {
		seen++
	}
	if seen != 1498 || s.MaxLabels() != 3 {
		t.Errorf("All() walked %d zones, MaxLabels() = %d", seen, s.MaxLabels())
	}
}

// TestSnapshotChangeIsSmall checks that a change of one zone among many copies little memory.
func TestSnapshotChangeIsSmall(t *testing.T) {
	zones := make([]*zone.Nodes, 20_000)
	for i := range zones {
		zones[i] = zone.NewNodes(uuid.Nil, dnsname.MustParse(fmt.Sprintf("z%d.example.org.", i)))
	}
	s := zone.NewSnapshot(zones...)
	const changes = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range changes {
		s = s.With(zones[i:i+1], nil)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / changes; each > 8<<10 {
		t.Errorf("a change of one of %d zones took %d bytes", s.Len(), each)
	}
}
