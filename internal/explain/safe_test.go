package explain_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

var now = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

const (
	www, edge = "www.example.org", "edge.example.net"
	oldWeb    = "203.0.113.99"
	newWeb    = "203.0.113.10"
)

func name(s string) dnsname.Name { return dnsname.MustParse(s) }

func set(owner string, t rr.Type, ttl uint32, data ...string) explain.Set {
	return explain.Set{Name: name(owner), Type: t, TTL: ttl, Data: data}
}

func ask(owner string) iterate.Question {
	return iterate.Question{Name: dnsname.MustParse(owner), Type: rr.TypeA}
}

// direct returns the facts for a name with an address of its own.
func direct() *explain.Facts {
	return &explain.Facts{
		Kind: explain.Compare, Name: name(www), Zone: name("example.org"), At: now,
		Outcomes: []explain.Outcome{{Type: rr.TypeA, Result: iterate.Answer, End: name(www), Zone: name("example.org"),
			Sets: []explain.Set{set(www, rr.TypeA, 300, newWeb)}}},
		Answers: []explain.Answer{answer("192.0.2.1", 42, newWeb), answer("192.0.2.2", 42, newWeb)},
		Denials: []explain.Denial{{Zone: name("example.org"), Class: iterate.NXDomain, TTL: 3600, Minimum: 900,
			Ranges: safeat.RangesNone}},
		Zones: []iterate.Zone{{Name: name("example.org"), Parent: name("org"),
			ParentNS: []iterate.NSSet{{NS: []dnsname.Name{name("ns1.example.org")}, TTL: 172800}},
			ChildNS:  []iterate.NSSet{{NS: []dnsname.Name{name("ns1.example.org")}, TTL: 3600}}}},
	}
}

// aliased returns the facts for a name that is an alias of another one.
func aliased() *explain.Facts {
	f := direct()
	f.Chain = []explain.Hop{{Link: iterate.Link{From: name(www), To: name(edge), Type: "CNAME", TTL: 600,
		Zone: name("example.org")}}}
	f.Outcomes[0].End, f.Outcomes[0].Zone = name(edge), name("example.net")
	f.Outcomes[0].Sets = []explain.Set{set(edge, rr.TypeA, 60, newWeb)}
	f.Answers = nil
	return f
}

func answer(at string, serial uint32, data ...string) explain.Answer {
	return explain.Answer{Question: ask(www), Zone: name("example.org"), Server: netip.MustParseAddr(at),
		Class: iterate.Answer,
		Sets:  []explain.Set{set(www, rr.TypeA, 300, data...)}, Serial: serial}
}

// cached returns a resolver that answered with these sets; without any, with a denial of example.org for left more
// seconds.
func cached(left uint32, sets ...explain.Set) explain.Cache {
	answer := explain.Sample{Question: ask(www), Rcode: "NOERROR", Sets: sets}
	if len(sets) == 0 {
		answer.Rcode, answer.SOA = "NXDOMAIN", &explain.SOA{Owner: name("example.org"), TTL: left}
	}
	return explain.Cache{Operator: "Alpha", Addr: netip.MustParseAddr("192.0.2.201"), Samples: []explain.Sample{answer}}
}

// scanned returns the result of an earlier scan.
func scanned(ago time.Duration, sets ...explain.Set) explain.Past {
	return explain.Past{Name: name(www), At: now.Add(-ago), Sets: sets}
}

