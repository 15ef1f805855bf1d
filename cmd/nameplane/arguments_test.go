package main

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

func TestParseOwner(t *testing.T) {
	zone := dnsname.MustParse("example.org.")
	tests := []struct{ in, want string }{
		{"@", "example.org."},
		{"www", "www.example.org."},
		{"a.b", "a.b.example.org."},
		{"www.example.org", "www.example.org."},
		{"WWW.Example.Org.", "www.example.org."},
		{"example.org", "example.org."},
		{"*", "*.example.org."},
		{"www.example.org.example.org.", "www.example.org.example.org."},
		{"notexample.org", "notexample.org.example.org."},
		{`attacker\.example.org`, `attacker\.example.org.example.org.`},
		{"www.example.net.", ""},
		{`x\.example.org.`, ""},
		{"", ""},
		{"a..b", ""},
		{strings.Repeat("a", 64), ""},
	}
	for _, tt := range tests {
		n, err := parseOwner(tt.in, zone)
		switch {
		case tt.want == "" && err == nil:
			t.Errorf("parseOwner(%q) = %v, want an error", tt.in, n)
		case tt.want != "" && (err != nil || n.String() != tt.want):
			t.Errorf("parseOwner(%q) = %v, %v, want %s", tt.in, n, err, tt.want)
		}
	}
}

func TestParseData(t *testing.T) {
	zone := dnsname.MustParse("example.org.")
	long := strings.Repeat("x", 300)
	tests := []struct{ typ, in, want string }{
		{"A", "192.0.2.1", "192.0.2.1"},
		{"A", "192.0.2", ""},
		{"AAAA", "2001:DB8::0:1", "2001:db8::1"},
		{"CNAME", "www.example.net", "www.example.net."},
		{"CNAME", "www.example.net.", "www.example.net."},
		{"CNAME", "www", ""}, // ambiguous: in the zone, or a top-level domain
		{"CNAME", "www.", "www."},
		{"MX", "10 mail.example.net", "10 mail.example.net."},
		{"MX", "10 mail", ""},
		{"MX", "0 .", "0 ."},
		{"SRV", "0 5 5060 sip.example.org", "0 5 5060 sip.example.org."},
		{"TXT", "v=spf1 mx -all", `"v=spf1 mx -all"`},
		{"TXT", `"two" "strings"`, `"two" "strings"`},
		{"TXT", "", `""`},
		{"TXT", "semi;colon (and parentheses)", `"semi;colon (and parentheses)"`},
		{"TXT", long, `"` + long[:255] + `" "` + long[255:] + `"`},
		{"TYPE65280", `\# 2 0a0b`, `\# 2 0a0b`},
	}
	for _, tt := range tests {
		typ, err := rr.ParseType(tt.typ)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseData(typ, tt.in, zone)
		if (tt.want == "") != (err != nil) || got != tt.want {
			t.Errorf("parseData(%s, %q) = %q, %v, want %q", tt.typ, tt.in, got, err, tt.want)
		}
	}
}
