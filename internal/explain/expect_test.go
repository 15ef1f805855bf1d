package explain_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
)

func TestCheckSelectors(t *testing.T) {
	for _, good := range [][]string{nil, {"s1"}, {"a.b-c", "2026_x"}, strings.Split("a b c d e f g h", " ")} {
		if err := explain.CheckSelectors(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range [][]string{{""}, {"a", "b."}, {"a b"}, {"a..b"}, {"*"}, {strings.Repeat("x", 64)},
		{"s1._domainkey."}, {strings.Repeat("x.", 64) + "x"}, make([]string, explain.MaxSelectors+1)} {
		if err := explain.CheckSelectors(bad); err == nil {
			t.Errorf("%q: want an error", bad)
		}
	}
}

func TestParseExpect(t *testing.T) {
	long := strings.Repeat("x", 300)
	for text, want := range map[string]string{
		"A=192.0.2.1":                            "192.0.2.1",
		"AAAA=2001:0DB8:0:0::01":                 "2001:db8::1",
		"CNAME=Edge.Example.NET":                 "edge.example.net.",
		"cname=edge.example.net.":                "edge.example.net.",
		"MX=10 Mail.example.org":                 "10 mail.example.org.",
		"TXT=v=spf1 mx -all":                     `"v=spf1 mx -all"`,
		`TXT="v=spf1 mx -all"`:                   `"v=spf1 mx -all"`,
		"TXT=" + long:                            `"` + long[:255] + `" "` + long[255:] + `"`,
		`CAA=0 issue "ca.example.net"`:           `0 issue "ca.example.net"`,
		"HTTPS=1 . alpn=h2":                      `1 . alpn="h2"`,
		"SRV=1 2 443 Www.Example.org":            "1 2 443 www.example.org.",
		"TLSA=3 1 1 " + strings.Repeat("AB", 32): "3 1 1 " + strings.Repeat("ab", 32),
	} {
		set, err := explain.ParseExpect(text)
		if err != nil || len(set.Data) != 1 || set.Data[0] != want {
			t.Errorf("%s: %q, %v; want %q", text, set.Data, err, want)
		}
	}
	for _, text := range []string{"", "A", "A=", "A=192.0.2.01", "A=2001:db8::1", "AAAA=192.0.2.1", "A=www.example.org",
		"ANY=x", "NOSUCH=x", "MX=mail.example.org", "CNAME=a..b"} {
		if set, err := explain.ParseExpect(text); err == nil {
			t.Errorf("%s: %+v, want an error", text, set)
		}
	}
}
