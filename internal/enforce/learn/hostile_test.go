package learn_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/enforce/learn"
)

// TestLoopIsReadOnce: a chain that leads back to itself teaches what stands on it, and costs no more than that.
func TestLoopIsReadOnce(t *testing.T) {
	text := "a.example.com. 10 CNAME b.example.com.\nb.example.com. 10 CNAME a.example.com.\n"
	for i := range 200 {
		text += fmt.Sprintf("b.example.com. 10 A 192.0.2.%d\n", i)
	}
	reply := &dns.Msg{Answer: records(t, text)}
	q := dns.Question{Name: "a.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}
	if l, ok := learn.FromReply(q, reply, minTTL); !ok || len(l.Addrs) != 200 || cap(l.Addrs) > 400 {
		t.Errorf("%d addresses, of %d that were read", len(l.Addrs), cap(l.Addrs))
	}
}

// TestFullKeepsRenewing: a name that gets more addresses than there is room for keeps those that it has.
func TestFullKeepsRenewing(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.rules.MaxBytes = 1000
	r.sees(0, "a.example.com.", "192.0.2.1/30s")
	r.sees(0, "a.example.com.", "192.0.2.1/30s 192.0.2.2/30s")
	r.want("a.example.com. 192.0.2.1/30s 192.0.2.2/30s NOERROR")
	r.wait(28 * time.Second)
	r.sees(0, "a.example.com.", "192.0.2.1/300s 192.0.2.2/300s 192.0.2.3/300s 192.0.2.4/300s")
	if len(r.left) == 0 {
		t.Error("nothing was left out")
	}
	for _, h := range r.entry("a.example.com.").Addrs {
		if h.Addr == netip.MustParseAddr("192.0.2.3") || h.Until().Before(r.now.Add(300*time.Second)) {
			t.Errorf("stored is %s", r.state())
		}
	}
}
