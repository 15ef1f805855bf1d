package gather_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/explain/gather"
)

func TestParseInput(t *testing.T) {
	tests := []struct {
		in, name string
		trimmed  []string
	}{
		{"example.org", "example.org.", nil},
		{"Example.ORG.", "example.org.", nil},
		{".", ".", nil},
		{"org", "org.", nil},
		{"example.org..", "example.org.", []string{"."}},
		{"https://www.example.org/path?q=1#f", "www.example.org.", []string{"https://", "/path?q=1#f"}},
		{"//www.example.org", "www.example.org.", []string{"//"}},
		{"https://user:pw@www.example.org:8443/a@b", "www.example.org.", []string{"https://", "user:pw@", ":8443", "/a@b"}},
		{"www.example.org:443", "www.example.org.", []string{":443"}},
		{"mail.example.org:", "mail.example.org.", []string{":"}},
		{"jane.doe+tag@example.org", "example.org.", []string{"jane.doe+tag@"}},
		{"mailto:jane@example.org", "example.org.", []string{"mailto:", "jane@"}},
		{"<jane@example.org>,", "example.org.", []string{"<", ">,", "jane@"}},
		{"  example.org\n", "example.org.", []string{"  ", "\n"}},
		{"\u200bexample.org\u00a0", "example.org.", []string{"\u200b", "\u00a0"}},
		{"“example.org”", "example.org.", []string{"“", "”"}},
		{"bücher.example", "xn--bcher-kva.example.", nil},
		{"BÜCHER。example", "xn--bcher-kva.example.", nil},
		{"straße.example", "xn--strae-oqa.example.", nil},
		{"xn--bcher-kva.example", "xn--bcher-kva.example.", nil},
		{"_dmarc.example.org", "_dmarc.example.org.", nil},
		{"*.example.org", "*.example.org.", nil},
		{`a\.b.example.org`, `a\.b.example.org.`, nil},
		{"example.org/", "example.org.", []string{"/"}},
	}
	for _, tt := range tests {
		name, trimmed, err := gather.ParseInput(tt.in)
		if err != nil || name.String() != tt.name {
			t.Errorf("ParseInput(%q) = %v, %v, want %s", tt.in, name, err, tt.name)
		}
		if diff := cmp.Diff(tt.trimmed, trimmed); diff != "" {
			t.Errorf("ParseInput(%q) leaves out (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestParseInputErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "it contains no name"},
		{"https:///path", "it contains no name"},
		{"192.0.2.1", "it is an IP address"},
		{"http://192.0.2.1:80/", "it is an IP address"},
		{"2001:db8::1", "it is an IP address"},
		{"[2001:db8::1]", "it is an IP address"},
		{"www .example.org", "it contains a space"},
		{"www..example.org", "it has an empty label"},
		{".example.org", "it has an empty label"},
		{strings.Repeat("a", 64) + ".org", "64 characters; at most 63"},
		{strings.Repeat("a.", 127) + "org", "at most 253"},
		{"www,example.org", "characters that are not allowed in names"},
		{"bü\u2488cher.example", "cannot be converted to A-labels"},
	}
	for _, tt := range tests {
		if name, _, err := gather.ParseInput(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseInput(%q) = %v, %v, want %q", tt.in, name, err, tt.want)
		}
	}
}

func FuzzParseInput(f *testing.F) {
	for _, s := range []string{"https://a@b:1/c", "[::1]:53", "xn--0", "\u200d.example", `\`, `\3`, "a\\.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, trimmed, err := gather.ParseInput(s)
		if err != nil {
			return
		}
		again, _, err := gather.ParseInput(name.String())
		if !strings.Contains(s, `\`) && (err != nil || again != name) { // escaped characters may be anything
			t.Errorf("ParseInput(%q) = %v, and of that %v, %v", s, name, again, err)
		}
		left := 0
		for _, cut := range trimmed {
			left += len(cut)
		}
		if left > len(s) {
			t.Errorf("ParseInput(%q) left out %q", s, trimmed)
		}
	})
}
