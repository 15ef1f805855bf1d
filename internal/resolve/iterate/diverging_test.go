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

// divergent is a zone in which each server refers to a different cut on the path, and all cuts have the same servers.
type divergent int

func (n divergent) name(labels int) string { return strings.Repeat("a.", labels) + "x.test." }

func (n divergent) refer(r *dns.Msg, cut string) {
	for i := range int(n) {
		ns := fmt.Sprintf("ns%d.%s", i/2, cut)
		r.Ns = append(r.Ns, &dns.NS{Hdr: dns.RR_Header{Name: cut, Rrtype: dns.TypeNS, Class: 1, Ttl: 60}, Ns: ns})
		glue := dns.RR_Header{Name: ns, Rrtype: dns.TypeA, Class: 1, Ttl: 60}
		r.Extra = append(r.Extra, &dns.A{Hdr: glue, A: []byte{192, 0, 2, byte(100 + i)}})
	}
}

func (n divergent) Exchange(_ context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	r := new(dns.Msg).SetReply(query)
	at := int(server.Addr.Addr().As4()[3]) - 100
	switch q := strings.ToLower(query.Question[0].Name); {
	case at < 0:
		n.refer(r, "x.test.")
	case q == n.name(int(n)+1):
		n.refer(r, n.name(at+1))
	default:
		r.Authoritative, r.Rcode = true, dns.RcodeNameError
		hdr := dns.RR_Header{Name: "x.test.", Rrtype: dns.TypeSOA, Class: 1, Ttl: 60}
		r.Ns = []dns.RR{&dns.SOA{Hdr: hdr, Ns: "x.test.", Mbox: "x.test."}}
	}
	return r, nil
}

// TestDivergingReferrals checks that a walk ends although there are 2^16 paths. Without a limit, 12 servers took 41
// seconds, and each further server 5 times as long.
func TestDivergingReferrals(t *testing.T) {
	const n = divergent(16)
	opts := bounded(iterate.Options{Budget: resolve.NewBudget(150, 1000, nil)})
	opts.Hints = []iterate.Host{{Name: dnsname.MustParse("a.root."), Glue: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}}
	q := iterate.Question{Name: dnsname.MustParse(n.name(int(n) + 1)), Type: rr.TypeA}
	trace, err := (&iterate.Iterator{Exchanger: n, Options: opts}).Run(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(trace.Unfinished, "steps") {
		t.Errorf("unfinished: %v", trace.Unfinished)
	}
}
