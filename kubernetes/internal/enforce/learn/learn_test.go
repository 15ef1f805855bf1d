package learn_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

const minTTL = 5 * time.Second

// replies are the rules for tests that read replies.
var replies = learn.Rules{MinTTL: minTTL, MaxTTL: learn.LongestTTL}

// records parses one record per line.
func records(t testing.TB, text string) []dns.RR {
	t.Helper()
	var out []dns.RR
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		rr, err := dns.NewRR(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, rr)
	}
	return out
}

// addressText formats the addresses of an observation with their TTLs.
func addressText(l learn.Observation) string {
	var out []string
	for _, a := range l.Addrs {
		out = append(out, a.Addr.String()+"/"+a.TTL.String())
	}
	return strings.Join(out, " ")
}

func TestFromReply(t *testing.T) {
	tests := []struct {
		name, question string
		qtype          uint16
		answer         string
		want           string
	}{
		{"one address", "www.example.com.", dns.TypeA, "www.example.com. 30 A 192.0.2.1", "192.0.2.1/30s"},
		{"any case", "wWw.example.com.", dns.TypeA, "WWW.Example.com. 30 A 192.0.2.1", "192.0.2.1/30s"},
		{"TTL 0", "a.example.com.", dns.TypeA, "a.example.com. 0 A 192.0.2.1", "192.0.2.1/5s"},
		{"TTL 1", "a.example.com.", dns.TypeA, "a.example.com. 1 A 192.0.2.1", "192.0.2.1/1s"},
		{"TTL of 2^31 counts as zero", "a.example.com.", dns.TypeA, "a.example.com. 2147483648 A 192.0.2.1", "192.0.2.1/5s"},
		{"TTL of a week", "a.example.com.", dns.TypeA, "a.example.com. 604800 A 192.0.2.1", "192.0.2.1/168h0m0s"},
		{"no TTL is longer than a week", "a.example.com.", dns.TypeA, "a.example.com. 2147483647 A 192.0.2.1",
			"192.0.2.1/168h0m0s"},
		{"chain, in any order", "a.example.com.", dns.TypeA, `
			d.example.net. 60 A 192.0.2.1
			b.example.com. 10 CNAME c.example.net.
			a.example.com. 10 CNAME b.example.com.
			c.example.net. 10 CNAME d.example.net.
			d.example.net. 60 A 192.0.2.2`, "192.0.2.1/1m0s 192.0.2.2/1m0s"},
		{"CNAME only", "a.example.com.", dns.TypeA, "a.example.com. 10 CNAME b.example.com.", ""},
		{"loop", "a.example.com.", dns.TypeA, `
			a.example.com. 10 CNAME b.example.com.
			b.example.com. 10 CNAME a.example.com.
			c.example.com. 10 A 192.0.2.9`, ""},
		{"poisoned owners", "a.example.com.", dns.TypeA, `
			a.example.com. 10 A 192.0.2.1
			evil.example.net. 10 A 192.0.2.2
			example.com. 10 A 192.0.2.3
			b.a.example.com. 10 A 192.0.2.4`, "192.0.2.1/10s"},
		{"escaped dot is another owner", "a.b.example.com.", dns.TypeA, `a\.b.example.com. 10 A 192.0.2.2`, ""},
		{"DNAME with its CNAME", "a.x.example.com.", dns.TypeA, `
			x.example.com. 10 DNAME y.example.net.
			a.x.example.com. 10 CNAME a.y.example.net.
			a.y.example.net. 10 A 192.0.2.1`, "192.0.2.1/10s"},
		{"DNAME alone", "a.x.example.com.", dns.TypeA, `
			x.example.com. 10 DNAME y.example.net.
			a.y.example.net. 10 A 192.0.2.1`, "192.0.2.1/10s"},
		{"DNAME does not move its owner", "x.example.com.", dns.TypeA, `
			x.example.com. 10 DNAME y.example.net.
			y.example.net. 10 A 192.0.2.1`, ""},
		{"type by question", "a.example.com.", dns.TypeA, "a.example.com. 10 AAAA 2001:db8::1", ""},
		{"AAAA", "a.example.com.", dns.TypeAAAA, "a.example.com. 10 AAAA 2001:db8::1\na.example.com. 10 A 192.0.2.1",
			"2001:db8::1/10s"},
		{"same address twice", "a.example.com.", dns.TypeA,
			"a.example.com. 10 A 192.0.2.1\na.example.com. 60 A 192.0.2.1\na.example.com. 20 A 192.0.2.1", "192.0.2.1/1m0s"},
		{"DNS64", "a.example.com.", dns.TypeAAAA, "a.example.com. 10 AAAA 64:ff9b::c000:201", "64:ff9b::c000:201/10s"},
		{"signatures", "a.example.com.", dns.TypeA, `
			a.example.com. 10 A 192.0.2.1
			a.example.com. 10 RRSIG A 8 3 10 20300101000000 20200101000000 1 example.com. c2ln`, "192.0.2.1/10s"},
		{"hints", "a.example.com.", dns.TypeHTTPS,
			`a.example.com. 10 HTTPS 1 . alpn=h2 ipv4hint=192.0.2.1,192.0.2.2 ipv6hint=2001:db8::1`,
			"192.0.2.1/10s 192.0.2.2/10s 2001:db8::1/10s"},
		{"hints of an alias within the answer", "a.example.com.", dns.TypeHTTPS, `
			a.example.com. 10 HTTPS 0 b.example.net.
			b.example.net. 10 HTTPS 1 . ipv4hint=192.0.2.1
			c.example.net. 10 HTTPS 1 . ipv4hint=192.0.2.2`, "192.0.2.1/10s"},
		{"alias to nothing", "a.example.com.", dns.TypeHTTPS, "a.example.com. 10 HTTPS 0 .", ""},
		{"hints of SVCB", "_dns.example.com.", dns.TypeSVCB, "_dns.example.com. 10 SVCB 1 ns.example.com. ipv4hint=192.0.2.1",
			"192.0.2.1/10s"},
		{"addresses are no answer to HTTPS", "a.example.com.", dns.TypeHTTPS, "a.example.com. 10 A 192.0.2.1", ""},
		{"other class", "a.example.com.", dns.TypeA, "a.example.com. 10 CH A 192.0.2.1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := dns.Question{Name: tt.question, Qtype: tt.qtype, Qclass: dns.ClassINET}
			l, ok := replies.FromReply(q, &dns.Msg{Answer: records(t, tt.answer)})
			if got := addressText(l); !ok || got != tt.want {
				t.Errorf("learned %q, %v, want %q", got, ok, tt.want)
			}
			if l.Failed || l.Name != strings.ToLower(tt.question) {
				t.Errorf("observation is %+v", l)
			}
		})
	}
}

