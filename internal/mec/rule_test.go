package mec_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
)

func TestDomains(t *testing.T) {
	l63 := strings.Repeat("a", 63)
	n253 := l63 + "." + l63 + "." + l63 + "." + strings.Repeat("b", 61) // 3*64+61
	tests := []struct {
		domain string
		want   string // empty: the name is refused
	}{
		{"www.example.com", "www.example.com."},
		{"www.example.com.", "www.example.com."},
		{"WWW.Example.COM", "www.example.com."},
		{"bücher.example", "xn--bcher-kva.example."},
		{"BÜCHER.Example.", "xn--bcher-kva.example."},
		{"例え。テスト", "xn--r8jz45g.xn--zckzah."},
		{"xn--bcher-kva.example", "xn--bcher-kva.example."},
		{"_sip._udp.straße.example", "_sip._udp.xn--strae-oqa.example."},
		{"*.app.example", "*.app.example."},
		{"*.bücher.example", "*.xn--bcher-kva.example."},
		{"app", "app."},
		{l63 + ".example", l63 + ".example."},
		{n253, n253 + "."},
		{n253 + ".", n253 + "."},
		{"1.2.3.example", "1.2.3.example."},
		{"", ""},
		{".", ""},
		{"*", ""},
		{"a..example", ""},
		{".example", ""},
		{"example..", ""},
		{"a" + l63 + ".example", ""},
		{n253 + "b", ""},
		{strings.Repeat("ü", 60) + ".example", ""}, // too long as an A-label
		{"a b.example", ""},
		{"http://example.org/", ""},
		{`a\.b.example`, ""},
		{"a.*.example", ""},
		{"a*.example", ""},
		{"**.example", ""},
		{"-a.example", ""},
		{"a-.example", ""},
		{"192.0.2.1", ""},
		{"2001:db8::1", ""},
		{"a\x00b.example", ""},
		{"a\u202eb.example", ""},
		{"\xff.example", ""},
	}
	for _, tt := range tests {
		r, err := mec.ParseRule(mec.Draft{ID: "r", Domain: tt.domain, AddrType: "IP_V4", Addr: "192.0.2.1"},
			specialaddr.Table{})
		if tt.want == "" {
			if err == nil {
				t.Errorf("domain %q was taken as %s", tt.domain, r.Name)
				continue
			}
			wantField(t, err, "domainName")
			continue
		}
		if err != nil {
			t.Errorf("domain %q: %v", tt.domain, err)
			continue
		}
		if r.Name.String() != tt.want || r.Domain != tt.domain {
			t.Errorf("domain %q = %s shown as %q, want %s", tt.domain, r.Name, r.Domain, tt.want)
		}
	}
}

