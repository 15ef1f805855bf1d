package learn_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// TestLongTTL checks that a long TTL is stored unchanged, up to a week.
func TestLongTTL(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.sees(0, "a.example.com.", "192.0.2.1/168h")
	r.want("a.example.com. 192.0.2.1/168h0m0s NOERROR")
}

// TestTTLOfYears checks that one answer cannot keep an address open for longer than MaxTTL.
func TestTTLOfYears(t *testing.T) {
	rules := learn.Rules{MinTTL: minTTL, MaxTTL: 90 * time.Second}
	q := dns.Question{Name: "a.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}
	l, _ := rules.FromReply(q, &dns.Msg{Answer: records(t, `
		a.example.com. 90 A 192.0.2.1
		a.example.com. 91 A 192.0.2.2
		a.example.com. 315360000 A 192.0.2.3
		a.example.com. 2147483647 A 192.0.2.4`)})
	if got, want := addressText(l), "192.0.2.1/1m30s 192.0.2.2/1m30s 192.0.2.3/1m30s 192.0.2.4/1m30s"; got != want {
		t.Errorf("learned %q, want %q", got, want)
	}
}
