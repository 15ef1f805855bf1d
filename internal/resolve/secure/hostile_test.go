package secure_test

import (
	"encoding/base64"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve/secure"
)

// addKeysAndSignatures adds keys and signatures of one tag to a zone.
func addKeysAndSignatures(z *signed, seed byte, keys, sigs int) {
	at := rk("example.test. DNSKEY")
	number := func(i int) string { return base64.StdEncoding.EncodeToString([]byte{seed, byte(i >> 8), byte(i)}) }
	for i := range keys {
		k := *z.how.keys[0].DNSKEY
		k.PublicKey = number(i)
		z.sets[at] = append(z.sets[at], &k)
	}
	for i := range sigs {
		s := *z.sigs[at][0].(*dns.RRSIG)
		s.Signature = number(i)
		z.sigs[at] = append([]dns.RR{&s}, z.sigs[at]...)
	}
}

// TestManyKeysAndSignatures checks that a zone cannot use up CPU time with keys and signatures of one tag
// (CVE-2023-50387). There are as many as a walk accepts. Without limits, two servers with 1,200 keys and 800
// signatures each took 9 seconds.
func TestManyKeysAndSignatures(t *testing.T) {
	s := scenario{damage: func(z *signed) { addKeysAndSignatures(z, 1, 600, 300) },
		damage2: func(z *signed) { addKeysAndSignatures(z, 2, 600, 300) }}
	trace, anchors := s.trace(t, "www.example.test. A")
	r := validate(trace, anchors, bubble)
	z := zoneOf(r, "example.test.")
	if r.State == secure.Secure || len(z.Keys) < 64 || len(z.Keys) > 256 || len(z.Signatures) > 100 {
		t.Errorf("%s; %d keys and %d signatures are shown", r.State, len(z.Keys), len(z.Signatures))
	}
}
