package learn_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// TestLoopIsReadOnce checks that each name on a CNAME loop is read exactly once.
func TestLoopIsReadOnce(t *testing.T) {
	text := "a.example.com. 10 CNAME b.example.com.\nb.example.com. 10 CNAME a.example.com.\n"
	for i := range 200 {
		text += fmt.Sprintf("b.example.com. 10 A 192.0.2.%d\n", i)
	}
	reply := &dns.Msg{Answer: records(t, text)}
	q := dns.Question{Name: "a.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}
	if l, ok := replies.FromReply(q, reply); !ok || len(l.Addrs) != 200 || cap(l.Addrs) > 400 {
		t.Errorf("%d addresses, of %d that were read", len(l.Addrs), cap(l.Addrs))
	}
}

// TestFullKeepsRenewing checks that a name keeps its stored addresses when an answer has more addresses than fit.
func TestFullKeepsRenewing(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.rules.MaxBytes = 500
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

// TestRemovalAndRenewal checks that one write removes a dead name and renews the name after it.
func TestRemovalAndRenewal(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	rules := learn.Rules{MinTTL: minTTL, Threshold: 5}
	addr := netip.MustParseAddr("192.0.2.1")
	have := []learn.Entry{
		{Name: "a.example.com.", Failures: 5},
		{Name: "b.example.com.", Addrs: []learn.StoredAddress{{Addr: addr, TTL: 1, Last: now}}},
		{Name: "c.example.com."},
	}
	dead, renewed := &learn.Memory{}, &learn.Memory{}
	rules.Note(dead, have[0], learn.Observation{Name: "a.example.com.", Type: dns.TypeA, Rcode: dns.RcodeNameError,
		Failed: true}, now)
	rules.Note(renewed, have[1], learn.Observation{Name: "b.example.com.", Type: dns.TypeA,
		Addrs: []learn.Address{{Addr: addr, TTL: time.Hour}}}, now)
	o := learn.Object{Name: "*.example.com.", Wildcard: true, Rank: func(string) float64 { return 0 }}
	got := rules.Merge(have, o, map[string]*learn.Memory{"a.example.com.": dead, "b.example.com.": renewed}, now).Entries
	if len(got) != 2 || got[0].Name != "b.example.com." || got[0].Addrs[0].TTL != 3600 || len(got[1].Addrs) != 0 {
		t.Errorf("entries are %+v", got)
	}
}

// TestLocalNAT64 checks that an IPv4 address is found at every position where a translator may read it in an address of
// the local-use NAT64 prefix. The bits that follow it must not hide it.
func TestLocalNAT64(t *testing.T) {
	p := learn.Policy{Permit: []netip.Prefix{netip.MustParsePrefix("10.96.7.0/24")}}
	for addr, want := range map[string]bool{
		"64:ff9b:1:a9fe:a9:fe00::":       true, // 169.254.169.254, prefix of 48 bits
		"64:ff9b:1:a9fe:a9:fe00:808:808": true,
		"64:ff9b:1:7f:0:1:808:808":       true, // 127.0.0.1, prefix of 56 bits
		"64:ff9b:1:0:a9:fea9:fe08:808":   true, // 169.254.169.254, prefix of 64 bits
		"64:ff9b:1::a9fe:a9fe":           true, // 169.254.169.254, prefix of 96 bits
		"64:ff9b:1:c000:2:100::":         false,
		"64:ff9b:1:0:c0:2:100::":         false,
		"64:ff9b:1::c000:201":            false,
		"64:ff9b:1::":                    true,
		"64:ff9b:1::a60:707":             false, // permitted
		"64:ff9b:1:a9fe:a9:fe00:a60:707": true,
		"64:ff9b:1:0:a:6007:700::":       false,
	} {
		if got := p.Refused(netip.MustParseAddr(addr)); (got != "") != want {
			t.Errorf("%s: %q", addr, got)
		}
	}
}

// TestSpecialAddresses checks that no special address opens a firewall. Private addresses do: many rules are about
// them.
func TestSpecialAddresses(t *testing.T) {
	p := learn.Policy{Special: specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}}
	for _, a := range specialaddrtest.Hostile {
		if p.Refused(a) == "" {
			t.Errorf("%s is not refused", a)
		}
	}
	for _, a := range slices.Concat(specialaddrtest.Public, specialaddrtest.Private) {
		if why := p.Refused(a); why != "" && !a.Is4In6() {
			t.Errorf("%s is refused: %s", a, why)
		}
	}
}

// TestPruneAfterOutage checks that a name that could not be renewed during an API outage is not pruned when a new name
// needs room.
func TestPruneAfterOutage(t *testing.T) {
	r := newRig(t, "*.example.com.", 1)
	r.rules.MaxNames = 1
	r.sees(0, "z.example.com.", "192.0.2.1/30s")
	r.wait(time.Minute)
	// not written at first
	for name, addr := range map[string]string{"z.example.com.": "192.0.2.1", "b.example.com.": "192.0.2.2"} {
		m := r.replicas[0][name]
		if m == nil {
			m = &learn.Memory{}
			r.replicas[0][name] = m
		}
		l := learn.Observation{Name: name, Type: dns.TypeA,
			Addrs: []learn.Address{{Addr: netip.MustParseAddr(addr), TTL: 30 * time.Second}}}
		r.rules.Note(m, r.entry(name), l, r.now)
	}
	r.write(0, "b.example.com.", "z.example.com.")
	if got := r.entry("z.example.com."); len(got.Addrs) != 1 || !got.Addrs[0].Until().After(r.now) {
		t.Errorf("stored is %s", r.state())
	}
	if got := r.entry("*.example.com."); len(got.Addrs) != 1 {
		t.Errorf("stored is %s", r.state())
	}
}

// TestFullIsNotWritten checks that a name with more addresses than fit is not written with every answer.
func TestFullIsNotWritten(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.rules.MaxBytes, r.rules.Lease = 1000, 0
	many := ""
	for i := range 20 {
		many += fmt.Sprintf("192.0.2.%d/100s ", i+1)
	}
	for range 12 {
		r.sees(0, "a.example.com.", many)
		r.wait(5 * time.Second)
	}
	if n := len(r.entry("a.example.com.").Addrs); r.writes != 1 || n < 7 || n > 9 {
		t.Errorf("%d writes in a minute, with %d addresses", r.writes, n)
	}
	for range 12 {
		r.sees(0, "a.example.com.", many)
		r.wait(5 * time.Second)
	}
	for _, h := range r.entry("a.example.com.").Addrs {
		if h.Until().Before(r.now) || r.writes > 3 {
			t.Errorf("%s ended %v ago, after %d writes", h.Addr, r.now.Sub(h.Until()), r.writes)
		}
	}
}