func TestSafe(t *testing.T) {
	tests := []struct {
		name  string
		facts func() *explain.Facts
		want  time.Duration // from now
		says  string
	}{
		{"nothing indicates a change", direct, 0, "Everyone sees the new answer"},
		{"all caches are current", func() *explain.Facts {
			f := direct()
			f.Caches = []explain.Cache{cached(200, set(www, rr.TypeA, 200, newWeb))}
			return f
		}, 0, ""},
		{"it was changed, and the old record is not known", func() *explain.Facts {
			f := direct()
			f.Change = true
			return f
		}, 900 * time.Second, "as far as is known"},
		{"an earlier scan saw another address with a TTL of a day", func() *explain.Facts {
			f := direct()
			f.Past = []explain.Past{scanned(10*time.Minute, set(www, rr.TypeA, 86400, oldWeb))}
			return f
		}, 86400 * time.Second, ""},
		{"the same, but a later scan saw the new one", func() *explain.Facts {
			f := direct()
			f.Past = []explain.Past{scanned(time.Hour, set(www, rr.TypeA, 300, newWeb)),
				scanned(2*time.Hour, set(www, rr.TypeA, 86400, oldWeb))}
			return f
		}, 86400*time.Second - time.Hour, ""},
		{"an earlier scan found no name", func() *explain.Facts {
			f := direct()
			f.Past = []explain.Past{{Name: name(www), At: now.Add(-time.Minute), Absent: []rr.Type{rr.TypeA}}}
			return f
		}, 900 * time.Second, ""},
		{"it was an alias with a TTL of a day", func() *explain.Facts {
			f := direct()
			f.Past = []explain.Past{scanned(10*time.Minute, set(www, rr.TypeCNAME, 86400, edge+"."),
				set(edge, rr.TypeA, 60, oldWeb))}
			return f
		}, 86400 * time.Second, ""},
		{"it is an alias, and was an address with a TTL of a day", func() *explain.Facts {
			f := aliased()
			f.Past = []explain.Past{scanned(10*time.Minute, set(www, rr.TypeA, 86400, oldWeb))}
			return f
		}, 86400 * time.Second, ""},
		{"it is an alias, and had one address and not the other", func() *explain.Facts {
			f := aliased()
			f.Past = []explain.Past{scanned(10*time.Minute, set(www, rr.TypeA, 60, oldWeb))}
			f.Past[0].Absent = []rr.Type{rr.TypeAAAA}
			return f
		}, 900 * time.Second, ""},
		{"a scan in between was for another type", func() *explain.Facts {
			f := direct()
			f.Past = []explain.Past{scanned(time.Minute, set(www, rr.TypeTXT, 300, `"x"`)),
				scanned(10*time.Minute, set(www, rr.TypeA, 86400, oldWeb))}
			return f
		}, 86400 * time.Second, ""},
		{"scans of other names do not count", func() *explain.Facts {
			f := direct()
			f.Past = []explain.Past{{Name: name("example.org"), At: now.Add(-time.Minute),
				Sets: []explain.Set{set(www, rr.TypeA, 86400, oldWeb)}}}
			return f
		}, 0, ""},
		{"it has been the same for eight days, and the user changes something", func() *explain.Facts {
			f := direct()
			f.Change = true
			f.Past = []explain.Past{scanned(8*24*time.Hour, set(www, rr.TypeA, 300, newWeb))}
			return f
		}, 0, ""},
		{"it was changed, and two earlier scans saw the current record", func() *explain.Facts {
			f := direct()
			f.Change = true
			f.Past = []explain.Past{scanned(time.Minute, set(www, rr.TypeA, 300, newWeb)),
				scanned(10*time.Minute, set(www, rr.TypeA, 300, newWeb))}
			return f
		}, 300 * time.Second, "as far as is known"},
		{"an earlier scan began before the change, and ended after it", func() *explain.Facts {
			f := direct()
			f.Answers[1].Evidence, f.Exchanges = []int{0}, []iterate.Exchange{{At: 20 * time.Second, RTT: time.Second}}
			f.Past = []explain.Past{scanned(10*time.Minute, set(www, rr.TypeA, 86400, oldWeb))}
			return f
		}, 86421 * time.Second, ""},
		{"a server rotates its addresses, and gave others before", func() *explain.Facts {
			f := direct()
			f.Answers[0].Others = [][]explain.Set{{set(www, rr.TypeA, 300, oldWeb)}}
			f.Past = []explain.Past{scanned(time.Minute, set(www, rr.TypeA, 300, oldWeb))}
			return f
		}, 0, ""},
		{"the change came between two answers of one server, which never gave others before", func() *explain.Facts {
			f := direct()
			f.Answers[0].Others = [][]explain.Set{{set(www, rr.TypeA, 300, oldWeb)}}
			f.Past = []explain.Past{scanned(time.Minute, set(www, rr.TypeA, 300, oldWeb)),
				scanned(time.Hour, set(www, rr.TypeA, 300, oldWeb))}
			return f
		}, 300 * time.Second, ""},
		{"the first link of the chain is old", func() *explain.Facts {
			f := aliased()
			f.Past = []explain.Past{scanned(time.Minute, set(www, rr.TypeCNAME, 600, "old.example.net."),
				set(edge, rr.TypeA, 60, newWeb))}
			f.Caches = []explain.Cache{cached(60, set(www, rr.TypeCNAME, 500, "old.example.net."),
				set("old.example.net", rr.TypeA, 60, oldWeb))}
			return f
		}, 600 * time.Second, ""},
		{"the DS was another one an hour ago", func() *explain.Facts {
			f := direct()
			p := scanned(time.Hour, set(www, rr.TypeA, 300, newWeb))
			p.DS = &explain.PastDS{TTL: 86400, Keys: []string{"7 13 2 AA"}}
			f.Past = []explain.Past{p}
			f.Secure = []secure.Result{{Zones: []secure.Zone{{Name: name("example.org"),
				DS: []secure.DS{{KeyTag: 8, Algorithm: 13, DigestType: 2, Digest: "bb", TTL: 3600}}}}}}
			return f
		}, 86400 * time.Second, ""},
		{"the DS is gone, and a scan after that saw none", func() *explain.Facts {
			f := direct()
			p, q := scanned(time.Hour, set(www, rr.TypeA, 300, newWeb)), scanned(2*time.Hour, set(www, rr.TypeA, 300, newWeb))
			p.DS, q.DS = &explain.PastDS{}, &explain.PastDS{TTL: 86400, Keys: []string{"7 13 2 AA"}}
			f.Past = []explain.Past{p, q}
			f.Secure = []secure.Result{{Zones: []secure.Zone{{Name: name("example.org"), Cause: secure.NoDS}}}}
			return f
		}, 86400*time.Second - time.Hour, ""},
		{"the DS is new, or the same, or not known", func() *explain.Facts {
			f := direct()
			p, q := scanned(time.Hour, set(www, rr.TypeA, 300, newWeb)), scanned(2*time.Hour, set(www, rr.TypeA, 300, newWeb))
			p.DS, q.DS = &explain.PastDS{TTL: 86400, Keys: []string{"8 13 2 BB"}}, &explain.PastDS{TTL: 86400}
			f.Past = []explain.Past{p, scanned(90*time.Minute, set(www, rr.TypeA, 300, newWeb)), q}
			f.Secure = []secure.Result{{Zones: []secure.Zone{{Name: name("example.org"),
				DS: []secure.DS{{KeyTag: 8, Algorithm: 13, DigestType: 2, Digest: "bb", TTL: 3600}}}}}}
			return f
		}, 0, ""},
		{"the nameservers were others yesterday", func() *explain.Facts {
			f := direct()
			p := scanned(24*time.Hour, set(www, rr.TypeA, 300, newWeb))
			p.NS = []dnsname.Name{name("ns1.old.net")}
			f.Past = []explain.Past{p, scanned(8*24*time.Hour, set(www, rr.TypeA, 300, newWeb))}
			return f
		}, 172800 * time.Second, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := explain.Safe(tt.facts())
			if got := r.At.Sub(now); got < tt.want || got > tt.want+5*time.Second {
				t.Errorf("safe in %v, want %v: %s", got, tt.want, r.Summary)
			}
			if !strings.Contains(r.Summary, tt.says) {
				t.Errorf("%q has no %q", r.Summary, tt.says)
			}
		})
	}
}

