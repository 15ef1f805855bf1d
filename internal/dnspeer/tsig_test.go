package dnspeer_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/publish"
)

// TestSignedQuery signs an SOA query and verifies the reply with another implementation, for each algorithm.
func TestSignedQuery(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	for key, algorithm := range map[string]string{"zone-key.": dns.HmacSHA256, "pool-key.": dns.HmacSHA384,
		"sha512-key.": dns.HmacSHA512,
		"ZONE-Key.":   "HMAC-sha256."} {
		wire, mac := signed(t, question("example.org.", dns.TypeSOA), key, algorithm, time.Now().Unix())
		got := h.ask(stranger, false, wire)
		if len(got) != 1 {
			t.Fatalf("%s: %d replies", key, len(got))
		}
		if r := parsed(t, got[0]); r.Rcode != dns.RcodeSuccess || r.IsTsig() == nil {
			t.Errorf("%s: %v", key, r)
		}
		if err := dns.TsigVerify(got[0], secret, mac, false); err != nil {
			t.Errorf("%s: the reply does not verify: %v", key, err)
		}
	}
}

// resign replaces the MAC of a signed message and may truncate it.
func resign(t *testing.T, wire []byte, change func(*dns.TSIG)) []byte {
	t.Helper()
	m := parsed(t, wire)
	change(m.IsTsig())
	return packed(t, m)
}

func cutMAC(n int) func(*dns.TSIG) {
	return func(s *dns.TSIG) { s.MAC, s.MACSize = s.MAC[:2*n], uint16(n) }
}

func TestSignatureErrors(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	now := time.Now().Unix()
	sign := func(key, algorithm string, at int64, change func(*dns.TSIG)) []byte {
		wire, _ := signed(t, question("example.org.", dns.TypeAXFR), key, algorithm, at)
		return resign(t, wire, change)
	}
	same := func(*dns.TSIG) {}
	tests := []struct {
		name  string
		wire  []byte
		rcode int
		code  uint16
		mac   int // length of the MAC in the reply, in bytes
	}{
		{"unknown key", sign("nobody.", dns.HmacSHA256, now, same), dns.RcodeNotAuth, dns.RcodeBadKey, 0},
		{"another algorithm than the key's", sign("zone-key.", dns.HmacSHA512, now, same), dns.RcodeNotAuth, dns.RcodeBadKey,
			0},
		{"a key that is too weak", sign("old-key.", dns.HmacSHA1, now, same), dns.RcodeNotAuth, dns.RcodeBadKey, 0},
		{"wrong MAC", sign("zone-key.", dns.HmacSHA256, now,
			func(s *dns.TSIG) { s.MAC = hex.EncodeToString(make([]byte, 32)) }),
			dns.RcodeNotAuth, dns.RcodeBadSig, 0},
		{"wrong MAC and old", sign("zone-key.", dns.HmacSHA256, now-9999,
			func(s *dns.TSIG) { s.MAC = hex.EncodeToString(make([]byte, 32)) }),
			dns.RcodeNotAuth, dns.RcodeBadSig, 0},
		{"no MAC", sign("zone-key.", dns.HmacSHA256, now, cutMAC(0)), dns.RcodeFormatError, 0, 0},
		{"cut below half", sign("zone-key.", dns.HmacSHA256, now, cutMAC(15)), dns.RcodeFormatError, 0, 0},
		{"too long", sign("zone-key.", dns.HmacSHA256, now, func(s *dns.TSIG) { s.MAC += "00"; s.MACSize++ }),
			dns.RcodeFormatError, 0, 0},
		{"cut", sign("zone-key.", dns.HmacSHA256, now, cutMAC(16)), dns.RcodeNotAuth, dns.RcodeBadTrunc, 32},
		{"old", sign("zone-key.", dns.HmacSHA256, now-302, same), dns.RcodeNotAuth, dns.RcodeBadTime, 32},
		{"from the future", sign("zone-key.", dns.HmacSHA256, now+302, same), dns.RcodeNotAuth, dns.RcodeBadTime, 32},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := h.ask(stranger, true, tt.wire)
			if len(got) != 1 {
				t.Fatalf("%d replies", len(got))
			}
			r := parsed(t, got[0])
			if r.Rcode != tt.rcode || len(r.Answer) != 0 {
				t.Fatalf("reply %v", r)
			}
			s := r.IsTsig()
			if (s != nil) != (tt.code != 0) || s != nil && (s.Error != tt.code || int(s.MACSize) != tt.mac) {
				t.Fatalf("TSIG %v, want error %d and a MAC of %d bytes", s, tt.code, tt.mac)
			}
			if tt.mac == 0 {
				return
			}
			query := parsed(t, tt.wire).IsTsig()
			if tt.code == dns.RcodeBadTime && (s.TimeSigned != query.TimeSigned || s.OtherLen != 6) {
				t.Errorf("signed at %d with %d bytes of other data, want the client's time %d and ours", s.TimeSigned, s.OtherLen,
					query.TimeSigned)
			}
			// The library does not verify a reply with this RCODE, so the test computes the MAC itself.
			if _, mac, err := dns.TsigGenerate(r, secret, query.MAC, false); err != nil || mac != s.MAC {
				t.Errorf("the MAC is %s, want %s (%v)", s.MAC, mac, err)
			}
		})
	}
}

