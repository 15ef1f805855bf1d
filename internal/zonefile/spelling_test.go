package zonefile_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

func TestSpelling(t *testing.T) {
	const file = `$ORIGIN Example.ORG.
@ 60 A 192.0.2.1
www 60 A 192.0.2.1
  60 AAAA 2001:db8::1
lower.example.org. 60 A 192.0.2.1
Upper.example.org. 60 A 192.0.2.1
$INCLUDE sub Sub
$ORIGIN lower.
plain 60 A 192.0.2.1
A\.B 60 A 192.0.2.1
A\. 60 A 192.0.2.1
@ 60 A 192.0.2.1
$ORIGIN .
Top 60 A 192.0.2.1
top 60 A 192.0.2.1
`
	want := []string{"example.org. Example.ORG.", "www.example.org. www.Example.ORG.", "www.example.org. www.Example.ORG.",
		"lower.example.org. ", "upper.example.org. Upper.example.org.", "in.sub.example.org. in.Sub.Example.ORG.",
		"plain.lower. ", `a\.b.lower. A\.B.lower.`, `a\..lower. A\..lower.`, "lower. ", "top. Top.", "top. "}
	var got []string
	o := zonefile.Options{Include: fstest.MapFS{"sub": &fstest.MapFile{Data: []byte("in 60 A 192.0.2.1\n")}}}
	err := zonefile.Parse(strings.NewReader(file), o, func(r zonefile.Record) error {
		got = append(got, r.Name.String()+" "+r.Spelling)
		return nil
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Parse: %v (-want +got)\n%s", err, diff)
	}
}

// TestStageSpelling stages names with and without a spelling, in several runs.
func TestStageSpelling(t *testing.T) {
	s := newStage(t)
	const n = 200
	for i := range n {
		name := fmt.Sprintf("Host%03d.example.org.", i)
		r := zonefile.Record{Name: dnsname.MustParse(name), Type: rr.TypeTXT, TTL: 60, Data: strings.Repeat("x", 20_000)}
		if i%2 == 0 {
			r.Spelling = name
		}
		add(t, s, r)
		r.Spelling, r.Data = "another", "y"
		add(t, s, r)
	}
	i := 0
	for set, spelling := range s.Sets() {
		want := ""
		if i%2 == 0 {
			want = fmt.Sprintf("Host%03d.example.org.", i)
		}
		if spelling != want || len(set.Data) != 2 {
			t.Fatalf("set %d has %d records and the spelling %q, want 2 and %q", i, len(set.Data), spelling, want)
		}
		i++
	}
	if i != n || s.Err() != nil {
		t.Errorf("%d sets, %v; want %d", i, s.Err(), n)
	}
}
