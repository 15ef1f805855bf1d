package rr_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/rr"
)

func TestDataTextRoundTrip(t *testing.T) {
	tests := []struct{ typ, in, want string }{
		{"A", "192.0.2.1", "192.0.2.1"},
		{"AAAA", "2001:db8::1", "2001:db8::1"},
		{"AAAA", "::ffff:192.0.2.1", "::ffff:192.0.2.1"},
		{"CNAME", "Www.Example.org.", "Www.Example.org."},
		{"ALIAS", "Www.Example.org.", "Www.Example.org."},
		{"alias", `a\.b.example.org.`, `a\.b.example.org.`},
		{"TYPE65401", `\# 13 0765 78616d706c65 036f7267 00`, "example.org."},
		{"MX", "10 mail.example.org.", "10 mail.example.org."},
		{"TXT", `"a b" "c\"d"`, `"a b" "c\"d"`},
		{"TXT", `plain`, `"plain"`},
		{"SRV", "1 2 443 host.example.org.", "1 2 443 host.example.org."},
		{"CAA", `0 issue "ca.example.net"`, `0 issue "ca.example.net"`},
		{"HTTPS", `1 . alpn="h2,h3"`, `1 . alpn="h2,h3"`},
		{"TYPE65280", `\# 3 abcdef`, `\# 3 abcdef`},
		{"A", `\# 4 c0000201`, "192.0.2.1"},
		{"NS", `a\.b.example.org.`, `a\.b.example.org.`},
		{"NAPTR", `1 2 S SIP+D2U !^.*$!a! .`, `1 2 "S" "SIP+D2U" "!^.*$!a!" .`},
		{"NAPTR", `  1  2 "S"	a\"b "" example.org.`, `1 2 "S" "a\"b" "" example.org.`},
	}
	for _, tt := range tests {
		typ, err := rr.ParseType(tt.typ)
		if err != nil {
			t.Fatal(err)
		}
		d, err := rr.ParseData(typ, tt.in)
		if err != nil {
			t.Errorf("ParseData(%s, %q): %v", tt.typ, tt.in, err)
			continue
		}
		if got := rr.DataText(typ, d); got != tt.want {
			t.Errorf("DataText(ParseData(%s, %q)) = %q, want %q", tt.typ, tt.in, got, tt.want)
		}
		if err := rr.Check(typ, d); err != nil {
			t.Errorf("Check(%s, %q): %v", tt.typ, tt.in, err)
		}
	}
}

func TestParseDataRefuses(t *testing.T) {
	tests := []struct{ typ, in string }{
		{"A", "192.0.2.1.5"}, {"A", "2001:db8::1"}, {"A", ""}, {"AAAA", "192.0.2.1"}, {"AAAA", "fe80::1%eth0"},
		{"A", "192.0.2.1\n@ A 192.0.2.2"}, {"MX", "mail.example.org."}, {"MX", "70000 a."}, {"ANY", "x"}, {"OPT", `\# 0`},
		{"CNAME", "a..b."}, {"ALIAS", "a..b."}, {"ALIAS", ""}, {"ALIAS", `\# 4 c0000201`}, {"ALIAS", "a. b."},
		{"MX", `\# 2 000a`}, {"SRV", `\# 6 000000000035`}, {"SVCB", `\# 2 0001`}, {"A", `\# 5 c000020100`},
		{"A", "192.0.2.1 192.0.2.2"}, {"NAPTR", `1 2 S SIP+D2U .`}, {"NAPTR", `1 2 a"b" c d .`}, {"NAPTR", `1 2 a b c d e`},
		{"NAPTR", `1 2 S`}, {"NAPTR", `a b c d e .`},
	}
	for _, tt := range tests {
		typ, err := rr.ParseType(tt.typ)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := rr.ParseData(typ, tt.in); err == nil {
			t.Errorf("ParseData(%s, %q) = %x, want an error", tt.typ, tt.in, d)
		}
	}
}

func TestNormal(t *testing.T) {
	data := func(s string) string {
		d, err := rr.ParseData(rr.TypeNS, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	got := rr.Normal(rr.TypeNS, []string{data("b.test."), data("A.test."), data("a.test.")})
	if len(got) != 2 || got[0] != data("A.test.") || got[1] != data("b.test.") {
		t.Errorf("Normal = %q, want A.test. and b.test.", got)
	}
}

// TestDataTextLongLists has data for which the library would need seconds to build the text.
func TestDataTextLongLists(t *testing.T) {
	bitmap := ""
	for w := range 256 {
		bitmap += string([]byte{byte(w), 32}) + strings.Repeat("\xff", 32)
	}
	params := "\x00\x01\x00"
	for key := 100; key < 16000; key++ {
		params += string([]byte{byte(key >> 8), byte(key), 0, 0})
	}
	tests := []struct{ typ, data string }{
		{"SVCB", params},
		{"HTTPS", params},
		{"NSEC", "\x00" + bitmap},
		{"CSYNC", "\x00\x00\x00\x00\x00\x00" + bitmap},
		{"NSEC3", "\x01\x00\x00\x00\x00\x01\xff" + bitmap},
		{"HIP", "\x01\x01\x00\x01ab" + strings.Repeat("\x00", 60000)},
	}
	for _, tt := range tests {
		typ, err := rr.ParseType(tt.typ)
		if err != nil {
			t.Fatal(err)
		}
		if err := rr.Check(typ, tt.data); err != nil {
			t.Fatalf("Check(%s): %v", typ, err)
		}
		text := rr.DataText(typ, tt.data)
		if back, err := rr.ParseData(typ, text); !strings.HasPrefix(text, `\# `) || err != nil || back != tt.data {
			t.Errorf("DataText(%s) = %.40q, which reads back as %.40q, %v", typ, text, back, err)
		}
	}
}
