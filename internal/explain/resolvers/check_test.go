package resolvers_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/resolve"
)

// fake is an Exchanger whose replies depend on the address.
type fake struct {
	mu   sync.Mutex // guards seen
	seen map[string][]string
}

func (f *fake) Exchange(_ context.Context, s resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	q := query.Question[0]
	addr := s.Addr.Addr().String()
	f.mu.Lock()
	f.seen[addr] = append(f.seen[addr], fmt.Sprint(strings.ToLower(q.Name), " ", dns.ClassToString[q.Qclass], " ",
		dns.TypeToString[q.Qtype], " ", query.RecursionDesired))
	count := len(f.seen[addr])
	f.mu.Unlock()
	r := new(dns.Msg).SetReply(query)
	r.RecursionAvailable = true
	if q.Qclass == dns.ClassCHAOS {
		r.Answer = []dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeTXT, Class: dns.ClassCHAOS},
			Txt: []string{"host-7"}}}
		return r, nil
	}
	soa, _ := dns.NewRR(". 60 SOA a. b. 1 2 3 4 5")
	switch r.Answer = []dns.RR{soa}; addr {
	case "192.0.2.1":
		r.AuthenticatedData = true
		r.SetEdns0(1232, true)
		r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "667261"}}
	case "192.0.2.3":
		return nil, context.DeadlineExceeded
	case "192.0.2.4":
		if count == 1 {
			return nil, context.DeadlineExceeded
		}
	case "192.0.2.5":
		r.Answer, r.Rcode = nil, dns.RcodeRefused
	case "192.0.2.6":
		r.Answer = nil
	}
	return r, nil
}

func TestCheck(t *testing.T) {
	list, err := resolvers.Parse("f", `
		resolver a
		  v4 192.0.2.1 192.0.2.2
		resolver b
		  v4 192.0.2.3 192.0.2.4
		  v6 2001:db8::1
		resolver c
		  v4 192.0.2.5 192.0.2.6
		resolver d
		  doh https://d.test/`)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{seen: map[string][]string{}}
	var got []string
	for _, h := range resolvers.Check(t.Context(), f, list.Resolvers) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %v %t %t %d %s %s", h.ID, h.Addr, h.Answers, h.Validates,
			h.Queries, h.Instance, h.Problem)))
	}
	want := []string{
		"a 192.0.2.1 true true 1 fra",
		"a 192.0.2.2 true false 2 host-7",
		"b 192.0.2.3 false false 2  no reply in time",
		"b 192.0.2.4 true false 2",
		"b 2001:db8::1 true false 2 host-7",
		"c 192.0.2.5 false false 1  replies REFUSED",
		"c 192.0.2.6 false false 1  replies without the SOA record of the root: it does not resolve names",
		"d invalid IP false false 0  not asked: it has no address in the list",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for addr, questions := range f.seen {
		for _, q := range questions {
			if q != ". IN SOA true" && q != "id.server. CH TXT false" || len(questions) > 2 {
				t.Errorf("%s was asked %v", addr, questions)
			}
		}
	}
}
