package zonefile_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// list returns the records of a file, one per line.
func list(r io.Reader, o zonefile.Options) (string, error) {
	var b strings.Builder
	err := zonefile.Parse(r, o, func(rec zonefile.Record) error {
		fmt.Fprintf(&b, "%s:%d %s %d %s %s\n", rec.File, rec.Line, rec.Name, rec.TTL, rec.Type,
			rr.DataText(rec.Type, rec.Data))
		return nil
	})
	return b.String(), err
}

func TestParseGood(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no test files", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			fsys := fstest.MapFS{}
			for _, f := range a.Files {
				fsys[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			text := string(fsys["zone"].Data)
			for _, in := range []io.Reader{
				strings.NewReader(text),
				iotest.OneByteReader(strings.NewReader(text)),
				strings.NewReader("\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")),
				strings.NewReader(strings.TrimSuffix(text, "\n")),
			} {
				got, err := list(in, zonefile.Options{File: "zone", Include: fsys})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(fsys["want"].Data), got); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestParseOptions(t *testing.T) {
	o := zonefile.Options{Origin: dnsname.MustParse("example.org."), DefaultTTL: 42}
	got, err := list(strings.NewReader("www A 192.0.2.1"), o)
	if want := ":1 www.example.org. 42 A 192.0.2.1\n"; got != want || err != nil {
		t.Errorf("Parse = %q, %v, want %q", got, err, want)
	}
	for _, empty := range []string{"", "\n", "; nothing", " ( \n ) ; nothing\n", "\r\n\t\r\n"} {
		if got, err := list(strings.NewReader(empty), o); got != "" || err != nil {
			t.Errorf("Parse(%q) = %q, %v", empty, got, err)
		}
	}
}

func TestParseBroken(t *testing.T) {
	long := strings.Repeat("x", 600<<10)
	tests := []struct{ in, want string }{
		{" A 192.0.2.1",
			`1:1: the first record has no owner name (a line that begins with a blank belongs to the name before it)`},
		{"www", `1:4: the record has no type`},
		{"www 300 IN\n", `1:11: the record has no type`},
		{"a A 192.0.2.1\nwww IN BOGUS x",
			`2:8: unknown record type "BOGUS" (a type without a name is written TYPE and its number, its data \# and ` +
				`hexadecimal)`},
		{"a A 192.0.2.1\n w A 192.0.2.1",
			`2:2: unknown record type "w" (a type without a name is written TYPE and its number, its data \# and hexadecimal)`},
		{"www TYPE65536 x",
			`1:5: unknown record type "TYPE65536" (a type without a name is written TYPE and its number, its data \# and ` +
				`hexadecimal)`},
		{"www 60 60 A 192.0.2.1",
			`1:8: unknown record type "60" (a type without a name is written TYPE and its number, its data \# and hexadecimal)`},
		{"www CH TXT x", `1:5: class "CH" is not served (only class IN is; the class may be left out)`},
		{"www 5 CLASS3 TXT x", `1:7: class "CLASS3" is not served (only class IN is; the class may be left out)`},
		{"www ANY x", `1:8: records of type ANY cannot be stored`},
		{"www 2147483648 A 192.0.2.1", `1:5: TTL "2147483648" is larger than 2147483647 seconds (RFC 2181)`},
		{"www 18446744073709551621 A 192.0.2.1",
			`1:5: TTL "18446744073709551621" is larger than 2147483647 seconds (RFC 2181)`},
		{"www 99999w A 192.0.2.1", `1:5: TTL "99999w" is larger than 2147483647 seconds (RFC 2181)`},
		{"$TTL 1h30", `1:6: "1h30" is not a TTL (a TTL is a number of seconds, or has units such as 1h30m)`},
		{"$TTL m", `1:6: "m" is not a TTL (a TTL is a number of seconds, or has units such as 1h30m)`},
		{"$TTL", `1:5: $TTL wants a TTL`},
		{"$TTL 1 2", `1:8: unexpected "2" after $TTL`},
		{"www A", `1:6: A record ends too early: its data is not complete`},
		{"www A 2001:db8::1", `1:7: A record: "2001:db8::1" is not an IPv4 address (an IPv6 address has type AAAA)`},
		{"www AAAA 192.0.2.1", `1:10: AAAA record: "192.0.2.1" is not an IPv6 address (an IPv4 address has type A)`},
		{"www A 192.0.2.256", `1:7: A record: "192.0.2.256" is not an IPv4 address`},
		{"www A 192.0.2.1 192.0.2.2", `1:17: unexpected "192.0.2.2" after the data of the A record`},
		{"www MX mail", `1:8: MX record: "mail" is not a valid Pref`},
		{"www MX 10", `1:10: MX record ends too early: its data is not complete`},
		{"www MX (\n 10\n mail. ; comment\n more )", `4:2: unexpected "more" after the data of the MX record`},
		{"www A \\# 4 c00002", `1:7: A record: \# announces 4 bytes and carries 3`},
		{"www CNAME a..b", `1:11: CNAME record: "a..b" is not a valid Target`},
		{"a..b A 192.0.2.1", `1:1: name has an empty label: "a..b"`},
		{`"www" A 192.0.2.1`, `1:1: a name is not quoted (a blank in a name is written \032)`},
		{`w\ww\300 A 192.0.2.1`, `1:5: broken escape (a backslash wants one character or three digits up to 255 after it)`},
		{`www TXT a\`, `1:10: broken escape (a backslash wants one character or three digits up to 255 after it)`},
		{"www TXT \"a\nb\"\n", `1:9: a quoted string is not closed on its line (a line break inside it is written \010)`},
		{"a A 192.0.2.1\nwww MX ( 10\n mail.\n\n", `2:8: this parenthesis is never closed`},
		{"a A 192.0.2.1\nwww MX 10 ) mail.", `2:11: this parenthesis was never opened`},
		{"( www A 192.0.2.1 )", `1:1: a parenthesis begins the line (put the owner's name or a blank before it)`},
		{"a A 192.0.2.1\nw\x00w A 192.0.2.1", `2:2: control character 0x00 (is this a text file?)`},
		{"a A 192.0.2.1 ; \x00", `1:17: control character 0x00 (is this a text file?)`},
		{"a A 192.0.2.1\rb A 192.0.2.1\r",
			`1:14: control character 0x0d (lines end with a line feed, alone or after a carriage return)`},
		{"a TXT \x1b[31m", `1:7: control character 0x1b (in a name or string it is written \027)`},
		{"\x7fELF\x02\x01\x01", `1:1: control character 0x7f (in a name or string it is written \127)`},
		{"a A 192.0.2.1\na TXT " + long, `2:1: this record has more than 524288 bytes`},
		{"a TXT (\n" + strings.Repeat("xxxxxxxxxxxxxxx\n", 40000) + ")", `1:1: this record has more than 524288 bytes`},
		{"$BOGUS x",
			`1:1: unknown directive "$BOGUS" (there are $ORIGIN, $TTL, $INCLUDE and $GENERATE; a name that begins with a ` +
				`dollar sign is written \$)`},
		{"$ORIGIN", `1:8: $ORIGIN wants a name`},
		{"$ORIGIN a b", `1:11: unexpected "b" after $ORIGIN`},
		{"$ORIGIN a..b", `1:9: name has an empty label: "a..b"`},
		{"$INCLUDE other",
			`1:10: $INCLUDE is not allowed here (put the records into one file, or import the file with the command line)`},
		{"$INCLUDE", `1:9: $INCLUDE wants a file`},
		{"$GENERATE 2-1 a$ A 192.0.2.$",
			`1:11: "2-1" is not a range of $GENERATE (a range is start-stop or start-stop/step, with 0 <= start <= stop)`},
		{"$GENERATE 1-2/0 a$ A 192.0.2.$",
			`1:11: "1-2/0" is not a range of $GENERATE (a range is start-stop or start-stop/step, with 0 <= start <= stop)`},
		{"$GENERATE",
			`1:10: "" is not a range of $GENERATE (a range is start-stop or start-stop/step, with 0 <= start <= stop)`},
		{"$GENERATE 1-2", `1:14: $GENERATE wants a record after its range`},
		{"$GENERATE 1-300 a$ A 192.0.2.$",
			`1:17: in "a256 A 192.0.2.256", made by $GENERATE: A record: "192.0.2.256" is not an IPv4 address`},
		{"$GENERATE 1-2 a${0,1,q} A 192.0.2.1",
			`1:16: "${0,1,q}" is not a form of $GENERATE's number (it is ${offset,width,base}, with base d, o, x, X, n or N)`},
		{"$GENERATE 1-2 a${-2} A 192.0.2.1",
			`1:16: "${-2}" is not a form of $GENERATE's number (it is ${offset,width,base}, with base d, o, x, X, n or N)`},
		{"$GENERATE 1-2 a${ A 192.0.2.1", `1:16: ${ is not closed`},
		{"$GENERATE 1-2 a TXT " + strings.Repeat("${0,255}", 9), `1:15: $GENERATE makes a record of more than 2048 bytes`},
		{"$GENERATE 0-65536 a$ A 192.0.2.1", `1:11: $GENERATE would make more than 65536 records in this file`},
		{"$GENERATE 1-40000 a$ A 192.0.2.1\n$GENERATE 1-40000 a$ A 192.0.2.1",
			`2:11: $GENERATE would make more than 65536 records in this file`},
		{"$GENERATE 0-0 $$INCLUDE /etc/passwd",
			`1:15: in "\\$INCLUDE /etc/passwd", made by $GENERATE: unknown record type "/etc/passwd" (a type without a name ` +
				`is written TYPE and its number, its data \# and hexadecimal)`},
	}
	o := zonefile.Options{File: "db.example", Origin: dnsname.MustParse("example.org."), DefaultTTL: 60}
	for _, tt := range tests {
		_, err := list(strings.NewReader(tt.in), o)
		var e *zonefile.Error
		if !errors.As(err, &e) || err.Error() != "db.example:"+tt.want {
			t.Errorf("Parse(%.60q) =\n %v, want\n db.example:%s", tt.in, err, tt.want)
		}
	}
}

func TestParseNoOrigin(t *testing.T) {
	tests := []struct{ in, want string }{
		{"www 60 A 192.0.2.1",
			`1:1: name has no final dot and no origin is known: "www" (begin the file with $ORIGIN and the zone's name, or ` +
				`give the zone's name with the file)`},
		{"@ 60 A 192.0.2.1",
			`1:1: name has no final dot and no origin is known: "@" (begin the file with $ORIGIN and the zone's name, or ` +
				`give the zone's name with the file)`},
		{"www. 60 NS ns", `1:12: NS record: "ns" is not a valid Ns`},
		{"www. A 192.0.2.1",
			`1:1: the record has no TTL and there is no default (begin the file with a line such as $TTL 1h)`},
	}
	for _, tt := range tests {
		if _, err := list(strings.NewReader(tt.in), zonefile.Options{}); err == nil || err.Error() != tt.want {
			t.Errorf("Parse(%q) =\n %v, want\n %s", tt.in, err, tt.want)
		}
	}
}

// TestParseCallerError checks that an error of the caller gets the record's line, and wraps the cause.
func TestParseCallerError(t *testing.T) {
	conflict := errors.New("www.example.org. has a CNAME already")
	in := "$ORIGIN example.org.\n$TTL 1\n\nwww CNAME a\nwww MX (\n 10\n a )\n"
	n := 0
	err := zonefile.Parse(strings.NewReader(in), zonefile.Options{File: "z"}, func(zonefile.Record) error {
		if n++; n == 2 {
			return conflict
		}
		return nil
	})
	if want := "z:5:1: www.example.org. has a CNAME already"; !errors.Is(err, conflict) || err.Error() != want {
		t.Errorf("Parse = %v, want %s", err, want)
	}
}

func TestParseReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	in := io.MultiReader(strings.NewReader("$TTL 1\na. A 192.0.2.1\nb. "), iotest.ErrReader(broken))
	got, err := list(in, zonefile.Options{File: "z"})
	if want := "z:3:1: cannot read on: disk on fire"; !errors.Is(err, broken) || err.Error() != want || got == "" {
		t.Errorf("Parse = %q, %v, want one record and %s", got, err, want)
	}
}
