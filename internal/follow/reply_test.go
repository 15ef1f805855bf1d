package follow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
)

// exchange is an Exchanger that calls a function.
type exchange func(ctx context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error)

func (e exchange) Exchange(ctx context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	return e(ctx, server, query)
}

// replyOf parses a reply: an RCODE, then records; "/" marks records of the authority section.
func replyOf(t *testing.T, query *dns.Msg, text string) *dns.Msg {
	t.Helper()
	r := new(dns.Msg).SetReply(query)
	for i, part := range strings.Split(text, "\n") {
		part = strings.TrimSpace(part)
		if i == 0 {
			r.Rcode = dns.StringToRcode[part]
			continue
		}
		data, authority := strings.CutPrefix(part, "/ ")
		rec, err := dns.NewRR(data)
		if err != nil {
			t.Fatal(err)
		}
		if authority {
			r.Ns = append(r.Ns, rec)
		} else {
			r.Answer = append(r.Answer, rec)
		}
	}
	return r
}

func TestReplies(t *testing.T) {
	const soa = "SOA ns.example.net. hostmaster.example.net. 1 7200 3600 1209600 "
	tests := []struct {
		name  string
		reply string // to the question for cdn.example.net. A; other questions get SERVFAIL
		want  string
	}{
		{"several addresses",
			"NOERROR\ncdn.example.net. 60 A 203.0.113.2\ncdn.example.net. 50 A 203.0.113.1\ncdn.example.net. 70 A 203.0.113.2",
			"found 203.0.113.1 203.0.113.2 ttl 50"},
		{"another case", "NOERROR\nCDN.Example.NET. 60 A 203.0.113.2", "found 203.0.113.2 ttl 60"},
		{"with an address of another name", "NOERROR\nwww.example.net. 60 A 203.0.113.66\ncdn.example.net. 60 A 203.0.113.1",
			"found 203.0.113.1 ttl 60"},
		{"an address behind the end of the chain",
			"NOERROR\ncdn.example.net. 60 A 203.0.113.1\ncdn.example.net. 60 CNAME evil.example.org.\n" +
				"evil.example.org. 60 A 203.0.113.66",
			"found 203.0.113.1 ttl 60"},
		{"a chain in any order",
			"NOERROR\nb.example.org. 60 A 203.0.113.1\na.example.org. 40 CNAME b.example.org.\n" +
				"cdn.example.net. 50 CNAME a.example.org.",
			"found 203.0.113.1 ttl 40"},
		{"an escaped dot is no label", "NOERROR\ncdn\\.example.net. 60 A 203.0.113.66", "bogus, before that nothing"},
		{"only others' addresses", "NOERROR\nwww.example.net. 60 A 203.0.113.66", "bogus, before that nothing"},
		{"the other family", "NOERROR\ncdn.example.net. 60 AAAA 2001:db8::1", "bogus, before that nothing"},
		{"another class", "NOERROR\ncdn.example.net. 60 CH A 203.0.113.66", "bogus, before that nothing"},
		{"a TTL beyond all bounds", "NOERROR\ncdn.example.net. 4294967295 A 203.0.113.1", "found 203.0.113.1 ttl 0"},
		{"nothing, proven", "NOERROR\n/ example.net. 300 " + soa + "90", "nodata; proven; next 1m30s"},
		{"nothing, proven for less", "NOERROR\n/ example.net. 80 " + soa + "90", "nodata; proven; next 1m20s"},
		{"nothing for a year", "NOERROR\n/ example.net. 31536000 " + soa + "31536000", "nodata; proven; next 30m0s"},
		{"nothing at the end of a chain", "NOERROR\ncdn.example.net. 50 CNAME a.example.org.\n/ example.org. 300 " + soa +
			"90", "nodata; proven; next 50s"},
		{"no name at the end of a chain", "NXDOMAIN\ncdn.example.net. 500 CNAME a.example.org.\n/ example.org. 300 " + soa +
			"90", "nxdomain; proven; next 1m30s"},
		{"no name, not proven", "NXDOMAIN", "nxdomain; next 30s"},
		{"nothing, not proven", "NOERROR", "nodata; next 30s"},
		{"the SOA of a zone elsewhere proves nothing", "NOERROR\n/ example.org. 300 " + soa + "90", "nodata; next 30s"},
		{"nor that of the zone where the chain began",
			"NOERROR\ncdn.example.net. 50 CNAME a.example.org.\n/ example.net. 300 " + soa + "90",
			"servfail, before that nothing"},
		{"a referral", "NOERROR\n/ net. 300 NS a.example.org.", "lame, before that nothing"},
		{"not an authority", "NOTAUTH", "lame, before that nothing"},
		{"not implemented", "NOTIMP", "formerr, before that nothing"},
		{"something else", "YXDOMAIN", "rcode, before that nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ex := exchange(func(_ context.Context, _ resolve.Server, query *dns.Msg) (*dns.Msg, error) {
					if query.Question[0].Name != target {
						return replyOf(t, query, "SERVFAIL"), nil
					}
					return replyOf(t, query, tt.reply), nil
				})
				r := newTestEnv(simnet.New(1), follow.Options{Exchanger: ex, Rand: noJitter}, "192.0.2.53")
				r.Follow(name(target), follow.IPv4)
				r.start(t)
				got := r.stateText(target, follow.IPv4)
				if s, _ := r.State(name(target), follow.IPv4); len(s.Addrs) == 0 && s.Err == nil {
					if s.Proven {
						got += "; proven"
					}
					got += fmt.Sprintf("; next %v", time.Until(s.NextAttempt))
				}
				if got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestQuery checks the queries: recursion is desired, and replies may have 1232 bytes.
func TestQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		ex := exchange(func(_ context.Context, server resolve.Server, m *dns.Msg) (*dns.Msg, error) {
			asked = append(asked, fmt.Sprintln(server, m.Question[0].Name, m.Question[0].Qtype, m.RecursionDesired,
				m.IsEdns0().UDPSize()))
			return replyOf(t, m, "NOERROR"), nil
		})
		r := newTestEnv(simnet.New(1), follow.Options{Exchanger: ex}, "192.0.2.53")
		r.Follow(name(target), follow.IPv6)
		r.start(t)
		if want := "192.0.2.53:53 cdn.example.net. 28 true 1232\n"; strings.Join(asked, "") != want {
			t.Errorf("asked %q, want %q", asked, want)
		}
	})
}