func TestParseRule(t *testing.T) {
	num := func(n int64) *int64 { return &n }
	good := mec.Draft{ID: "r", Domain: "www.example.com", AddrType: "IP_V4", Addr: "192.0.2.1"}
	tests := []struct {
		name   string
		change func(*mec.Draft)
		field  string // empty: the draft is valid
	}{
		{"plain", func(*mec.Draft) {}, ""},
		{"no id", func(d *mec.Draft) { d.ID = "" }, "dnsRuleId"},
		{"id with a slash", func(d *mec.Draft) { d.ID = "a/b" }, "dnsRuleId"},
		{"id that is a step in a path", func(d *mec.Draft) { d.ID = ".." }, "dnsRuleId"},
		{"id with NUL", func(d *mec.Draft) { d.ID = "a\x00b" }, "dnsRuleId"},
		{"id not UTF-8", func(d *mec.Draft) { d.ID = "\xff" }, "dnsRuleId"},
		{"long id", func(d *mec.Draft) { d.ID = strings.Repeat("x", 129) }, "dnsRuleId"},
		{"id of 128", func(d *mec.Draft) { d.ID = strings.Repeat("x", 128) }, ""},
		{"type and address differ", func(d *mec.Draft) { d.AddrType, d.Addr = "IP_V6", "192.0.2.0" }, "ipAddress"},
		{"IPv6 as IP_V4", func(d *mec.Draft) { d.Addr = "2001:db8::1" }, "ipAddress"},
		{"IPv6", func(d *mec.Draft) { d.AddrType, d.Addr = "IP_V6", "2001:db8::1" }, ""},
		{"EdgeGallery's word", func(d *mec.Draft) { d.AddrType = "IPv4" }, ""},
		{"EdgeGallery's other word", func(d *mec.Draft) { d.AddrType, d.Addr = "IPv6", "2001:db8::1" }, ""},
		{"no type", func(d *mec.Draft) { d.AddrType = "" }, "ipAddressType"},
		{"unknown type", func(d *mec.Draft) { d.AddrType = "IP_V5" }, "ipAddressType"},
		{"no address", func(d *mec.Draft) { d.Addr = "" }, "ipAddress"},
		{"a name as address", func(d *mec.Draft) { d.Addr = "www.example.org" }, "ipAddress"},
		{"byte too large", func(d *mec.Draft) { d.Addr = "192.0.2.256" }, "ipAddress"},
		{"octal address", func(d *mec.Draft) { d.Addr = "192.0.02.1" }, "ipAddress"},
		{"unspecified", func(d *mec.Draft) { d.Addr = "0.0.0.0" }, "ipAddress"},
		{"unspecified IPv6", func(d *mec.Draft) { d.AddrType, d.Addr = "IP_V6", "::" }, "ipAddress"},
		{"multicast", func(d *mec.Draft) { d.Addr = "224.0.0.1" }, "ipAddress"},
		{"multicast IPv6", func(d *mec.Draft) { d.AddrType, d.Addr = "IP_V6", "ff02::1" }, "ipAddress"},
		{"broadcast", func(d *mec.Draft) { d.Addr = "255.255.255.255" }, "ipAddress"},
		{"mapped", func(d *mec.Draft) { d.AddrType, d.Addr = "IP_V6", "::ffff:192.0.2.1" }, "ipAddress"},
		{"with a zone", func(d *mec.Draft) { d.AddrType, d.Addr = "IP_V6", "fe80::1%eth0" }, "ipAddress"},
		{"ttl 0", func(d *mec.Draft) { d.TTL = num(0) }, ""},
		{"largest ttl", func(d *mec.Draft) { d.TTL = num(4294967295) }, ""},
		{"ttl too large", func(d *mec.Draft) { d.TTL = num(4294967296) }, "ttl"},
		{"negative ttl", func(d *mec.Draft) { d.TTL = num(-1) }, "ttl"},
		{"inactive", func(d *mec.Draft) { d.State = "INACTIVE" }, ""},
		{"unknown state", func(d *mec.Draft) { d.State = "UNKNOWN_VALUE" }, "state"},
		{"end", func(d *mec.Draft) { d.ExpiresAt = time.Now() }, ""},
		{"end in the year 10000", func(d *mec.Draft) {
			d.ExpiresAt = time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -7200))
		}, "expiresAt"},
		{"state in lower case", func(d *mec.Draft) { d.State = "active" }, "state"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := good
			tt.change(&d)
			r, err := mec.ParseRule(d, specialaddr.Table{})
			r.ETag() // must not panic for any valid rule
			if tt.field != "" {
				wantField(t, err, tt.field)
			} else if err != nil {
				t.Errorf("ParseRule: %v", err)
			}
		})
	}
}

func TestETag(t *testing.T) {
	base := rule(t, "app", "r www.example.com 192.0.2.1 ttl=30 ACTIVE")
	same := base
	same.Version, same.Created, same.Updated = 7, time.Now(), time.Now()
	if base.ETag() != same.ETag() {
		t.Error("the ETag depends on when the rule was written")
	}
	seen := map[string]string{base.ETag(): "itself"}
	for _, words := range []string{"r www.example.com 192.0.2.2 ttl=30 ACTIVE",
		"r www.example.com 192.0.2.1 ttl=31 ACTIVE",
		"r www.example.com 192.0.2.1 ACTIVE", "r www.example.com 192.0.2.1 ttl=30 INACTIVE",
		"r www.example.com 192.0.2.1 ttl=30 ACTIVE lb", "r WWW.example.com 192.0.2.1 ttl=30 ACTIVE",
		"s www.example.com 192.0.2.1 ttl=30 ACTIVE"} {
		tag := rule(t, "app", words).ETag()
		if other, ok := seen[tag]; ok {
			t.Errorf("%q has the ETag of %s", words, other)
		}
		seen[tag] = words
	}
	timed := base
	timed.ExpiresAt = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	if timed.ETag() == base.ETag() {
		t.Error("expiresAt is not in the ETag")
	}
}

// TestSpecialAddresses checks that an address in a NAT64 prefix of the operator counts as the IPv4 address inside.
func TestSpecialAddresses(t *testing.T) {
	special := specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}
	for addr, good := range map[string]bool{"2a0f:64::169.254.169.254": false, "2a0f:64::224.0.0.1": false,
		"2a0f:64::10.1.2.3": true, "2a0f:64::9.9.9.9": true} {
		_, err := mec.ParseRule(mec.Draft{ID: "r", Domain: "www.example.com", AddrType: "IP_V6", Addr: addr}, special)
		if (err == nil) != good {
			t.Errorf("a rule with %s: %v", addr, err)
		}
		_, err = mec.ParseRecord(mec.RecordDraft{Name: "www.example.com", Type: "AAAA", Data: []string{addr}}, special)
		if (err == nil) != good {
			t.Errorf("a record with %s: %v", addr, err)
		}
	}
}
