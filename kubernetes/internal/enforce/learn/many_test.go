package learn_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// manyAddresses returns an observation with n IPv6 addresses.
func manyAddresses(name string, n int) learn.Observation {
	l := learn.Observation{Name: name, Type: dns.TypeAAAA}
	for i := range n {
		a := netip.MustParseAddr("2001:db8::").As16()
		a[14], a[15] = byte(i>>8), byte(i)
		l.Addrs = append(l.Addrs, learn.Address{Addr: netip.AddrFrom16(a), TTL: time.Minute})
	}
	return l
}

// TestFirstIsBounded checks that an answer with thousands of addresses does not exceed MaxBytes. This holds for the
// first answer too, and for a plain name and the wildcard itself. The addresses that fit are stored.
func TestFirstIsBounded(t *testing.T) {
	for _, object := range []string{"a.example.com.", "*.example.com."} {
		r := newRig(t, object, 1)
		r.rules.MaxBytes = 200_000
		m := &learn.Memory{}
		r.replicas[0][object] = m
		for range 2 {
			r.rules.Note(m, r.entry(object), manyAddresses(object, 4000), r.now)
			r.write(0, object)
			r.wait(time.Second)
		}
		if n := len(r.entry(object).Addrs); n < 1700 || n > 1820 || len(r.left) == 0 {
			t.Errorf("%s: %d addresses are stored, and %d times some were left out", object, n, len(r.left))
		}
	}
}

// BenchmarkThousands measures one query for a name with thousands of addresses that are all known.
func BenchmarkThousands(b *testing.B) {
	r := newRig(b, "a.example.com.", 1)
	m := &learn.Memory{}
	r.replicas[0]["a.example.com."] = m
	l := manyAddresses("a.example.com.", 4000)
	for b.Loop() {
		r.rules.Note(m, r.entry("a.example.com."), l, r.now)
		r.write(0, "a.example.com.")
	}
}

// BenchmarkDNAMEs measures a reply with a long chain and thousands of DNAMEs.
func BenchmarkDNAMEs(b *testing.B) {
	m := &dns.Msg{}
	for i := range 31 {
		h := dns.RR_Header{Name: fmt.Sprintf("n%d.example.com.", i), Class: dns.ClassINET, Rrtype: dns.TypeCNAME}
		m.Answer = append(m.Answer, &dns.CNAME{Hdr: h, Target: fmt.Sprintf("n%d.example.com.", i+1)})
	}
	for range 4000 {
		m.Answer = append(m.Answer, &dns.DNAME{Hdr: dns.RR_Header{Name: "example.com.", Class: dns.ClassINET,
			Rrtype: dns.TypeDNAME}, Target: "x."})
	}
	q := dns.Question{Name: "n0.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}
	for b.Loop() {
		replies.FromReply(q, m)
	}
}
