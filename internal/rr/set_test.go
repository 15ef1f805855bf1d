package rr_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

func mustData(t *testing.T, typ rr.Type, text string) string {
	t.Helper()
	d, err := rr.ParseData(typ, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNewSet(t *testing.T) {
	tests := []struct {
		typ      rr.Type
		in, want []string
	}{
		{rr.TypeA, []string{"192.0.2.9", "192.0.2.10", "192.0.2.9"}, []string{"192.0.2.9", "192.0.2.10"}},
		{rr.TypeMX, []string{"20 A.test.", "10 b.test.", "20 a.test."}, []string{"10 b.test.", "20 A.test."}},
		{rr.TypeTXT, []string{"b", "B", "a"}, []string{`"B"`, `"a"`, `"b"`}},
		{rr.TypeA, nil, nil},
	}
	name := dnsname.MustParse("www.example.org.")
	for _, tt := range tests {
		var data, reverse []string
		for _, s := range tt.in {
			data = append(data, mustData(t, tt.typ, s))
		}
		for i := range data {
			reverse = append(reverse, data[len(data)-1-i])
		}
		set := rr.NewSet(name, tt.typ, 300, data...)
		var got []string
		for _, d := range set.Data {
			got = append(got, rr.DataText(tt.typ, d))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("NewSet(%s, %q) (-want +got):\n%s", tt.typ, tt.in, diff)
		}
		if other := rr.NewSet(name, tt.typ, 300, reverse...); len(other.Data) != len(set.Data) {
			t.Errorf("NewSet(%s) has %d records in one order and %d in the other", tt.typ, len(set.Data), len(other.Data))
		}
		if !set.Equal(rr.NewSet(name, tt.typ, 300, data...)) || set.Equal(rr.NewSet(name, tt.typ, 301, data...)) {
			t.Errorf("Equal(%s) does not compare data and TTL", tt.typ)
		}
	}
}

func TestTargetAndCompressible(t *testing.T) {
	tests := []struct {
		typ      rr.Type
		text     string
		want     string // target
		compress bool
	}{
		{rr.TypeCNAME, "A.example.org.", "a.example.org.", true},
		{rr.TypeMX, "10 mail.example.org.", "mail.example.org.", true},
		{rr.TypeSRV, "1 2 3 srv.example.org.", "srv.example.org.", false},
		{rr.TypeDNAME, "example.net.", "example.net.", false},
		{rr.TypeTXT, "a", "", false},
	}
	for _, tt := range tests {
		data := mustData(t, tt.typ, tt.text)
		if got, ok := rr.Target(tt.typ, data); got.String() != tt.want || ok != (tt.want != "") {
			t.Errorf("Target(%s %s) = %s, %v, want %s", tt.typ, tt.text, got, ok, tt.want)
		}
		if _, ok := rr.Compressible(tt.typ); ok != tt.compress {
			t.Errorf("Compressible(%s) = %v, want %v", tt.typ, ok, tt.compress)
		}
	}
	if n, ok := rr.Target(rr.TypeMX, "\x00"); ok {
		t.Errorf("Target of MX data that is cut short = %s", n)
	}
}

func TestSyntaxErrors(t *testing.T) {
	tests := []struct {
		typ, text, reason string
		offset            int
	}{
		{"A", "", "A record ends too early: its data is not complete", 0},
		{"A", " 2001:db8::1", `A record: "2001:db8::1" is not an IPv4 address`, 1},
		{"AAAA", "192.0.2.1", `AAAA record: "192.0.2.1" is not an IPv6 address`, 0},
		{"AAAA", "fe80::1%eth0", `AAAA record: "fe80::1%eth0" is not an IPv6 address`, 0},
		{"A", "192.0.2.1 192.0.2.2", `unexpected "192.0.2.2" after the data of the A record`, 10},
		{"A", `\# 3 c00002`, "A record: the data does not fit the type (overflow unpacking a)", 0},
		{"A", `\# 4 c00002`, `A record: \# announces 4 bytes and carries 3`, 0},
		{"A", `\# 0`, "A record has no data", 0},
		{"NS", `\# 2 c000`, "NS record: the data is not in its plain wire form", 0},
		{"TYPE65280", "", "TYPE65280 record ends too early: its data is not complete", 0},
		{"MX", "", "MX record ends too early: its data is not complete", 0},
		{"MX", "10", "MX record ends too early: its data is not complete", 2},
		{"MX", "x a.", `MX record: "x" is not a valid Pref`, 0},
		{"MX", "10 a..b.", `MX record: "a..b." is not a valid Mx`, 3},
		{"MX", "10 a. b.", `unexpected "b." after the data of the MX record`, 6},
		{"TXT", `a "b c`, "a quoted string is not closed", 2},
		{"TXT", "v=DKIM1; k=rsa", "';' outside quotes: quote the string, or put a backslash before it", 7},
		{"TXT", "a (b)", "'(' outside quotes: quote the string, or put a backslash before it", 2},
		{"TXT", `a\256`, "broken escape: a backslash wants one character or three digits up to 255 after it", 1},
		{"CNAME", `a\`, "broken escape: a backslash wants one character or three digits up to 255 after it", 1},
		{"TXT", "a\nb", `control character 0x0a: write it as \010`, 1},
		{"ANY", "a", "records of type ANY cannot be stored", 0},
		{"TYPE65280", "a", `TYPE65280 record: bad RFC3597 Rdata: "a"`, 0},
		{"SOA", strings.Repeat("x", 300), `SOA record: "` + strings.Repeat("x", 64) + `"... is not a valid Ns`, 0},
	}
	for _, tt := range tests {
		typ, err := rr.ParseType(tt.typ)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rr.ParseData(typ, tt.text)
		var syntax *rr.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("ParseData(%s, %q) = %v, want a *SyntaxError", tt.typ, tt.text, err)
			continue
		}
		if syntax.Reason != tt.reason || syntax.Offset != tt.offset {
			t.Errorf("ParseData(%s, %q) = %q at %d, want %q at %d",
				tt.typ, tt.text, syntax.Reason, syntax.Offset, tt.reason, tt.offset)
		}
	}
}

func TestParseDataIn(t *testing.T) {
	origin := dnsname.MustParse("example.org.")
	for in, want := range map[string]string{"@": "example.org.", "www": "www.example.org.", "a.test.": "a.test."} {
		d, err := rr.ParseDataIn(rr.TypeNS, in, origin)
		if err != nil || rr.DataText(rr.TypeNS, d) != want {
			t.Errorf("ParseDataIn(NS, %q) = %q, %v, want %q", in, rr.DataText(rr.TypeNS, d), err, want)
		}
	}
	if d, err := rr.ParseDataIn(rr.TypeNS, "www", dnsname.Name{}); err == nil {
		t.Errorf("ParseDataIn(NS, www) without an origin = %q", d)
	}
}

func TestTypes(t *testing.T) {
	tests := []struct {
		in     string
		want   rr.Type
		text   string
		isData bool
	}{
		{"a", rr.TypeA, "A", true}, {"TYPE1", rr.TypeA, "A", true}, {"type65280", 65280, "TYPE65280", true},
		{"TYPE0", 0, "TYPE0", false}, {"ANY", rr.TypeANY, "ANY", false}, {"OPT", rr.TypeOPT, "OPT", false},
		{"AXFR", rr.TypeAXFR, "AXFR", false}, {"CAA", 257, "CAA", true},
	}
	for _, tt := range tests {
		got, err := rr.ParseType(tt.in)
		if err != nil || got != tt.want || got.String() != tt.text || got.IsData() != tt.isData {
			t.Errorf("ParseType(%q) = %d %s %v %v, want %d %s %v", tt.in, got, got, got.IsData(), err,
				tt.want, tt.text, tt.isData)
		}
	}
	for _, in := range []string{"", "NONE", "RESERVED", "TYPE", "TYPE65536", "TYPE-1", "IN", "BOGUS"} {
		if got, err := rr.ParseType(in); err == nil {
			t.Errorf("ParseType(%q) = %s, want an error", in, got)
		}
	}
}

func TestTypeJSON(t *testing.T) {
	in := map[rr.Type][]rr.Type{rr.TypeA: {rr.TypeMX, 65280}}
	const want = `{"A":["MX","TYPE65280"]}`
	text, err := json.Marshal(in)
	if err != nil || string(text) != want {
		t.Fatalf("Marshal = %s, %v, want %s", text, err, want)
	}
	var out map[rr.Type][]rr.Type
	if err := json.Unmarshal(text, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("Unmarshal = %v, %v, want %v", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"A":["NONSENSE"]}`), &out); err == nil {
		t.Error("a type that nobody knows is read")
	}
}
