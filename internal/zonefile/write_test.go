package zonefile_test

import (
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// gather returns the records of a file as sets, in canonical order of their names.
func gather(text string, o zonefile.Options) ([]rr.Set, error) {
	type key struct {
		name dnsname.Name
		typ  rr.Type
	}
	at := map[key]int{}
	var sets []rr.Set
	err := zonefile.Parse(strings.NewReader(text), o, func(rec zonefile.Record) error {
		k := key{rec.Name, rec.Type}
		i, ok := at[k]
		if !ok {
			i = len(sets)
			at[k] = i
			sets = append(sets, rr.Set{Name: rec.Name, Type: rec.Type, TTL: rec.TTL})
		}
		sets[i].Data = append(sets[i].Data, rec.Data)
		return nil
	})
	for i := range sets {
		sets[i].Data = rr.Normal(sets[i].Type, sets[i].Data)
	}
	slices.SortStableFunc(sets, func(a, b rr.Set) int { return a.Name.Compare(b.Name) })
	return sets, err
}

func each(sets []rr.Set) iter.Seq2[rr.Set, error] {
	return func(yield func(rr.Set, error) bool) {
		for _, s := range sets {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func mustWrite(t *testing.T, origin dnsname.Name, sets []rr.Set) string {
	t.Helper()
	var b strings.Builder
	if err := zonefile.Write(&b, origin, 3600, each(sets)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	const in = `$ORIGIN example.org.
$TTL 300
z A 192.0.2.9
*.z AAAA 2001:db8::1
@ TXT "apex"
@ A 192.0.2.1
@ NS ns2
@ NS NS1
@ SOA ns1 hostmaster 1 2 3 4 5
a\.b 60 MX 20 mail.example.net.
a\.b 60 MX 10 @
b.a TXT "x" "\"\\\000\255;"
\@ TYPE65280 \# 2 beef
\$ttl APL \# 0
elsewhere.test. A 192.0.2.3
`
	const want = `$ORIGIN example.org.
$TTL 3600
@ 300 IN SOA ns1.example.org. hostmaster.example.org. 1 2 3 4 5
@ 300 IN NS NS1.example.org.
@ 300 IN NS ns2.example.org.
@ 300 IN A 192.0.2.1
@ 300 IN TXT "apex"
\$ttl 300 IN APL \# 0
\@ 300 IN TYPE65280 \# 2 beef
b.a 300 IN TXT "x" "\"\\\000\255;"
a\.b 60 IN MX 10 example.org.
a\.b 60 IN MX 20 mail.example.net.
z 300 IN A 192.0.2.9
*.z 300 IN AAAA 2001:db8::1
elsewhere.test. 300 IN A 192.0.2.3
`
	sets, err := gather(in, zonefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := mustWrite(t, dnsname.MustParse("example.org."), sets)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Write (-want +got):\n%s", diff)
	}
}

func TestWriteRoot(t *testing.T) {
	sets, err := gather("$ORIGIN .\n$TTL 5\n@ NS a.test.\ntest NS a.test\n", zonefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "$ORIGIN .\n$TTL 3600\n@ 5 IN NS a.test.\ntest 5 IN NS a.test.\n"
	if got := mustWrite(t, dnsname.Root, sets); got != want {
		t.Errorf("Write = %q, want %q", got, want)
	}
}

func TestWriteRefuses(t *testing.T) {
	org, a, b := dnsname.MustParse("example.org."), dnsname.MustParse("a.example.org."),
		dnsname.MustParse("b.example.org.")
	addr := "\xc0\x00\x02\x01"
	tests := []struct {
		want string
		sets []rr.Set
	}{
		{"write zone file: a.example.org. comes after b.example.org.",
			[]rr.Set{rr.NewSet(b, rr.TypeA, 1, addr), rr.NewSet(a, rr.TypeA, 1, addr)}},
		{"write zone file: a.example.org. A comes twice",
			[]rr.Set{rr.NewSet(a, rr.TypeA, 1, addr), rr.NewSet(a, rr.TypeA, 1, addr)}},
		{`write zone file: "a.example.org." ANY with TTL 1 cannot be written`, []rr.Set{rr.NewSet(a, rr.TypeANY, 1, addr)}},
		{`write zone file: "a.example.org." A with TTL 4294967295 cannot be written`,
			[]rr.Set{rr.NewSet(a, rr.TypeA, 1<<32-1, addr)}},
		{"write zone file: a.example.org.: A record: the data does not fit the type (overflow unpacking a)",
			[]rr.Set{rr.NewSet(a, rr.TypeA, 1, "\x01")}},
	}
	for _, tt := range tests {
		if err := zonefile.Write(&strings.Builder{}, org, 1, each(tt.sets)); err == nil || err.Error() != tt.want {
			t.Errorf("Write = %v, want %s", err, tt.want)
		}
	}
	gone := errors.New("store is gone")
	err := zonefile.Write(&strings.Builder{}, org, 1, func(yield func(rr.Set, error) bool) { yield(rr.Set{}, gone) })
	if !errors.Is(err, gone) {
		t.Errorf("Write = %v, want %v", err, gone)
	}
	if err := zonefile.Write(&strings.Builder{}, dnsname.Name{}, 1, each(nil)); err == nil {
		t.Error("Write without an origin succeeds")
	}
}

// rewrite checks that sets survive a round trip, and that the second file equals the first.
func rewrite(t *testing.T, origin dnsname.Name, sets []rr.Set) {
	t.Helper()
	text := mustWrite(t, origin, sets)
	back, err := gather(text, zonefile.Options{})
	if err != nil {
		t.Fatalf("Parse(Write): %v\n%s", err, text)
	}
	byType := func(a, b rr.Set) int {
		if c := a.Name.Compare(b.Name); c != 0 {
			return c
		}
		return int(a.Type) - int(b.Type)
	}
	sets = slices.SortedFunc(slices.Values(sets), byType)
	slices.SortFunc(back, byType)
	if !slices.EqualFunc(sets, back, rr.Set.Equal) {
		t.Fatalf("Parse(Write) lost something: wrote\n%s\ngot %v, want %v", text, back, sets)
	}
	if again := mustWrite(t, origin, back); again != text {
		t.Fatalf("Write(Parse(Write)) is\n%s\nwant\n%s", again, text)
	}
}

// TestRewriteBytes has every byte in owners, in names of data and in strings, and random bytes for every type.
func TestRewriteBytes(t *testing.T) {
	origin := dnsname.MustParse("example.org.")
	random := rand.New(rand.NewPCG(1, 2))
	var sets []rr.Set
	for c := range 256 {
		n, err := origin.Child("x" + string([]byte{byte(c)}))
		if err != nil {
			t.Fatal(err)
		}
		first, err := n.Child(string([]byte{byte(c)}))
		if err != nil {
			t.Fatal(err)
		}
		txt := "\x03" + string([]byte{byte(c), 'a', byte(c)})
		sets = append(sets, rr.NewSet(n, rr.TypeTXT, uint32(c), txt, "\x00"+txt), rr.NewSet(n, rr.TypeCNAME, 1, first.Wire()),
			rr.NewSet(first, rr.TypeMX, 1, "\x00\x01\x01"+string([]byte{byte(c)})+"\x00"))
	}
	accepted := map[rr.Type]int{}
	for typ := rr.Type(1); typ < 300; typ++ {
		set := rr.Set{Name: dnsname.MustParse("random.example.org."), Type: typ, TTL: 1}
		for range 60 {
			b := make([]byte, random.IntN(24))
			for i := range b {
				if b[i] = byte(random.Uint32()); random.IntN(2) == 0 {
					b[i] &= 3 // lengths and counts that make sense
				}
			}
			if typ.IsData() && rr.Check(typ, string(b)) == nil {
				set.Data = append(set.Data, string(b))
				accepted[typ]++
			}
		}
		if set.Data = rr.Normal(typ, set.Data); len(set.Data) > 0 {
			sets = append(sets, set)
		}
	}
	if len(accepted) < 60 {
		t.Errorf("random data was accepted for %d types only", len(accepted))
	}
	seen := map[string]bool{}
	sets = slices.DeleteFunc(sets, func(s rr.Set) bool { // xA and xa are one name
		k := s.Name.String() + s.Type.String()
		defer func() { seen[k] = true }()
		return seen[k]
	})
	slices.SortStableFunc(sets, func(a, b rr.Set) int { return a.Name.Compare(b.Name) })
	rewrite(t, origin, sets)
}