// TestMapped checks that an IPv4 address in an AAAA record is not an IPv4 address.
func TestMapped(t *testing.T) {
	rr := &dns.AAAA{Hdr: dns.RR_Header{Name: "a.example.com.", Class: dns.ClassINET, Ttl: 10},
		AAAA: netip.MustParseAddr("::ffff:192.0.2.1").AsSlice()}
	l, _ := replies.FromReply(dns.Question{Name: "a.example.com.", Qtype: dns.TypeAAAA, Qclass: dns.ClassINET},
		&dns.Msg{Answer: []dns.RR{rr}})
	if got := addressText(l); got != "::ffff:192.0.2.1/10s" {
		t.Fatalf("learned %q", got)
	}
	if why := (learn.Policy{}).Refused(l.Addrs[0].Addr); why == "" {
		t.Error("it is not refused")
	}
}

func TestManyAddresses(t *testing.T) {
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Truncated: true}}
	for i := range 500 {
		m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: "a.example.com.", Class: dns.ClassINET, Ttl: 10},
			A: []byte{192, 0, byte(i >> 8), byte(i)}})
	}
	l, ok := replies.FromReply(dns.Question{Name: "a.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}, m)
	if !ok || len(l.Addrs) != 500 || !l.Partial {
		t.Errorf("learned %d addresses, partial %v", len(l.Addrs), l.Partial)
	}
}

func TestNothingToLearn(t *testing.T) {
	reply := &dns.Msg{Answer: records(t, "a.example.com. 10 A 192.0.2.1")}
	failed := &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeNameError}}
	tests := []struct {
		name  string
		q     dns.Question
		reply *dns.Msg
	}{
		{"ANY", dns.Question{Name: "a.example.com.", Qtype: dns.TypeANY, Qclass: dns.ClassINET}, reply},
		{"CHAOS", dns.Question{Name: "a.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassCHAOS}, reply},
		{"TXT", dns.Question{Name: "a.example.com.", Qtype: dns.TypeTXT, Qclass: dns.ClassINET}, reply},
		{"no message", dns.Question{Name: "a.example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}, nil},
		{"no name", dns.Question{Name: "a..", Qtype: dns.TypeA, Qclass: dns.ClassINET}, reply},
		{"failed TXT", dns.Question{Name: "a.example.com.", Qtype: dns.TypeTXT, Qclass: dns.ClassINET}, failed},
		{"failed HTTPS", dns.Question{Name: "a.example.com.", Qtype: dns.TypeHTTPS, Qclass: dns.ClassINET}, failed},
	}
	for _, tt := range tests {
		if l, ok := replies.FromReply(tt.q, tt.reply); ok {
			t.Errorf("%s: learned %+v", tt.name, l)
		}
	}
}

func TestFailure(t *testing.T) {
	q := dns.Question{Name: "A.example.com.", Qtype: dns.TypeAAAA, Qclass: dns.ClassINET}
	want := learn.Observation{Name: "a.example.com.", Type: dns.TypeAAAA, Rcode: dns.RcodeNameError, Failed: true}
	got, ok := replies.FromReply(q,
		&dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeNameError}, Answer: records(t, "a.example.com. 1 CNAME b.example.com.")})
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); !ok || diff != "" {
		t.Errorf("FromReply (-want +got):\n%s", diff)
	}
}