// TestRemember checks that of scans with the same result only the first and the last are kept.
func TestRemember(t *testing.T) {
	var past []explain.Past
	for ago, data := range []string{oldWeb, oldWeb, oldWeb, newWeb, newWeb, newWeb, newWeb, oldWeb} {
		past = explain.Remember(past, scanned(time.Duration(100-ago)*time.Minute, set(www, rr.TypeA, 300, data)))
	}
	var got []string
	for _, p := range past {
		got = append(got, fmt.Sprint(now.Sub(p.At).Minutes(), " ", p.Sets[0].Data[0]))
	}
	want := []string{"93 " + oldWeb, "94 " + newWeb, "97 " + newWeb, "98 " + oldWeb, "100 " + oldWeb}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("minutes ago (-want +got):\n%s", diff)
	}
	for i := range 3000 {
		past = explain.Remember(past, scanned(time.Minute, set(www, rr.TypeA, uint32(i), newWeb)))
	}
	if len(past) != 1000 || past[0].Sets[0].TTL != 2999 {
		t.Errorf("%d scans are kept, the last with %+v", len(past), past[0])
	}
}

// TestDivided checks that no time is promised while a server still has the old record.
func TestDivided(t *testing.T) {
	f := direct()
	f.Change = true
	f.Answers[1] = answer("192.0.2.2", 41, oldWeb)
	if r := explain.Safe(f); r.Verdict != safeat.Undetermined {
		t.Errorf("%s: %s", r.Verdict, r.Summary)
	}
}

