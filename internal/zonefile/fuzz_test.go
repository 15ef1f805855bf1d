package zonefile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// FuzzParse checks that any input ends, without a panic, in an error with a position or in sets that survive a round
// trip.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/good/*.txtar")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		_, zone, _ := strings.Cut(string(b), "-- zone --\n")
		f.Add([]byte(zone))
	}
	f.Add([]byte("$GENERATE 1-3 a${1,2,n} TXT \"$\"\n"))
	f.Add([]byte("a MX (\n10\nb)\n\\@ HTTPS 1 . alpn=\"a\\\\,b\""))
	origin := dnsname.MustParse("example.org.")
	include := fstest.MapFS{"i": {Data: []byte("i A 192.0.2.1\n$INCLUDE j\n")}, "j": {Data: []byte(" TXT j\n")}}
	f.Fuzz(func(t *testing.T, b []byte) {
		o := zonefile.Options{File: "f", Origin: origin, DefaultTTL: 60, Include: include}
		sets, err := gather(string(b), o)
		if err != nil {
			if e, ok := err.(*zonefile.Error); !ok || e.Line < 1 || e.Column < 1 || e.Line > strings.Count(string(b), "\n")+1 {
				t.Fatalf("error without a position: %v", err)
			}
			return
		}
		rewrite(t, origin, sets)
	})
}

func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	text.WriteString("$ORIGIN example.org.\n$TTL 300\n")
	for i := range 100_000 {
		fmt.Fprintf(&text, "host%06d IN A 192.0.2.%d\n", i, i%256)
	}
	other := strings.NewReplacer(" A 192.0.2.", " MX 10 mail").Replace(text.String())
	for name, in := range map[string]string{"a": text.String(), "mx": other} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				n := 0
				err := zonefile.Parse(strings.NewReader(in), zonefile.Options{}, func(zonefile.Record) error { n++; return nil })
				if err != nil || n != 100_000 {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/record")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	var text strings.Builder
	text.WriteString("$ORIGIN example.org.\n$TTL 300\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "host%06d IN A 192.0.2.%d\n", i, i%256)
	}
	sets, err := gather(text.String(), zonefile.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var out strings.Builder
		if err := zonefile.Write(&out, dnsname.MustParse("example.org."), 300, each(sets)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/record")
}