// TestUnknownKey checks that the reply names the key of the query. That name may be compressed against the question, as
// BIND does.
func TestUnknownKey(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	whole, _ := signed(t, question("example.org.", dns.TypeSOA), "nobody.example.org.", dns.HmacSHA256, time.Now().Unix())
	name := []byte("\x06nobody\x07example\x03org\x00")
	at := bytes.Index(whole, name)
	short := append(append(bytes.Clone(whole[:at]), "\x06nobody\xc0\x0c"...), whole[at+len(name):]...)
	for _, in := range [][]byte{whole, short} {
		replies := h.ask(stranger, false, in)
		if len(replies) != 1 {
			t.Fatalf("%d replies", len(replies))
		}
		r := parsed(t, replies[0])
		got := r.IsTsig()
		if r.Rcode != dns.RcodeNotAuth || got == nil {
			t.Fatalf("reply is %s with TSIG %v, want NOTAUTH with one", dns.RcodeToString[r.Rcode], got)
		}
		if got.Hdr.Name != "nobody.example.org." || got.Algorithm != dns.HmacSHA256 || got.Error != dns.RcodeBadKey ||
			got.MACSize != 0 {
			t.Errorf("TSIG is %v, want BADKEY without a MAC", got)
		}
	}
}

// TestBrokenSignature checks that an unreadable TSIG record gets FORMERR.
func TestBrokenSignature(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	plain := packed(t, question("example.org.", dns.TypeSOA))
	plain[11] = 1
	for _, data := range []string{"", "\x00", "\x03abc", "\xc0\xff" + strings.Repeat("\x00", 16),
		"\x00" + strings.Repeat("\x00", 8) + "\x00\x09" + strings.Repeat("\x00", 6)} {
		in := append(bytes.Clone(plain), 0, 0, 250, 0, 255, 0, 0, 0, 0, 0, byte(len(data)))
		replies := h.ask(stranger, false, append(in, data...))
		if len(replies) != 1 || parsed(t, replies[0]).Rcode != dns.RcodeFormatError {
			t.Errorf("%q: replies %x, want FORMERR", data, replies)
		}
	}
}

// TestForgedBody checks that a change of any byte of a signed message is detected.
func TestForgedBody(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	wire, _ := signed(t, question("example.org.", dns.TypeAXFR), "zone-key.", dns.HmacSHA256, time.Now().Unix())
	for i := 2; i < len(wire)-16; i++ {
		if i == 10 || i == 11 || i >= 4 && i < 10 {
			continue // the section counts: the TSIG is then another record, or none
		}
		bad := append([]byte(nil), wire...)
		bad[i] ^= 0x01
		for _, b := range h.ask(stranger, true, bad) {
			if r := new(dns.Msg); r.Unpack(b) == nil && len(r.Answer) > 0 {
				t.Errorf("byte %d was changed, and the zone was sent", i)
			}
		}
	}
}