// TestErrorTexts checks that errors contain the resolver's extended error, or the error of the operating system.
func TestErrorTexts(t *testing.T) {
	tests := []struct {
		name string
		ex   exchange
		want string
	}{
		{"extended error", func(_ context.Context, _ resolve.Server, query *dns.Msg) (*dns.Msg, error) {
			r := replyOf(t, query, "SERVFAIL")
			opt := r.SetEdns0(1232, false).IsEdns0()
			opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeDNSBogus, ExtraText: "expired"})
			return r, nil
		}, "servfail: DNSSEC Bogus expired"},
		{"network", func(context.Context, resolve.Server, *dns.Msg) (*dns.Msg, error) {
			return nil, errors.New("ask 192.0.2.53:53: no route to host")
		}, "network: ask 192.0.2.53:53: no route to host"},
		{"other RCODE", func(_ context.Context, _ resolve.Server, query *dns.Msg) (*dns.Msg, error) {
			return replyOf(t, query, "YXDOMAIN"), nil
		}, "rcode: RCODE 6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTestEnv(simnet.New(1), follow.Options{Exchanger: tt.ex}, "192.0.2.53")
				r.Follow(name(target), follow.IPv4)
				r.start(t)
				s, _ := r.State(name(target), follow.IPv4)
				if s.Err == nil || s.Err.Error() != tt.want || s.Err.Server != "192.0.2.53:53" {
					t.Errorf("Err = %+v, want %s", s.Err, tt.want)
				}
			})
		})
	}
}

// TestResolverFollowsFewerLinks has a resolver that returns SERVFAIL for loops and for chains that are too long for it,
// as real ones do. The tracker follows the rest of the chain itself, and reports the real cause.
func TestResolverFollowsFewerLinks(t *testing.T) {
	const most = 3 // CNAMEs that the resolver follows
	for _, tt := range []struct {
		name  string
		links int // CNAMEs between n0 and the addresses
		loop  bool
		want  string
		chain int // CNAMEs that were followed
	}{
		{"within its bounds", 3, false, "found 203.0.113.1 ttl 60", 3},
		{"beyond them", 4, false, "found 203.0.113.1 ttl 60", 4},
		{"as many as we follow", 16, false, "found 203.0.113.1 ttl 60", 16},
		{"more", 17, false, "chain-too-long, before that nothing", 17},
		{"a loop", 5, true, "loop, before that nothing", 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				ex := exchange(func(_ context.Context, _ resolve.Server, query *dns.Msg) (*dns.Msg, error) {
					asked++
					return replyOf(t, query, chained(query.Question[0], tt.links, tt.loop, most)), nil
				})
				r := newTestEnv(simnet.New(1), follow.Options{Exchanger: ex}, "192.0.2.53")
				r.start(t)
				r.Follow(name("n0.example.net."), follow.IPv4)
				r.until(time.Second)
				st, _ := r.State(name("n0.example.net."), follow.IPv4)
				chain := st.AnswerChain
				if st.Err != nil {
					chain = st.Err.Chain
				}
				if got := brief(st); got != tt.want || len(chain) != tt.chain {
					t.Errorf("%s after %d CNAMEs, want %s after %d", got, len(chain), tt.want, tt.chain)
				}
				if asked > 2*17 {
					t.Errorf("asked %d times", asked)
				}
			})
		})
	}
}

// chained returns the reply to a question for one of the names n0, n1, ..., each a CNAME of the next. The resolver
// follows up to limit CNAMEs.
func chained(q dns.Question, links int, loop bool, limit int) string {
	var at int
	fmt.Sscanf(q.Name, "n%d.", &at)
	out := "NOERROR"
	for i := 0; ; i++ {
		next := at + 1
		if loop && next == links {
			next = 0
		}
		switch {
		case at == links && q.Qtype == dns.TypeA:
			return fmt.Sprintf("%s\nn%d.example.net. 60 A 203.0.113.1", out, at)
		case i == limit && q.Qtype == dns.TypeA:
			return "SERVFAIL"
		}
		out += fmt.Sprintf("\nn%d.example.net. 60 CNAME n%d.example.net.", at, next)
		if q.Qtype == dns.TypeCNAME {
			return out
		}
		at = next
	}
}
