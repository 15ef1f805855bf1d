package explain_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// gave returns a resolver that answered with these addresses and this remaining TTL.
func gave(ttl uint32, data ...string) explain.Cache {
	return cached(0, set(www, rr.TypeA, ttl, data...))
}

func filters(c explain.Cache) explain.Cache {
	c.Filters = true
	return c
}

// reply returns an exchange with a server: a query for www, and the reply that edit changes.
func reply(t *testing.T, at string, edit func(*dns.Msg)) iterate.Exchange {
	t.Helper()
	m := new(dns.Msg).SetQuestion(www+".", dns.TypeA)
	m.Response = true
	edit(m)
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return iterate.Exchange{Server: netip.MustParseAddr(at), Question: ask(www), Try: 1, Class: iterate.Answer,
		Reply: wire}
}

// TestAssess checks which answers of resolvers are old, and which differences have another explanation.
func TestAssess(t *testing.T) {
	const resolver = "192.0.2.201"
	tests := []struct {
		name  string
		facts func(*explain.Facts)
		want  string // the states of the first answers of the resolvers
	}{
		{"the same", func(f *explain.Facts) { f.Caches = []explain.Cache{gave(20, newWeb)} }, "current"},
		{"another address", func(f *explain.Facts) { f.Caches = []explain.Cache{gave(20, oldWeb)} }, "old"},
		{"a part of the addresses", func(f *explain.Facts) {
			f.Answers = []explain.Answer{answer("192.0.2.1", 42, newWeb, oldWeb)}
			f.Outcomes[0].Sets[0].Data = []string{newWeb, oldWeb}
			f.Caches = []explain.Cache{gave(20, newWeb)}
		}, "old"},
		{"a part, where servers differ", func(f *explain.Facts) {
			f.Answers = []explain.Answer{answer("192.0.2.1", 42, newWeb, oldWeb), answer("192.0.2.2", 41, newWeb, "203.0.113.5")}
			f.Outcomes[0].Sets[0].Data = []string{newWeb, oldWeb}
			f.Caches = []explain.Cache{gave(20, newWeb)}
		}, "current"},
		{"a sinkhole address", func(f *explain.Facts) { f.Caches = []explain.Cache{gave(20, "0.0.0.0")} }, "filtered"},
		{"a denial of another zone", func(f *explain.Facts) {
			f.Caches = []explain.Cache{cached(60)}
			f.Caches[0].Samples[0].SOA.Owner = name("blocked.example.net")
		}, "filtered"},
		{"a denial of the parent zone by a filter", func(f *explain.Facts) {
			f.Caches = []explain.Cache{filters(cached(60)), cached(60)}
			f.Caches[0].Samples[0].SOA.Owner = name("org")
		}, "filtered negative"},
		{"a filter has another address", func(f *explain.Facts) {
			f.Caches = []explain.Cache{filters(gave(20, oldWeb))}
		}, "filtered"},
		{"a filter and another resolver have it", func(f *explain.Facts) {
			f.Caches = []explain.Cache{filters(gave(20, oldWeb)), gave(20, oldWeb)}
		}, "old old"},
		{"a filter has what an earlier scan saw", func(f *explain.Facts) {
			f.Past = []explain.Past{scanned(0, set(www, rr.TypeA, 300, oldWeb))}
			f.Caches = []explain.Cache{filters(gave(20, oldWeb))}
		}, "old"},
		{"the servers rotate", func(f *explain.Facts) {
			f.Answers[0].Others = [][]explain.Set{{set(www, rr.TypeA, 300, "203.0.113.5")}}
			f.Caches = []explain.Cache{gave(20, oldWeb)}
		}, "current"},
		{"the same, but an earlier scan saw it", func(f *explain.Facts) {
			f.Answers[0].Others = [][]explain.Set{{set(www, rr.TypeA, 300, "203.0.113.5")}}
			f.Past = []explain.Past{scanned(0, set(www, rr.TypeA, 300, oldWeb))}
			f.Caches = []explain.Cache{gave(20, oldWeb)}
		}, "old"},
		{"a server says that its answer is for some networks", func(f *explain.Facts) {
			f.Exchanges = []iterate.Exchange{reply(t, "192.0.2.1", func(m *dns.Msg) {
				m.SetEdns0(1232, false)
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24,
					SourceScope: 24,
					Address:     netip.MustParseAddr("198.51.100.0").AsSlice()}}
			})}
			f.Answers[0].Evidence = []int{0}
			f.Caches = []explain.Cache{gave(20, oldWeb)}
		}, "current"},
		{"three versions", func(f *explain.Facts) {
			f.Caches = []explain.Cache{gave(20, "203.0.113.1"), gave(20, "203.0.113.2"), gave(20, "203.0.113.3")}
		}, "current current current"},
		{"two versions", func(f *explain.Facts) {
			f.Caches = []explain.Cache{gave(20, "203.0.113.1"), gave(20, "203.0.113.2")}
		}, "old old"},
		{"a resolver that had nothing fetched it", func(f *explain.Facts) {
			empty := reply(t, resolver, func(m *dns.Msg) { m.RecursionDesired = false })
			f.Exchanges = []iterate.Exchange{empty, reply(t, resolver, func(*dns.Msg) {})}
			f.Caches = []explain.Cache{gave(300, oldWeb), gave(20, oldWeb)}
			f.Caches[0].Samples[0].Evidence = []int{1}
		}, "current current"},
		{"a resolver that had something before", func(f *explain.Facts) {
			full := reply(t, resolver, func(m *dns.Msg) {
				m.RecursionDesired = false
				m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: www + ".", Rrtype: dns.TypeA, Class: 1},
					A: netip.MustParseAddr(oldWeb).AsSlice()}}
			})
			f.Exchanges = []iterate.Exchange{full, reply(t, resolver, func(*dns.Msg) {})}
			f.Caches = []explain.Cache{gave(300, oldWeb)}
			f.Caches[0].Samples[0].Evidence = []int{1}
		}, "old"},
		{"an alias by a DNAME", func(f *explain.Facts) {
			*f = *aliased()
			f.Chain[0].Type = "DNAME"
			f.Caches = []explain.Cache{cached(0, set(www, rr.TypeCNAME, 20, edge+"."), set(edge, rr.TypeA, 20, newWeb))}
		}, "current"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := direct()
			tt.facts(f)
			var got []string
			for _, a := range explain.Assess(f) {
				got = append(got, string(a.Answers[0].State))
			}
			if all := strings.Join(got, " "); all != tt.want {
				t.Errorf("%s, want %s", all, tt.want)
			}
		})
	}
}

