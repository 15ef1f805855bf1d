package forward_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

const soa = "example.org. 600 IN SOA ns1.example.org. hostmaster.example.org. 1 2 3 4 300"
const soa300 = "example.org. 300 IN SOA ns1.example.org. hostmaster.example.org. 1 2 3 4 300"

const sigTail = " 5 3 300 20300101000000 20200101000000 1 example.org. AAAA"

// TestScrub has upstreams whose replies have too many records, or too few.
func TestScrub(t *testing.T) {
	none := wire.EDENone
	fails := answer{Rcode: "SERVFAIL", EDE: wire.EDENoReachable}
	tests := []struct {
		name  string
		qtype uint16
		do    bool
		rcode int
		text  string
		want  answer
	}{
		{"address", dns.TypeA, false, 0, `www.example.org. 300 IN A 192.0.2.1
			www.example.org. 300 IN A 192.0.2.2`,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{"www.example.org. 300 IN A 192.0.2.1",
				"www.example.org. 300 IN A 192.0.2.2"}}},
		{"others' records", dns.TypeA, false, 0, `bank.example. 300 IN A 192.0.2.66
			www.example.org. 300 IN A 192.0.2.1
			www.example.org. 300 CH A 192.0.2.66
			www.example.org. 300 IN AAAA 2001:db8::66
			example.org. 300 IN A 192.0.2.66
			www.example.org. 300 IN RRSIG A` + sigTail + `
			--
			example.org. 300 IN NS ns.attacker.test.
			` + soa,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{"www.example.org. 300 IN A 192.0.2.1"}}},
		{"chain out of order", dns.TypeA, false, 0, `b.example.net. 60 IN A 192.0.2.1
			a.example.net. 300 IN CNAME b.example.net.
			WWW.Example.ORG. 300 IN CNAME a.example.net.
			www.example.org. 300 IN CNAME bank.example.
			bank.example. 300 IN A 192.0.2.66`,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{"www.example.org. 300 IN CNAME a.example.net.",
				"a.example.net. 300 IN CNAME b.example.net.", "b.example.net. 60 IN A 192.0.2.1"}}},
		{"CNAME asked for", dns.TypeCNAME, false, 0, `www.example.org. 300 IN CNAME a.example.net.
			a.example.net. 300 IN CNAME b.example.net.`,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{"www.example.org. 300 IN CNAME a.example.net."}}},
		{"loop", dns.TypeA, false, 0, `www.example.org. 300 IN CNAME a.example.net.
			a.example.net. 300 IN CNAME www.example.org.`,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{"www.example.org. 300 IN CNAME a.example.net.",
				"a.example.net. 300 IN CNAME www.example.org."}}},
		{"DNAME", dns.TypeA, true, 0, `test. 300 IN DNAME attacker.test.
			www.example.org. 300 IN DNAME attacker.test.
			example.org. 300 IN DNAME example.net.
			example.org. 300 IN RRSIG DNAME` + sigTail + `
			www.example.org. 300 IN CNAME www.example.net.
			www.example.net. 300 IN A 192.0.2.1`,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{"example.org. 300 IN DNAME example.net.",
				"example.org. 300 IN RRSIG DNAME" + sigTail,
				"www.example.org. 300 IN CNAME www.example.net.", "www.example.net. 300 IN A 192.0.2.1"}}},
		{"DNAME too long", dns.TypeA, false, dns.RcodeYXDomain, `example.org. 300 IN DNAME example.net.`,
			answer{Rcode: "YXDOMAIN", EDE: none, Answer: []string{"example.org. 300 IN DNAME example.net."}}},
		{"no name", dns.TypeA, false, dns.RcodeNameError, `--
			attacker.test. 300 IN SOA a. b. 1 2 3 4 5
			` + soa + `
			example.org. 300 IN NSEC www2.example.org. A`,
			answer{Rcode: "NXDOMAIN", EDE: none, Authority: []string{soa300}}},
		{"no data", dns.TypeA, false, 0, `--
			` + soa, answer{Rcode: "NOERROR", EDE: none, Authority: []string{soa300}}},
		{"chain to no name", dns.TypeA, false, dns.RcodeNameError, `www.example.org. 300 IN CNAME a.example.net.
			--
			` + soa + `
			example.net. 100 IN SOA a. b. 1 2 3 4 3600`,
			answer{Rcode: "NXDOMAIN", EDE: none, Answer: []string{"www.example.org. 300 IN CNAME a.example.net."},
				Authority: []string{"example.net. 100 IN SOA a. b. 1 2 3 4 3600"}}},
		{"no name, no SOA", dns.TypeA, false, dns.RcodeNameError, ``, answer{Rcode: "NXDOMAIN", EDE: none}},
		{"no data, no SOA", dns.TypeA, false, 0, ``, answer{Rcode: "NOERROR", EDE: none}},
		{"proofs", dns.TypeA, true, dns.RcodeNameError, `--
			` + soa + `
			example.org. 600 IN RRSIG SOA` + sigTail + `
			a.example.org. 300 IN NSEC z.example.org. A
			a.example.org. 300 IN RRSIG NSEC` + sigTail + `
			a.example.net. 300 IN NSEC z.example.net. A
			example.org. 300 IN RRSIG NS` + sigTail,
			answer{Rcode: "NXDOMAIN", EDE: none, Authority: []string{soa300, "example.org. 600 IN RRSIG SOA" + sigTail,
				"a.example.org. 300 IN NSEC z.example.org. A", "a.example.org. 300 IN RRSIG NSEC" + sigTail}}},
		{"wildcard with its proof", dns.TypeA, true, 0, `www.example.org. 300 IN A 192.0.2.1
			www.example.org. 300 IN RRSIG A` + sigTail + `
			www.example.org. 300 IN RRSIG AAAA` + sigTail + `
			--
			` + soa + `
			example.org. 600 IN RRSIG SOA` + sigTail + `
			a.example.org. 300 IN NSEC z.example.org. A
			a.example.org. 300 IN RRSIG NSEC` + sigTail + `
			a.example.net. 300 IN NSEC z.example.net. A`,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{"www.example.org. 300 IN A 192.0.2.1",
				"www.example.org. 300 IN RRSIG A" + sigTail},
				Authority: []string{"a.example.org. 300 IN NSEC z.example.org. A", "a.example.org. 300 IN RRSIG NSEC" + sigTail}}},
		{"signatures asked for", dns.TypeRRSIG, true, 0, "www.example.org. 300 IN RRSIG A" + sigTail,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{"www.example.org. 300 IN RRSIG A" + sigTail}}},
		{"unknown type", 65280, false, 0, `www.example.org. 300 IN TYPE65280 \# 2 abcd`,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{`www.example.org. 300 CLASS1 TYPE65280 \# 2 abcd`}}},
		{"TTL too large", dns.TypeA, false, 0, `www.example.org. 4294967295 IN A 192.0.2.1`,
			answer{Rcode: "NOERROR", EDE: none, Answer: []string{"www.example.org. 0 IN A 192.0.2.1"}}},
		{"referral", dns.TypeA, false, 0, `--
			example.org. 300 IN NS ns1.example.org.`, fails},
		{"no name and yet there", dns.TypeA, false, dns.RcodeNameError, "www.example.org. 300 IN A 192.0.2.1", fails},
		{"refused", dns.TypeA, false, dns.RcodeRefused, "", fails},
		{"failed", dns.TypeA, false, dns.RcodeServerFailure, "www.example.org. 300 IN A 192.0.2.1", fails},
		{"not implemented", dns.TypeA, false, dns.RcodeNotImplemented, "", fails},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := start(t, forward.Config{}, replies(t, tt.rcode, tt.text))
			got := askFor(t, f, forward.Question{Name: wireName(t, "www.example.org."), Type: rr.Type(tt.qtype), DO: tt.do})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestQuery checks the queries to upstreams.
