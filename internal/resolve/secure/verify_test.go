package secure

import (
	"bytes"
	"encoding/base64"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestRSASizes checks that RSA keys that are too small for Go, or too large to verify fast, are not used.
func TestRSASizes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for size, want := range map[int]Cause{64: Algorithm, 512: Mismatch, 513: Algorithm, 8000: Algorithm} {
		v := &validation{now: now, verified: map[verified]bool{}, work: new(int)}
		public := append([]byte{3, 1, 0, 1}, bytes.Repeat([]byte{0xff}, size)...)
		k := &dns.DNSKEY{Flags: 256, Protocol: 3, Algorithm: dns.RSASHA256,
			PublicKey: base64.StdEncoding.EncodeToString(public)}
		sig := &dns.RRSIG{Algorithm: dns.RSASHA256, Inception: uint32(now.Unix() - 60), Expiration: uint32(now.Unix() + 60)}
		txt := &dns.TXT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeTXT, Class: 1}, Txt: []string{"x"}}
		j := v.judgeBy(k, &set{records: []dns.RR{txt}, typ: dns.TypeTXT}, sig, "it")
		if j.cause != want {
			t.Errorf("%d bytes: %+v, want %s", size, j, want)
		}
	}
}
