package enforce_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

func TestParsePattern(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Repeat(label+".", 3) // 192 characters
	tests := []struct {
		in   string
		deep bool
		want string // empty if rejected
		says string
	}{
		{in: "www.example.com", want: "www.example.com."},
		{in: "www.example.com.", want: "www.example.com."},
		{in: "WWW.Example.COM", want: "www.example.com."},
		{in: "*.example.com", want: "*.example.com."},
		{in: "*.Example.com.", want: "*.example.com."},
		{in: "a--b.example.com", want: "a--b.example.com."},
		{in: "1.example.com", want: "1.example.com."},
		{in: "**.example.com", deep: true, want: "**.example.com."},
		{in: "**.example.com", says: "not enabled"},
		{in: "bücher.example", want: "xn--bcher-kva.example."},
		{in: "*.BÜCHER.example.", want: "*.xn--bcher-kva.example."},
		{in: "xn--bcher-kva.example", want: "xn--bcher-kva.example."},
		{in: "bücher。example", want: "xn--bcher-kva.example."},
		{in: label + ".example.com", want: label + ".example.com."},
		{in: label + "a.example.com", says: "64 characters"},
		{in: long + strings.Repeat("b", 61), want: long + strings.Repeat("b", 61) + "."},
		{in: long + strings.Repeat("b", 62), says: "longer"},
		{in: "*." + long + strings.Repeat("b", 59), want: "*." + long + strings.Repeat("b", 59) + "."},
		{in: "*." + long + strings.Repeat("b", 60), says: "longer"},
		{in: "", says: "empty"},
		{in: ".", says: "empty"},
		{in: "*.", says: "empty"},
		{in: "*", says: "whole first label"},
		{in: "com", says: "two labels"},
		{in: "*.com", says: "two labels"},
		{in: "**.com", deep: true, says: "two labels"},
		{in: "localhost", says: "two labels"},
		{in: "a.*.com", says: "whole first label"},
		{in: "a*.example.com", says: "whole first label"},
		{in: "*.*.example.com", says: "whole first label"},
		{in: "***.example.com", deep: true, says: "whole first label"},
		{in: "-a.example.com", says: `label "-a"`},
		{in: "a-.example.com", says: `label "a-"`},
		{in: "a_b.example.com", says: `label "a_b"`},
		{in: "a b.example.com", says: `label "a b"`},
		{in: `a\.b.example.com`, says: `label "a\\"`},
		{in: "a..example.com", says: "two dots"},
		{in: ".example.com", says: "dot in front"},
		{in: "example.com..", says: "two dots"},
		{in: "192.0.2.1", says: "cidrSelector: 192.0.2.1/32"},
		{in: "2001:db8::1", says: "cidrSelector: 2001:db8::1/128"},
		{in: "\xff.example.com", says: "internationalized"},
	}
	for _, tt := range tests {
		got, err := enforce.ParsePattern(tt.in, enforce.PatternOptions{Deep: tt.deep})
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("ParsePattern(%q) = %v, %v; want an error that says %q", tt.in, got, err, tt.says)
			}
			continue
		}
		if err != nil || got.String() != tt.want {
			t.Errorf("ParsePattern(%q) = %v, %v; want %v", tt.in, got, err, tt.want)
		}
		if again := must.Pattern(got.String()); again != got {
			t.Errorf("must.Pattern(%q) = %v, another pattern", got, again)
		}
	}
}

func TestMatches(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"example.com", "example.com", true},
		{"example.com", "EXAMPLE.com.", true},
		{"example.com", "a.example.com", false},
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "a_b.example.com", true},
		{"*.example.com", "*.example.com", true},
		{"*.example.com", "b.a.example.com", false},
		{"*.example.com", "example.com", false},
		{"*.example.com", `a\.example.com`, false},
		{"*.example.com", "aexample.com", false},
		{"*.example.com", ".", false},
		{"**.example.com", "a.example.com", true},
		{"**.example.com", "c.b.a.example.com", true},
		{"**.example.com", "example.com", false},
		{"**.example.com", "aexample.com", false},
	}
	for _, tt := range tests {
		if got := must.Pattern(tt.pattern).Matches(dnsname.MustParse(tt.name)); got != tt.want {
			t.Errorf("%s matches %s: %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
	if (enforce.Pattern{}).Matches(dnsname.Root) {
		t.Error("the zero Pattern matches the root")
	}
}

// TestObjectName compares with names that the packages of Kubernetes produce.
func TestObjectName(t *testing.T) {
	tests := []struct {
		pattern    string
		collisions uint32
		want       string
	}{
		{"www.example.com", 0, "dns-5dd68c7c99"},
		{"www.example.com", 1, "dns-65454994bb"},
		{"WWW.example.com.", 0, "dns-5dd68c7c99"},
		{"*.example.com", 0, "dns-86b778d444"},
		{"*.example.com", 1, "dns-7dd75d6b9c"},
		{"example.com", 0, "dns-6c9d487cd4"},
		{"www.google.com", 0, "dns-7497bbd96d"},
		{"*.google.com", 0, "dns-67b687cfb5"},
	}
	for _, tt := range tests {
		if got := enforce.ObjectName(must.Pattern(tt.pattern), tt.collisions); got != tt.want {
			t.Errorf("ObjectName(%s, %d) = %s, want %s", tt.pattern, tt.collisions, got, tt.want)
		}
	}
}