func TestQuery(t *testing.T) {
	for _, tt := range []struct{ do, cd bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		var got *dns.Msg
		f, _ := start(t, forward.Config{}, func(ctx context.Context, q *dns.Msg) (*dns.Msg, error) {
			got = q
			return replies(t, 0, "www.example.org. 300 IN A 192.0.2.1")(ctx, q)
		})
		askFor(t, f, forward.Question{Name: wireName(t, "www.example.org."), Type: rr.TypeA, DO: tt.do, CD: tt.cd})
		opt := got.IsEdns0()
		if !got.RecursionDesired || !got.AuthenticatedData || got.CheckingDisabled != tt.cd || opt == nil ||
			opt.Do() != tt.do || opt.UDPSize() != 1232 || len(opt.Option) != 0 {
			t.Errorf("DO %v, CD %v became\n%s", tt.do, tt.cd, got)
		}
	}
}

// TestReplyFlags checks which parts of a reply are passed on besides its records.
func TestReplyFlags(t *testing.T) {
	f, _ := start(t, forward.Config{}, func(ctx context.Context, q *dns.Msg) (*dns.Msg, error) {
		h := replies(t, 0, "good.example.org. 300 IN A 192.0.2.1")
		if q.Question[0].Name == "bogus.example.org." {
			h = replies(t, dns.RcodeServerFailure, "")
		}
		m, err := h(ctx, q)
		m.SetEdns0(1232, false)
		m.AuthenticatedData = true
		if m.Rcode != 0 {
			opt := m.IsEdns0()
			opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeDNSBogus})
		}
		return m, err
	})
	want := answer{Rcode: "NOERROR", Answer: []string{"good.example.org. 300 IN A 192.0.2.1"}, AD: true, EDE: wire.EDENone}
	if diff := cmp.Diff(want, ask(t, f, "good.example.org.", dns.TypeA)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want = answer{Rcode: "SERVFAIL", EDE: int(dns.ExtendedErrorCodeDNSBogus)}
	if diff := cmp.Diff(want, ask(t, f, "bogus.example.org.", dns.TypeA)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNoAnswers has replies that resemble answers and are none.
func TestNoAnswers(t *testing.T) {
	changed := func(text string, change func(*dns.Msg)) handler {
		return func(ctx context.Context, q *dns.Msg) (*dns.Msg, error) {
			m, err := replies(t, 0, text)(ctx, q)
			change(m)
			return m, err
		}
	}
	tests := []struct {
		name    string
		handler handler
	}{
		{"truncated for ever", changed(address, func(m *dns.Msg) { m.Truncated = true })},
		{"empty, of a server that does not resolve", changed("", func(m *dns.Msg) { m.RecursionAvailable = false })},
		{"refused for a reason of its own", says(t, dns.RcodeRefused, dns.ExtendedErrorCodeProhibited)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, n := start(t, forward.Config{}, tt.handler)
			check(t, f, n, failed(wire.EDENoReachable), "192.0.2.1")
		})
	}
}

// FuzzScrub has an upstream reply with any valid message. The result must be valid too, and only about names in the
// chain from the question.
func FuzzScrub(f *testing.F) {
	for _, text := range []string{
		"www.example.org. 300 IN A 192.0.2.1\nbank.example. 300 IN A 192.0.2.66",
		"www.example.org. 300 IN CNAME a.b.\na.b. 300 IN CNAME c.d.\nc.d. 1 IN A 192.0.2.1",
		"example.org. 300 IN DNAME example.net.\nwww.example.org. 300 IN CNAME www.example.net.\n--\n" + soa,
		"www.example.org. 300 IN CNAME a\\.b.\\000.\n--\n. 300 IN SOA . . 1 2 3 4 5\na. 300 IN NSEC b. A",
	} {
		m, _ := replies(f, 0, text)(context.Background(), new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		packed, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed, true)
		f.Add(packed, false)
	}
	f.Fuzz(func(t *testing.T, packed []byte, do bool) {
		upstream := func(_ context.Context, q *dns.Msg) (*dns.Msg, error) {
			m := new(dns.Msg)
			if err := m.Unpack(packed); err != nil {
				return nil, err
			}
			m.Id, m.Question = q.Id, q.Question
			return m, nil
		}
		fwd, _ := start(t, forward.Config{}, upstream)
		q := forward.Question{Name: wireName(t, "www.example.org."), Type: rr.TypeA, DO: do}
		msg := message(q, 65535)
		r := fwd.Exchange(t.Context(), q, msg)
		read(t, msg, r)
		m := new(dns.Msg)
		if err := m.Unpack(r.Msg); err != nil {
			t.Fatal(err)
		}
		checkChain(t, m, do)
	})
}

// checkChain is a slower and simpler check of the records that an answer may have.
func checkChain(t *testing.T, m *dns.Msg, do bool) {
	t.Helper()
	names := map[string]bool{"www.example.org.": true}
	for _, r := range m.Answer {
		h := r.Header()
		name := dns.CanonicalName(h.Name)
		if c, ok := r.(*dns.CNAME); ok {
			names[dns.CanonicalName(c.Target)] = true
		}
		_, dname := r.(*dns.DNAME)
		_, sig := r.(*dns.RRSIG)
		if h.Class != dns.ClassINET || !names[name] && !dname && !sig || sig && !do {
			t.Errorf("%s is in the answer\n%s", r, m)
		}
	}
	for _, r := range m.Ns {
		switch r.(type) {
		case *dns.SOA:
		case *dns.NSEC, *dns.NSEC3, *dns.RRSIG:
			if !do {
				t.Errorf("%s was not asked for", r)
			}
		default:
			t.Errorf("%s is in the authority section", r)
		}
	}
	if len(m.Extra) != 0 {
		t.Errorf("%v in the additional section", m.Extra)
	}
}
