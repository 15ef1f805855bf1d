package registry_test

import (
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/registry"
)

func TestSuffixOf(t *testing.T) {
	tests := []struct {
		name, public, domain, private, owner string
		listed                               bool
	}{
		{"www.example.com", "com.", "example.com.", "", "example.com.", true},
		{"example.com", "com.", "example.com.", "", "example.com.", true},
		{"a.b.example.co.uk", "co.uk.", "example.co.uk.", "", "example.co.uk.", true},
		{"co.uk", "co.uk.", "", "", "", true},
		{"com", "com.", "", "", "", true},
		{"shop.github.io", "io.", "github.io.", "github.io.", "shop.github.io.", true},
		{"github.io", "io.", "github.io.", "github.io.", "github.io.", true},
		{"a.b.example.uk.com", "com.", "uk.com.", "uk.com.", "example.uk.com.", true},
		{"bucket.s3.eu-central-1.amazonaws.com", "com.", "amazonaws.com.", "s3.eu-central-1.amazonaws.com.",
			"bucket.s3.eu-central-1.amazonaws.com.", true},
		{"www.example.test", "test.", "example.test.", "", "example.test.", false},
		{"www.bücher.de", "de.", "xn--bcher-kva.de.", "", "xn--bcher-kva.de.", true},
		{"_dmarc.example.org", "org.", "example.org.", "", "example.org.", true},
		{".", "", "", "", "", false},
		{`a\032b.com`, "", "", "", "", false},
	}
	for _, tt := range tests {
		got := registry.SuffixOf(dnsname.MustParse(tt.name))
		for _, f := range []struct {
			field string
			got   dnsname.Name
			want  string
		}{{"Public", got.Public, tt.public}, {"Domain", got.Domain, tt.domain}, {"Private", got.Private, tt.private},
			{"Owner", got.Owner, tt.owner}} {
			if text(f.got) != f.want {
				t.Errorf("SuffixOf(%s).%s = %q, want %q", tt.name, f.field, text(f.got), f.want)
			}
		}
		if got.Listed != tt.listed {
			t.Errorf("SuffixOf(%s).Listed = %v, want %v", tt.name, got.Listed, tt.listed)
		}
	}
}

func TestIsSuffix(t *testing.T) {
	for name, want := range map[string]bool{"com": true, "co.uk": true, "kawasaki.jp": true, "x.kawasaki.jp": true,
		"example.ck": true, "in-addr.arpa": true, "xn--55qx5d.cn": true, "公司.cn": true,
		"example.com": false, "example.co.uk": false, "city.kawasaki.jp": false, "www.example.ck": false, "github.io": false,
		"compute.amazonaws.com": false, "example.test": false, `a\.co.uk`: false, ".": false} {
		if got := registry.IsSuffix(dnsname.MustParse(name)); got != want {
			t.Errorf("IsSuffix(%s) = %v, want %v", name, got, want)
		}
	}
}

func text(n dnsname.Name) string {
	if n.IsZero() {
		return ""
	}
	return n.String()
}
