package zonefile_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// slowSets returns the sets that Stage.Sets must return, with the simplest code.
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

func sets(s *zonefile.Stage) (out []rr.Set) {
	for set := range s.Sets() {
		out = append(out, set)
	}
	return out
}

func newStage(t *testing.T) *zonefile.Stage {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := zonefile.NewStage(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.Close(), dir.Close() })
	return s
}

func add(t *testing.T, s *zonefile.Stage, r zonefile.Record) {
	t.Helper()
	if err := s.Add(r); err != nil {
		t.Fatal(err)
	}
}

func TestStage(t *testing.T) {
	names := []string{
		"example.org.", "www.example.org.", "*.example.org.", "a.b.c.example.org.", `a\.b.example.org.`, `\000.example.org.`,
		`\001\000.example.org.`, "www.www.example.org.", ".", "org.",
	}
	for i := range 40 {
		names = append(names, fmt.Sprintf("a-long-label-that-they-share-%d.example.org.", i))
	}
	types := []rr.Type{rr.TypeA, rr.TypeTXT, rr.TypeMX, 65280}
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 2, 10, 100, 199, 2000} { // the last one is several runs
		s := newStage(t)
		var records []zonefile.Record
		for range n {
			r := zonefile.Record{
				Name: dnsname.MustParse(names[rnd.IntN(len(names))]),
				Type: types[rnd.IntN(len(types))],
				TTL:  rnd.Uint32N(3) * 0x7fff,
				Data: strings.Repeat("d", rnd.IntN(max(1, 3*n))),
			}
			records = append(records, r)
			add(t, s, r)
		}
		want := slowSets(records)
		for range 2 { // it can be iterated again
			got := sets(s)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(dnsname.Name{})); diff != "" || s.Err() != nil {
				t.Fatalf("sets of %d records, %v (-want +got):\n%s", n, s.Err(), diff)
			}
			for range s.Sets() {
				break // must stop here
			}
		}
		if s.Records() != n || n > 0 && s.Bytes() < int64(20*n) {
			t.Errorf("%d records of %d bytes, want %d", s.Records(), s.Bytes(), n)
		}
	}
}

// TestStageFirstSpelling checks that of two spellings of one record in different runs, the first is kept.
func TestStageFirstSpelling(t *testing.T) {
	s := newStage(t)
	at := dnsname.MustParse("example.org.")
	add(t, s, zonefile.Record{Name: at, Type: rr.TypeNS, Data: "\x02NS\x04test\x00"})
	for i := range 40 {
		add(t, s, zonefile.Record{Name: at, Type: rr.TypeTXT, Data: strings.Repeat(fmt.Sprint(i), 30_000)})
	}
	add(t, s, zonefile.Record{Name: at, Type: rr.TypeNS, Data: "\x02ns\x04test\x00"})
	for set := range s.Sets() {
		if set.Type == rr.TypeNS && !slices.Equal(set.Data, []string{"\x02NS\x04test\x00"}) {
			t.Errorf("NS %q", set.Data)
		}
	}
}

// TestDamagedStage checks that a truncated file is detected, wherever it ends.
func TestDamagedStage(t *testing.T) {
	s := newStage(t)
	add(t, s, zonefile.Record{Name: dnsname.MustParse("example.org."), Type: rr.TypeA, Data: "1234"})
	add(t, s, zonefile.Record{Name: dnsname.MustParse("www.example.org."), Type: rr.TypeA, Data: "1234"})
	if n := len(sets(s)); n != 2 || s.Err() != nil {
		t.Fatalf("%d sets, %v", n, s.Err())
	}
	for n := s.Bytes() - 1; n >= 0; n-- {
		if err := s.Truncate(n); err != nil {
			t.Fatal(err)
		}
		for range s.Sets() {
		}
		if s.Err() == nil {
			t.Errorf("the first %d of %d bytes are taken for all of them", n, s.Bytes())
		}
	}
}

// TestStageMemory checks that a zone of 64 MB is staged and read in a few MB.
func TestStageMemory(t *testing.T) {
	s := newStage(t)
	data := strings.Repeat("d", 200)
	base, peak := inUse(), uint64(0)
	for i := range 300_000 {
		add(t, s, zonefile.Record{Name: dnsname.MustParse(fmt.Sprintf("host%d.example.org.", i^0x15555)), Type: rr.TypeTXT,
			Data: data})
		if i%100_000 == 0 {
			peak = max(peak, inUse())
		}
	}
	n := 0
	for range s.Sets() {
		if n++; n%100_000 == 0 {
			peak = max(peak, inUse())
		}
	}
	if n != s.Records() || s.Bytes() < 64<<20 || s.Err() != nil {
		t.Errorf("%d of %d records, %d bytes, %v", n, s.Records(), s.Bytes(), s.Err())
	}
	if grown := int64(peak) - int64(base); grown > 8<<20 {
		t.Errorf("a zone of %d bytes took %d bytes of memory", s.Bytes(), grown)
	}
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
