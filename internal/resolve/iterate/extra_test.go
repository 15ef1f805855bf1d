package iterate_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/simnet"
)

// asked returns the questions that servers received, in order and without duplicates.
func asked(net *simnet.Net) (out []string) {
	for _, q := range net.History() {
		out = append(out, q.Name.String()+" "+q.Type.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestProbe(t *testing.T) {
	tests := []struct{ q, want string }{
		{"www.example.test. A", "any.example.test. A"},
		{"example.test. NS", "any.example.test. NS"},
		{"a.b.c.example.test. A", "any.b.c.example.test. A"},
		{"alias.example.test. A", "any.example.test. A any.other.test. A"},
		{"nope.example.test. A", ""},
		{"www.example.test. TXT", ""},
	}
	for _, tt := range tests {
		t.Run(tt.q, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trace := walk(t, internet(nil), tt.q, iterate.Options{Probe: "any"})
				var got []string
				for _, e := range trace.Exchanges {
					if e.Question.Name.Label() == "any" {
						got = append(got, e.Question.String())
					}
				}
				slices.Sort(got)
				if got := strings.Join(slices.Compact(got), " "); got != tt.want {
					t.Errorf("asked %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestSecurity checks the DNSSEC queries of a walk: DS if referrals have neither DS records nor a denial, and CDS and
// CDNSKEY in signed zones.
func TestSecurity(t *testing.T) {
	const sub = "zone sub.example.test.\nsub.example.test. 60 NS ns1.example.test.\nwww.sub.example.test. 60 A 192.0.2.9"
	const key = "\nsub.example.test. 60 DNSKEY 257 3 13 AAAA\nsub.example.test. 60 CDS 0 0 0 00"
	tests := []struct {
		name, do string
		opts     iterate.Options
		want     string
	}{
		{"not signed", sub, iterate.Options{}, "example.test. CDNSKEY, example.test. CDS, example.test. DS, " +
			"sub.example.test. CDNSKEY, sub.example.test. CDS, sub.example.test. DS"},
		{"signed", sub + key, iterate.Options{}, "example.test. CDNSKEY, example.test. CDS, example.test. DS, " +
			"sub.example.test. CDNSKEY, sub.example.test. CDS, sub.example.test. DS"},
		{"not wanted", sub + key, iterate.Options{NoDNSSEC: true}, ""},
		{"fast", sub + key, iterate.Options{Fast: true}, "example.test. DS, sub.example.test. DS"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := internet(map[string]string{"192.0.2.21": tt.do, "192.0.2.22": tt.do})
				walk(t, net, "www.sub.example.test. A", tt.opts)
				got := slices.DeleteFunc(asked(net), func(q string) bool {
					return !strings.HasSuffix(q, "DS") && !strings.HasSuffix(q, "CDNSKEY")
				})
				if got := strings.Join(got, ", "); got != tt.want {
					t.Errorf("asked %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := internet(map[string]string{"192.0.2.21": "fault refused"})
		trace := walk(t, net, "alias.example.test. A", iterate.Options{Fast: true})
		if trace.Result != iterate.Answer || len(trace.Notes)+len(trace.Unfinished) > 0 {
			t.Errorf("result %s, notes %v, unfinished %v", trace.Result, trace.Notes, trace.Unfinished)
		}
		if n := len(net.History()); n > 30 {
			t.Errorf("%d queries", n)
		}
		good := map[iterate.Question]int{}
		for _, e := range trace.Exchanges {
			if good[e.Question]++; good[e.Question] > 1 && e.Class.Usable() && e.Server != netip.MustParseAddr("192.0.2.22") {
				t.Errorf("%v was asked again of %v", e.Question, e.Server)
			}
		}
	})
}

// spy records queries.
type spy struct {
	resolve.Exchanger
	mu   sync.Mutex // guards seen
	seen []*dns.Msg
}

func (s *spy) Exchange(ctx context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	s.mu.Lock()
	s.seen = append(s.seen, query.Copy())
	s.mu.Unlock()
	return s.Exchanger.Exchange(ctx, server, query)
}

func TestQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spy{Exchanger: internet(nil)}
		it := &iterate.Iterator{Exchanger: s, Options: bounded(iterate.Options{})}
		if _, err := it.Run(t.Context(), question("www.example.test. A")); err != nil {
			t.Fatal(err)
		}
		for _, m := range s.seen {
			if m.RecursionDesired {
				t.Errorf("%v asks for recursion", m.Question)
			}
		}
		if !slices.ContainsFunc(s.seen, func(m *dns.Msg) bool { return m.Question[0].Name == "WwW.eXaMpLe.TeSt." }) {
			t.Error("the case is not mixed")
		}
	})
}

// TestSpread checks that questions for a single server are spread, so that the rate limit of no server delays the
// walk.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const more = "example.test. 60 NS ns3.example.test.\nns3.example.test. 60 A 192.0.2.21\n" +
			"example.test. 60 DNSKEY 257 3 13 AAAA"
		net := internet(map[string]string{"192.0.2.21": more, "192.0.2.22": more})
		trace := walk(t, net, "www.example.test. A", iterate.Options{})
		count := map[netip.AddrPort]int{}
		for _, q := range net.History() {
			count[q.Server]++
		}
		for server, n := range count {
			if n > 10 {
				t.Errorf("%v was asked %d times", server, n)
			}
		}
		if last := trace.Exchanges[len(trace.Exchanges)-1]; last.At+last.RTT > 0 {
			t.Errorf("took %v", last.At+last.RTT)
		}
	})
}

// TestOldGlue has an address that only the child knows. It must be queried like the others.
func TestOldGlue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const moved = "set ns2.example.test. 60 A 192.0.2.23"
		net := internet(map[string]string{"192.0.2.21": moved, "192.0.2.22": moved, "192.0.2.23": exampleZone + moved})
		trace := walk(t, net, "www.example.test. A", iterate.Options{})
		for _, q := range []string{"example.test. NS", "example.test. SOA", "example.test. DNSKEY", "www.example.test. A"} {
			if got := classes(trace, "example.test.", q); !strings.Contains(got, "23 udp ") {
				t.Errorf("%s: %s", q, got)
			}
		}
	})
}
