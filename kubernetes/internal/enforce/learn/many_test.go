package learn_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// thousands is a lesson with so many addresses of IPv6.
func thousands(name string, n int) learn.Lesson {
	l := learn.Lesson{Name: name, Type: dns.TypeAAAA}
	for i := range n {
		a := netip.MustParseAddr("2001:db8::").As16()
		a[14], a[15] = byte(i>>8), byte(i)
		l.Addrs = append(l.Addrs, learn.Address{Addr: netip.AddrFrom16(a), TTL: time.Minute})
	}
	return l
}

// TestFirstIsBounded: an answer with thousands of addresses makes no status larger than it may be, be it the first, and of a plain name or of
// the wildcard itself. What has room is stored.
func TestFirstIsBounded(t *testing.T) {
	for _, object := range []string{"a.example.com.", "*.example.com."} {
		r := newRig(t, object, 1)
		r.rules.MaxBytes = 200_000
		m := &learn.Memory{}
		r.replicas[0][object] = m
		for range 2 {
			r.rules.Note(m, r.entry(object), thousands(object, 4000), r.now)
			r.write(0, object)
			r.wait(time.Second)
		}
		if n := len(r.entry(object).Addrs); n < 1700 || n > 1820 || len(r.left) == 0 {
			t.Errorf("%s: %d addresses are stored, and %d times some were left out", object, n, len(r.left))
		}
	}
}

// BenchmarkThousands is one question for a name of thousands of addresses, all of which are known.
func BenchmarkThousands(b *testing.B) {
	r := newRig(b, "a.example.com.", 1)
	m := &learn.Memory{}
	r.replicas[0]["a.example.com."] = m
	l := thousands("a.example.com.", 4000)
	for b.Loop() {
		r.rules.Note(m, r.entry("a.example.com."), l, r.now)
		r.write(0, "a.example.com.")
	}
}

// BenchmarkDNAMEs is a reply with a long chain beside thousands of DNAMEs.
func BenchmarkDNAMEs(b *testing.B) {
	m := &dns.Msg{}
	for i := range 31 {
		h := dns.RR_Header{Name: fmt.Sprintf("n%d.example.com.", i), Class: dns.ClassINET, Rrtype: dns.TypeCNAME}
		m.Answer = append(m.Answer, &dns.CNAME{Hdr: h, Target: fmt.Sprintf("n%d.example.com.", i+1)})
	}
	for range 4000 {
		m.Answer = append(m.Answer, &dns.DNAME{Hdr: dns.RR_Header{Name: "example.com.", Class: dns.ClassINET, Rrtype: dns.TypeDNAME}, Target: "x."})
	}
	q := dns.Question{Name: "n0.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}
	for b.Loop() {
		replies.FromReply(q, m)
	}
}
