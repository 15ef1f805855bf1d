package iterate_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// addressList is an Exchanger that replies with a number of addresses.
type addressList int

func (n addressList) Exchange(_ context.Context, _ resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	r := new(dns.Msg).SetReply(query)
	r.Authoritative = true
	for i := range int(n) {
		hdr := dns.RR_Header{Name: query.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}
		r.Answer = append(r.Answer, &dns.A{Hdr: hdr, A: []byte{192, 0, byte(i >> 8), byte(i)}})
	}
	return r, nil
}

// TestTooManyRecords checks that a reply with more records than any real one is discarded, and that this says nothing
// about the server.
func TestTooManyRecords(t *testing.T) {
	for n, want := range map[addressList]iterate.Class{1000: iterate.Answer, 1001: iterate.Unknown} {
		e := iterate.Ask(t.Context(), n, time.Now(), iterate.Query{Zone: dnsname.MustParse("example.test."),
			Question: question("www.example.test. A"),
			Server:   resolve.Server{Addr: netip.MustParseAddrPort("192.0.2.21:53")}})
		if e.Class != want || (len(e.Reply) > 0) != (want == iterate.Answer) ||
			want == iterate.Unknown && !strings.Contains(e.Error, "1000 records") {
			t.Errorf("%d records: %s %q, %d bytes kept", n, e.Class, e.Error, len(e.Reply))
		}
	}
}
