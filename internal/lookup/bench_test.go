package lookup_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

const million = 1_000_000

// bigZone returns a zone of a million names with one address each. One in a hundred has a CNAME instead.
func bigZone(b *testing.B) *zone.Snapshot {
	b.Helper()
	sets := make([]rr.Set, 0, million+2)
	sets = append(sets, set(b, "example.org. 300 SOA "+soaData), set(b, "example.org. 300 NS ns.example.org."),
		set(b, "*.wild.example.org. 300 A 192.0.2.1"))
	for i := range million {
		n := dnsname.MustParse(fmt.Sprintf("host-%07d.example.org.", i))
		sets = append(sets, rr.NewSet(n, rr.TypeA, 300, string([]byte{192, 0, 2, byte(i)})))
	}
	keys := func(s rr.Set) string { return string(s.Name.AppendKey(nil)) }
	slices.SortStableFunc(sets, func(a, c rr.Set) int { return cmpString(keys(a), keys(c)) })
	l := zone.NewLoader(uuid.New(), dnsname.MustParse("example.org."))
	for _, s := range sets {
		if err := l.Add(s); err != nil {
			b.Fatal(err)
		}
	}
	return zone.NewSnapshot(l.Done())
}

func cmpString(a, b string) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

func BenchmarkLookup(b *testing.B) {
	snap := bigZone(b)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.Logf("heap %d bytes, %.0f a name", m.HeapAlloc, float64(m.HeapAlloc)/million)
	for _, bm := range []struct {
		name string
		make func(i int) string
		typ  rr.Type
	}{
		{"hit", func(i int) string { return fmt.Sprintf("host-%07d.example.org.", i) }, rr.TypeA},
		{"nodata", func(i int) string { return fmt.Sprintf("host-%07d.example.org.", i) }, rr.TypeMX},
		{"nxdomain", func(i int) string { return fmt.Sprintf("nope-%07d.example.org.", i) }, rr.TypeA},
		{"wildcard", func(i int) string { return fmt.Sprintf("x-%07d.wild.example.org.", i) }, rr.TypeA},
	} {
		b.Run(bm.name, func(b *testing.B) {
			const n = 1 << 17
			names := make([][]byte, n)
			for i := range names {
				names[i] = []byte(dnsname.MustParse(bm.make(rand.IntN(million))).Wire())
			}
			r := &lookup.Reply{Msg: make([]byte, 12, 1232), Limit: 1232}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.Msg = append(r.Msg[:12], names[i&(n-1)]...)
				r.Msg = append(r.Msg, 0, byte(bm.typ), 0, 1)
				lookup.Answer(snap, lookup.Question{Name: names[i&(n-1)], Type: bm.typ}, r)
				i++
			}
		})
	}
}

func BenchmarkEdit(b *testing.B) {
	z := bigZone(b).ZoneOf(dnsname.MustParse("example.org."))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		batch := z.Edit()
		n := dnsname.MustParse(fmt.Sprintf("host-%07d.example.org.", i*7919%million))
		batch.Put(rr.NewSet(n, rr.TypeA, 300, string([]byte{198, 51, 100, byte(i)})))
		z = batch.Done()
		i++
	}
}

// BenchmarkMap finds the same names in a Go map. It shows the cost of a bare lookup on the same machine at the same
// time.
func BenchmarkMap(b *testing.B) {
	m := make(map[string]*[16]byte, million)
	for i := range million {
		m[dnsname.MustParse(fmt.Sprintf("host-%07d.example.org.", i)).Wire()] = new([16]byte)
	}
	const n = 1 << 17
	names := make([][]byte, n)
	for i := range names {
		names[i] = []byte(dnsname.MustParse(fmt.Sprintf("host-%07d.example.org.", rand.IntN(million))).Wire())
	}
	var sum byte
	i := 0
	for b.Loop() {
		sum += m[string(names[i&(n-1)])][3]
		i++
	}
	_ = sum
}

// BenchmarkInterleaved alternates lookups and reads of a Go map, a few thousand each, and reports the shortest time
// of each. On a shared machine, whole runs measure the other load more than the code. One operation is one round of
// all.
func BenchmarkInterleaved(b *testing.B) {
	const round, rounds = 1 << 12, 1 << 5
	snap := bigZone(b)
	m := make(map[string]*[16]byte, million)
	for i := range million {
		m[dnsname.MustParse(fmt.Sprintf("host-%07d.example.org.", i)).Wire()] = new([16]byte)
	}
	var sum byte
	r := &lookup.Reply{Msg: make([]byte, 12, 1232), Limit: 1232}
	ask := func(t rr.Type) func([]byte) {
		return func(name []byte) {
			r.Msg = append(append(r.Msg[:12], name...), 0, byte(t), 0, 1)
			lookup.Answer(snap, lookup.Question{Name: name, Type: t}, r)
		}
	}
	kinds := []struct {
		unit, form string
		ask        func([]byte)
		names      [][]byte
		least      time.Duration
	}{
		{unit: "hit-ns", form: "host-%07d.example.org.", ask: ask(rr.TypeA)},
		{unit: "nodata-ns", form: "host-%07d.example.org.", ask: ask(rr.TypeMX)},
		{unit: "nxdomain-ns", form: "nope-%07d.example.org.", ask: ask(rr.TypeA)},
		{unit: "wildcard-ns", form: "x-%07d.wild.example.org.", ask: ask(rr.TypeA)},
		{unit: "map-ns", form: "host-%07d.example.org.", ask: func(name []byte) { sum += m[string(name)][3] }},
	}
	for i := range kinds {
		k := &kinds[i]
		k.least = time.Hour
		for range round * rounds {
			k.names = append(k.names, []byte(dnsname.MustParse(fmt.Sprintf(k.form, rand.IntN(million))).Wire()))
		}
	}
	runtime.GC()
	for n := 0; b.Loop(); n++ {
		for i := range kinds {
			k := &kinds[i]
			start := time.Now()
			for _, name := range k.names[n%rounds*round:][:round] {
				k.ask(name)
			}
			k.least = min(k.least, time.Since(start))
		}
	}
	for _, k := range kinds {
		b.ReportMetric(float64(k.least.Nanoseconds())/round, k.unit)
	}
}
