package alias

import (
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// authority is the name server of example.net, with records that the test sets.
type authority struct {
	addr string

	mu      sync.Mutex // guards the following
	records []dns.RR
	broken  bool // answers SERVFAIL
	queries int
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	l, conn, err := server.ListenBoth()
	if err != nil {
		t.Fatal(err)
	}
	a.addr = l.Addr().String()
	for _, s := range []*dns.Server{{PacketConn: conn, Handler: dns.HandlerFunc(a.serve)},
		{Listener: l, Handler: dns.HandlerFunc(a.serve)}} {
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return a
}

// set replaces all records of the zone.
func (a *authority) set(lines ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records = nil
	for _, l := range lines {
		rec, err := dns.NewRR(l)
		if err != nil {
			panic(err)
		}
		a.records = append(a.records, rec)
	}
}

func (a *authority) setBroken(broken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = broken
}

func (a *authority) serve(w dns.ResponseWriter, q *dns.Msg) {
	_ = w.WriteMsg(a.answer(q))
}

func (a *authority) answer(q *dns.Msg) *dns.Msg {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queries++
	m := new(dns.Msg).SetReply(q)
	if a.broken {
		m.Rcode = dns.RcodeServerFailure
		return m
	}
	m.Authoritative = true
	exists := false
	name := strings.ToLower(q.Question[0].Name)
	for _, rec := range a.records {
		if rec.Header().Name != name {
			continue
		}
		exists = true
		if t := rec.Header().Rrtype; t == q.Question[0].Qtype || t == dns.TypeCNAME {
			m.Answer = append(m.Answer, rec)
		}
	}
	if len(m.Answer) == 0 {
		soa, _ := dns.NewRR("example.net. 1 IN SOA ns.example.net. host.example.net. 1 3600 600 86400 1")
		m.Ns = []dns.RR{soa}
		if !exists && name != "example.net." && name != "." {
			m.Rcode = dns.RcodeNameError
		}
	}
	return m
}
