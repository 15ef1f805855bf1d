package iterate_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// maze is a zone each of whose servers refers to another cut on the way down, and all cuts have the same servers.
type maze int

func (n maze) name(labels int) string { return strings.Repeat("a.", labels) + "x.test." }

func (n maze) refer(r *dns.Msg, cut string) {
	for i := range int(n) {
		ns := fmt.Sprintf("ns%d.%s", i/2, cut)
		r.Ns = append(r.Ns, &dns.NS{Hdr: dns.RR_Header{Name: cut, Rrtype: dns.TypeNS, Class: 1, Ttl: 60}, Ns: ns})
		r.Extra = append(r.Extra, &dns.A{Hdr: dns.RR_Header{Name: ns, Rrtype: dns.TypeA, Class: 1, Ttl: 60}, A: []byte{192, 0, 2, byte(100 + i)}})
	}
}

func (n maze) Exchange(_ context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	r := new(dns.Msg).SetReply(query)
	at := int(server.Addr.Addr().As4()[3]) - 100
	switch q := strings.ToLower(query.Question[0].Name); {
	case at < 0:
		n.refer(r, "x.test.")
	case q == n.name(int(n)+1):
		n.refer(r, n.name(at+1))
	default:
		r.Authoritative, r.Rcode = true, dns.RcodeNameError
		r.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: "x.test.", Rrtype: dns.TypeSOA, Class: 1, Ttl: 60}, Ns: "x.test.", Mbox: "x.test."}}
	}
	return r, nil
}

// TestMaze sees that a walk ends although there are 2^16 ways: with 12 servers it took 41 seconds, with each more 5 times as long.
func TestMaze(t *testing.T) {
	const n = maze(16)
	opts := bounded(iterate.Options{Budget: resolve.NewBudget(150, 1000, nil)})
	opts.Hints = []iterate.Host{{Name: dnsname.MustParse("a.root."), Glue: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}}
	trace, err := (&iterate.Iterator{Exchanger: n, Options: opts}).Run(t.Context(), iterate.Question{Name: dnsname.MustParse(n.name(int(n) + 1)), Type: rr.TypeA})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(trace.Unfinished, "steps") {
		t.Errorf("unfinished are %v", trace.Unfinished)
	}
}