// TestSamples checks for how long a resolver holds the old record of each link.
func TestSamples(t *testing.T) {
	f := aliased()
	f.Caches = []explain.Cache{cached(40, set(www, rr.TypeCNAME, 500, edge+"."), set(edge, rr.TypeA, 40, oldWeb))}
	f.Past = []explain.Past{scanned(time.Minute, set(www, rr.TypeCNAME, 600, edge+"."), set(edge, rr.TypeA, 60, oldWeb))}
	r := explain.Safe(f)
	if got := r.Resolvers[0].Held.Sub(now); got < 40*time.Second || got > 42*time.Second {
		t.Errorf("the old address is held for %v, want 40 s: %s", got, r.Summary)
	}
	f.Caches = []explain.Cache{cached(700)}
	r = explain.Safe(f)
	if got := r.Resolvers[0]; got.State != safeat.Negative || got.Held.Sub(now) < 700*time.Second {
		t.Errorf("a denial: %+v", got)
	}
	if got := r.Resolvers[0]; got.Held.Sub(got.Likely) != time.Second {
		t.Errorf("held until %v at most, and likely until %v", got.Held, got.Likely)
	}
	f.Caches[0].NoVote = true
	if r = explain.Safe(f); len(r.Resolvers) != 0 {
		t.Errorf("a resolver without a vote was counted: %+v", r.Resolvers)
	}
}

func TestPlanChange(t *testing.T) {
	analyze := func(f *explain.Facts) *explain.Facts {
		f.Kind = explain.Analyze
		return f
	}
	steps := func(p safeat.Plan) (out []string) {
		for _, s := range p.Steps {
			out = append(out, string(s.Do))
		}
		return out
	}
	tests := []struct {
		name  string
		facts func() *explain.Facts
		steps string
		at    time.Duration // time of the change, from now
	}{
		{"a low TTL", func() *explain.Facts { return analyze(direct()) }, "change confirm", 0},
		{"a day", func() *explain.Facts {
			f := analyze(direct())
			f.Outcomes[0].Sets[0].TTL = 86400
			return f
		}, "lower wait change confirm raise", 86400 * time.Second},
		{"an alias is what is changed", func() *explain.Facts {
			return analyze(aliased())
		}, "lower wait change confirm raise", 600 * time.Second},
		{"a name that is not there", func() *explain.Facts {
			f := analyze(direct())
			f.Outcomes[0].Result, f.Outcomes[0].Sets, f.Domain = iterate.NXDomain, nil, name("example.org")
			return f
		}, "lower wait change confirm raise", 900 * time.Second},
		{"a top-level domain that is not there", func() *explain.Facts {
			f := analyze(direct())
			f.Name = name("nosuch")
			f.Outcomes[0].Result, f.Outcomes[0].Sets, f.Outcomes[0].Zone, f.Outcomes[0].End = iterate.NXDomain, nil, name("."),
				f.Name
			return f
		}, "", 0},
		{"a domain that is not delegated", func() *explain.Facts {
			f := analyze(direct())
			f.Outcomes[0].Result, f.Outcomes[0].Sets, f.Outcomes[0].Zone, f.Domain = iterate.NXDomain, nil, name("org"),
				name("example.org")
			return f
		}, "", 0},
		{"other nameservers", func() *explain.Facts {
			f := direct()
			f.PlanNS = []dnsname.Name{name("ns1.new.net")}
			return f
		}, "prepare lower wait change confirm retire raise", 3600 * time.Second},
		{"other nameservers, and a DS", func() *explain.Facts {
			f := direct()
			f.PlanNS = []dnsname.Name{name("ns1.new.net")}
			f.Secure = []secure.Result{{Zones: []secure.Zone{{Name: name("example.org"), DS: []secure.DS{{TTL: 86400}}}}}}
			return f
		}, "prepare lower removeDS wait change confirm retire raise wait addDS", 86400 * time.Second},
		{"only compared", direct, "", 0},
		{"nothing known", func() *explain.Facts { return analyze(&explain.Facts{Name: name(www), At: now}) }, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := explain.PlanChange(tt.facts())
			if ok != (tt.steps != "") {
				t.Fatalf("PlanChange is %v: %+v", ok, p)
			}
			if got := strings.Join(steps(p), " "); got != tt.steps {
				t.Errorf("steps %q, want %q", got, tt.steps)
			}
			if got := p.Change.Sub(now); ok && (got < tt.at || got > tt.at+time.Minute+5*time.Second) {
				t.Errorf("the change is in %v, want %v", got, tt.at)
			}
		})
	}
}
