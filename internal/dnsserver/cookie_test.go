package dnsserver

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestCookieVectors checks the examples of RFC 9018 appendix A.
func TestCookieVectors(t *testing.T) {
	const (
		secret = "e5e973e5a6b2a43f48e7dc849e37bfcf"
		next   = "445536bcd2513298075a5d379663c962"
	)
	tests := []struct {
		name, secret, addr, option string
		now                        uint32
		want                       string
		valid                      bool
	}{
		{"A.1 a new cookie", secret, "198.51.100.100", "2464c4abcf10c957", 0x5cf79f11,
			"2464c4abcf10c957010000005cf79f111f8130c3eee29480", false},
		{"A.2 renewed after half an hour", secret, "198.51.100.100", "2464c4abcf10c957010000005cf79f111f8130c3eee29480",
			0x5cf7a871, "2464c4abcf10c957010000005cf7a871d4a564a1442aca77", true},
		{"A.3 reserved bytes set", secret, "203.0.113.203", "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5", 0x5cf79c91,
			"", true},
		{"A.3 what is given for it", secret, "203.0.113.203", "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5",
			0x5cf7a9ac, "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e", false},
		{"A.4 of the old secret", next, "2001:db8:220:1:59de:d0f4:8769:82b8",
			"22681ab97d52c298010000005cf7c57926556bd0934c72f8", 0x5cf7c609,
			"22681ab97d52c298010000005cf7c609a6bb79d16625507a", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newCookieSecret([16]byte(unhex(t, tt.secret)))
			var out [cookieSize]byte
			valid := s.check(unhex(t, tt.option), netip.MustParseAddr(tt.addr), tt.now, &out)
			if valid != tt.valid {
				t.Errorf("check(%s) = %v, want %v", tt.option, valid, tt.valid)
			}
			if got := hex.EncodeToString(out[:]); tt.want != "" && got != tt.want {
				t.Errorf("cookie is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCookieAges(t *testing.T) {
	s := newCookieSecret([16]byte{1})
	addr := netip.MustParseAddr("192.0.2.1")
	made := uint32(0xFFFFFF00) // shortly before the 32-bit time wraps
	var given [cookieSize]byte
	s.make([]byte("12345678"), addr, made, &given)
	tests := []struct {
		name    string
		addr    string
		now     uint32
		valid   bool
		renewed bool
	}{
		{"at once", "192.0.2.1", made, true, false},
		{"after half an hour", "192.0.2.1", made + 1800, true, false},
		{"a second later", "192.0.2.1", made + 1801, true, true},
		{"after an hour", "192.0.2.1", made + 3600, true, true},
		{"too old", "192.0.2.1", made + 3601, false, true},
		{"five minutes ahead", "192.0.2.1", made - 300, true, false},
		{"too far ahead", "192.0.2.1", made - 301, false, true},
		{"of another address", "192.0.2.2", made, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out [cookieSize]byte
			valid := s.check(given[:], netip.MustParseAddr(tt.addr), tt.now, &out)
			if valid != tt.valid || (out != given) != tt.renewed {
				t.Errorf("valid %v, renewed %v; want %v, %v", valid, out != given, tt.valid, tt.renewed)
			}
		})
	}
}

func TestCookieInMessages(t *testing.T) {
	h := newHandler(t, Config{Cookies: [16]byte{1}})
	cookie := func(value string) *dns.Msg {
		return withOPT(question("www.example.org.", dns.TypeA), 1232, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: value})
	}
	first := unpacked(t, ask(h, packed(t, cookie("0102030405060708"))))
	given := first.IsEdns0().Option[0].(*dns.EDNS0_COOKIE).Cookie
	if len(given) != 2*cookieSize || given[:16] != "0102030405060708" || h.verified {
		t.Fatalf("first cookie is %q, verified %v", given, h.verified)
	}
	ask(h, packed(t, cookie(given)))
	if !h.verified {
		t.Error("our own cookie was not accepted")
	}
	ask(h, packed(t, cookie(given[:46]+"00")))
	if h.verified {
		t.Error("a forged cookie was accepted")
	}
	for _, n := range []int{0, 7, 9, 15, 41} {
		m := unpacked(t, ask(h, packed(t, cookie(hex.EncodeToString(make([]byte, n))))))
		if m.Rcode != dns.RcodeFormatError {
			t.Errorf("cookie of %d bytes got %s, want FORMERR", n, dns.RcodeToString[m.Rcode])
		}
	}
	alone := cookie("0102030405060708")
	alone.Question = nil
	m := unpacked(t, ask(h, packed(t, alone)))
	if m.Rcode != dns.RcodeSuccess || len(m.Question) != 0 || m.IsEdns0() == nil {
		t.Errorf("a request for a cookie alone got %v", m)
	}
}
