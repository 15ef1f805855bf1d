package zonefile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

func TestReviveAlias(t *testing.T) {
	const file = `$ORIGIN example.org.
$TTL 3600
; just a comment about an ALIAS
; example.org. 300 IN ALIAS cdn.example.net.
@ 60 IN A 192.0.2.1
;www ALIAS other ; example.net.
;www IN alias cdn.example.net.
; a 60 IN A 192.0.2.1
b 60 IN TXT ( "x"
; c.example.org. 300 IN ALIAS cdn.example.net.
)
d 60 IN A 192.0.2.1 ; d.example.org. 300 IN ALIAS cdn.example.net.
`
	read := func(revive bool) (got []string) {
		err := zonefile.Parse(strings.NewReader(file), zonefile.Options{ReviveAlias: revive}, func(r zonefile.Record) error {
			got = append(got, strings.Join([]string{r.Name.String(), r.Type.String(), rr.DataText(r.Type, r.Data)}, " "))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	plain := []string{"example.org. A 192.0.2.1", `b.example.org. TXT "x"`, "d.example.org. A 192.0.2.1"}
	if diff := cmp.Diff(plain, read(false)); diff != "" {
		t.Errorf("plain (-want +got):\n%s", diff)
	}
	revived := []string{"example.org. ALIAS cdn.example.net.", plain[0], "www.example.org. ALIAS cdn.example.net.",
		plain[1], plain[2]}
	if diff := cmp.Diff(revived, read(true)); diff != "" {
		t.Errorf("revived (-want +got):\n%s", diff)
	}
}

func TestWriteAlias(t *testing.T) {
	name := dnsname.MustParse("example.org.")
	sets := func(yield func(rr.Set, error) bool) {
		yield(rr.NewSet(name, rr.TypeA, 60, "\xc0\x00\x02\x01"), nil)
		yield(rr.NewSet(name, rr.TypeALIAS, 300, dnsname.MustParse("cdn.example.net.").Wire()), nil)
	}
	var b strings.Builder
	if err := zonefile.Write(&b, name, 3600, sets); err != nil {
		t.Fatal(err)
	}
	const want = "$ORIGIN example.org.\n$TTL 3600\n; example.org. 300 IN ALIAS cdn.example.net.\n@ 60 IN A 192.0.2.1\n"
	if b.String() != want {
		t.Errorf("wrote\n%s, want\n%s", b.String(), want)
	}
}