func TestPolicy(t *testing.T) {
	p := learn.Policy{
		Refuse:  []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("2001:db8:1::/48")},
		Permit:  []netip.Prefix{netip.MustParsePrefix("10.96.7.0/24"), netip.MustParsePrefix("169.254.20.10/32")},
		Special: specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}},
	}
	parse := func(texts ...string) (out []netip.Addr) {
		for _, s := range texts {
			out = append(out, netip.MustParseAddr(s))
		}
		return out
	}
	refused := parse("::ffff:192.0.2.1", "10.96.0.1", "64:ff9b::a60:1", "2001:db8:1::5", "2a0f:64::10.96.0.1")
	for _, a := range append(refused, specialaddrtest.Hostile...) {
		if p.Refused(a) == "" {
			t.Errorf("%s is not refused", a)
		}
	}
	open := parse("192.0.2.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "fd12::1", "2001:db8::1", "64:ff9b::c000:201",
		"10.96.7.7", "169.254.20.10", "64:ff9b::a60:707")
	for _, a := range append(open, specialaddrtest.Public...) {
		if why := p.Refused(a); why != "" {
			t.Errorf("%s is refused: %s", a, why)
		}
	}
	if n := testing.AllocsPerRun(100, func() { p.Refused(netip.AddrFrom4([4]byte{192, 0, 2, 1})) }); n > 0 {
		t.Errorf("%v allocations for an address of IPv4; agents judge every one in every pass", n)
	}
}

// TestNetworks checks that the most precise network of the cluster determines the owner of an address. Embedded IPv4
// addresses count, and permitted ones do not.
func TestNetworks(t *testing.T) {
	of := func(owner, net string) learn.Network {
		return learn.Network{Net: netip.MustParsePrefix(net), Owner: owner}
	}
	p := learn.Policy{
		Cluster: learn.NewNetworks([]learn.Network{of("a service", "10.96.0.0/12"), of("a pod", "10.1.0.0/24"),
			of("a pod", "10.1.1.0/24"), of("a node", "10.1.1.9/32"),
			of("a service", "fd00:96::/112"), of("everybody", "0.0.0.0/0"), of("everybody", "::/0"), {}}),
		Permit: []netip.Prefix{netip.MustParsePrefix("10.1.0.3/32")},
	}
	for addr, want := range map[string]string{
		"10.96.0.1": "an address of a service", "10.111.255.255": "an address of a service", "10.112.0.0": "",
		"10.1.0.7": "an address of a pod", "10.1.0.3": "",
		"10.1.1.8": "an address of a pod", "10.1.1.9": "an address of a node", "10.1.2.1": "",
		"fd00:96::7": "an address of a service", "fd00:97::7": "",
		"64:ff9b::a60:1": "an address of a service", "192.0.2.1": "", "2001:db8::1": "",
	} {
		if got := p.Refused(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}