// TestAssessCodes checks that response codes and extended errors count before any comparison of data.
func TestAssessCodes(t *testing.T) {
	tests := []struct {
		rcode string
		code  uint16
		want  safeat.State
	}{
		{"", 0, safeat.Silent}, {"REFUSED", 0, safeat.Silent}, {"SERVFAIL", 0, safeat.Failed},
		{"SERVFAIL", 15, safeat.Filtered},
		{"NOERROR", 3, safeat.Stale}, {"NXDOMAIN", 19, safeat.Stale}, {"NXDOMAIN", 16, safeat.Filtered},
		{"NOERROR", 4, safeat.Filtered},
		{"NOERROR", 22, safeat.Current},
	}
	for _, tt := range tests {
		f := direct()
		f.Caches = []explain.Cache{gave(20, newWeb)}
		s := &f.Caches[0].Samples[0]
		s.Rcode, s.Errors = tt.rcode, []iterate.EDE{{Code: tt.code}}
		if got := explain.Assess(f)[0].Answers[0].State; got != tt.want {
			t.Errorf("%q with code %d: %s, want %s", tt.rcode, tt.code, got, tt.want)
		}
	}
}

// TestState checks that an answer without validation does not hide that users of a resolver get none.
func TestState(t *testing.T) {
	answer := func(s safeat.State, unchecked bool) explain.Assessed {
		return explain.Assessed{Sample: explain.Sample{NoCheck: unchecked}, State: s}
	}
	for _, tt := range []struct {
		name    string
		answers []explain.Assessed
		want    safeat.State
	}{
		{"none", nil, safeat.Silent},
		{"old without validation", []explain.Assessed{answer(safeat.Failed, false), answer(safeat.Old, true)}, safeat.Failed},
		{"only without validation", []explain.Assessed{answer(safeat.Old, true)}, safeat.Old},
		{"two caches", []explain.Assessed{answer(safeat.Current, false), answer(safeat.Old, false)}, safeat.Old},
	} {
		if got := (explain.Assessment{Answers: tt.answers}).State(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
