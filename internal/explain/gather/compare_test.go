package gather_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/simnet"
)

func compare(t *testing.T, g *gather.Gatherer, name string, types ...rr.Type) *explain.Facts {
	t.Helper()
	f, err := g.Compare(t.Context(), name, types)
	return must(t, f, err)
}

// states returns the distinct states of the samples of a cache, with their remaining TTLs.
func states(c explain.Assessment) string {
	var out []string
	for _, s := range c.Answers {
		line := fmt.Sprintf("%s %d", s.State, s.Left)
		if len(out) == 0 || out[len(out)-1] != line {
			out = append(out, line)
		}
	}
	return strings.Join(out, ", ")
}

func asked(net *simnet.Net, server string) (n int) {
	for _, q := range net.History() {
		if q.Server.Addr() == addr(server) {
			n++
		}
	}
	return n
}

func TestStates(t *testing.T) {
	tests := []struct{ script, name, want string }{
		{"", "www.example.test", "current 300"},
		{"snoop refuse", "www.example.test", "current 300"},
		{"hold www.example.test. 200 A 203.0.113.8", "www.example.test", "old 200"},
		// This answer is from before the second address was added.
		{"hold www.example.test. 200 A 203.0.113.2", "www.example.test", "old 200"},
		{"snoop refuse\nhold www.example.test. 200 A 203.0.113.8", "www.example.test", "old 200"},
		{"deny www.example.test. 100 * example.test. 7", "www.example.test", "negative 100"},
		{"deny www.example.test. 100 A example.test. 7", "www.example.test", "negative 100"},
		{"hold alias.example.test. 200 CNAME old.other.test.\nhold old.other.test. 50 A 203.0.113.8", "alias.example.test",
			"old 200"},
		// The alias is cached, its target is not.
		{"hold alias.example.test. 600 CNAME www.example.test.", "alias.example.test", "old 600"},
		{"hold www.other.test. 50 A 203.0.113.8", "alias.example.test", "old 50"},
		{"", "alias.example.test", "current 120"},
		{"filter example.test. nxdomain 15", "www.example.test", "filtered 0"},
		{"filter example.test. nxdomain 16", "www.example.test", "filtered 0"},
		{"filter example.test. 0.0.0.0", "www.example.test", "filtered 60"},
		{"hold www.example.test. 50 A 0.0.0.0", "www.example.test", "filtered 50"},
		{"filter example.test. 198.51.100.99 17", "www.example.test", "filtered 60"},
		{"filter example.test. refused 15", "www.example.test", "filtered 0"},
		{"fault refused *", "www.example.test", "silent 0"},
		{"fault servfail *", "www.example.test", "failed 0"},
		{"fault timeout *", "www.example.test", "silent 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.script, func(t *testing.T) {
			run(t, map[string]string{resolverA: tt.script}, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				f := compare(t, g, tt.name, rr.TypeA)
				if got := states(explain.Assess(f)[0]); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if got := states(explain.Assess(f)[1]); !strings.HasPrefix(got, "current ") || strings.Contains(got, ",") {
					t.Errorf("the other resolver: %s", got)
				}
				for _, at := range []string{resolverA, resolverB} {
					if n := asked(net, at); n > 8 {
						t.Errorf("%s was sent %d queries", at, n)
					}
				}
				for _, s := range f.Caches[0].Samples {
					for _, id := range s.Evidence {
						if e := f.Exchanges[id]; e.Server != addr(resolverA) || e.Question != s.Question {
							t.Errorf("the evidence of %+v is %v", s, e)
						}
					}
				}
			})
		})
	}
}

func TestFilteringResolver(t *testing.T) {
	more := map[string]string{resolverA: "filter www.example.test. nxdomain",
		resolverB: "deny www.example.test. 100 * example.test. 7"}
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Resolvers[0].Filter, g.Resolvers[1].Filter = true, true
		f := compare(t, g, "www.example.test", rr.TypeA)
		// One resolver has the negative answer of the zone itself, which is not a filter's.
		if got, want := states(explain.Assess(f)[0])+"; "+states(explain.Assess(f)[1]),
			"filtered 0; negative 100"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestFilterIsLate has a resolver that filters, or whose answers may be altered in transit. Its answer is one that
// other resolvers have, too: it is old, and not filtered.
func TestFilterIsLate(t *testing.T) {
	const old = "hold www.example.test. 200 A 203.0.113.8"
	for held, want := range map[string]string{old: "old 200; old 200", "": "filtered 200; current 300"} {
		for _, altered := range []bool{false, true} {
			run(t, map[string]string{resolverA: old, resolverB: held}, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				g.Resolvers[0].Filter, g.Resolvers[0].Vote = !altered, !altered
				f := compare(t, g, "www.example.test", rr.TypeA)
				if got := states(explain.Assess(f)[0]) + "; " + states(explain.Assess(f)[1]); got != want {
					t.Errorf("altered %v: %s, want %s", altered, got, want)
				}
			})
		}
	}
}

func TestBogusWithoutCheck(t *testing.T) {
	run(t, map[string]string{resolverA: "bogus example.test. 6"}, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		c := explain.Assess(compare(t, g, "www.example.test", rr.TypeA))[0]
		if len(c.Samples) != 2 || c.Answers[0].State != safeat.Failed || c.Answers[0].NoCheck ||
			c.Answers[0].Errors[0].Code != 6 ||
			c.Answers[1].State != safeat.Current || !c.Answers[1].NoCheck {
			t.Errorf("samples are %+v", c.Samples)
		}
	})
}

func TestServedStale(t *testing.T) {
	more := map[string]string{resolverA: "stale\nhold www.example.test. 1 A 203.0.113.1, 203.0.113.2"}
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		time.Sleep(2 * time.Second)
		// The authority replies to us, but not to the resolver.
		net.MustServer(resolverA, "resolve 192.0.2.250")
		c := explain.Assess(compare(t, g, "www.example.test", rr.TypeA))[0]
		if len(c.Samples) == 0 || c.Answers[0].State != safeat.Stale {
			t.Errorf("samples are %+v", c.Samples)
		}
	})
}

func TestManyCaches(t *testing.T) {
	more := map[string]string{resolverA: "nsid here\ncaches 3\nhold www.example.test. 200 A 203.0.113.8"}
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		c := explain.Assess(compare(t, g, "www.example.test", rr.TypeA))[0]
		seen, ids := map[safeat.State]int{}, map[string]bool{}
		for _, s := range c.Answers {
			seen[s.State]++
			ids[s.NSID] = true
		}
		if seen[safeat.Old] == 0 || seen[safeat.Current] == 0 || len(ids) < 2 || asked(net, resolverA) > 8 {
			t.Errorf("%d queries found %v in %v", asked(net, resolverA), seen, ids)
		}
	})
}

// TestNoHarm checks that a comparison never makes resolvers cache negative answers: it creates the name afterwards,
// and resolves it.
func TestNoHarm(t *testing.T) {
	tests := []struct{ name, script, make, why string }{
		{"soon.example.test", "", "soon.example.test.", "soon.example.test. does not exist"},
		{"lost.example.test", "", "lost.other.test.", "lost.other.test. does not exist"},
		{"example.test", "", "example.test.", "there is no record set example.test. A"},
		{"www.absent.test", "", "", "www.absent.test. does not exist"},
		{"www.example.test", "drop www.example.test.", "www.example.test.",
			"the server 192.0.2.22 denies that www.example.test. A exists"},
		{"www.example.test", "fault nodata www.example.test. A", "www.example.test.", "the server 192.0.2.22 denies"},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.script, func(t *testing.T) {
			run(t, map[string]string{"192.0.2.22": tt.script}, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				f := compare(t, g, tt.name, rr.TypeA)
				for _, c := range f.Caches {
					if !strings.HasPrefix(c.NotAsked, tt.why) || len(c.Samples) > 0 {
						t.Errorf("%s: not asked because %q, want %q; samples %+v", c.Operator, c.NotAsked, tt.why, c.Samples)
					}
				}
				if n := asked(net, resolverA) + asked(net, resolverB); n > 0 {
					t.Errorf("resolvers were sent %d queries", n)
				}
				if tt.make == "" {
					return
				}
				where := []string{"192.0.2.21", "192.0.2.22"}
				if strings.HasSuffix(tt.make, ".other.test.") {
					where = []string{"192.0.2.31"}
				}
				for _, at := range where {
					net.MustServer(at, "heal\nset "+tt.make+" 60 A 203.0.113.50")
				}
				if got := lookupHost(t, net, tt.name); !strings.Contains(got, "203.0.113.50") {
					t.Errorf("a resolver answers %s, although it is there now", got)
				}
			})
		})
	}
}

// TestAwait checks that resolvers do not cache the previous record while the caller waits for a new one.
func TestAwait(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Options.Await = true
		g.Options.Expect = []explain.Set{{Type: rr.TypeA, Data: []string{"203.0.113.50"}}}
		c := explain.Assess(compare(t, g, "www.example.test", rr.TypeA))[0]
		if want := "A is not 203.0.113.50; a resolver that is asked now would cache the present answer"; c.NotAsked != want ||
			asked(net, resolverA) > 0 {
			t.Errorf("not asked because %q, want %q; %d queries", c.NotAsked, want, asked(net, resolverA))
		}
		for _, at := range []string{"192.0.2.21", "192.0.2.22"} {
			net.MustServer(at, "set www.example.test. 60 A 203.0.113.50")
		}
		if c := explain.Assess(compare(t, g, "www.example.test", rr.TypeA))[0]; c.NotAsked != "" || len(c.Samples) == 0 ||
			c.Answers[0].State != safeat.Current {
			t.Errorf("when it is there: not asked because %q; samples %+v", c.NotAsked, c.Samples)
		}
	})
}

// lookupHost returns the answer of a resolver.
func lookupHost(t *testing.T, net *simnet.Net, name string) string {
	t.Helper()
	e := iterate.Ask(t.Context(), net, time.Now(),
		iterate.Query{Server: resolve.Server{Addr: netip.AddrPortFrom(addr(resolverA), 53)},
			Question: question(name + ". A"), RD: true})
	v, err := e.View()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(v.Rcode, v.Answer)
}

func question(s string) (q iterate.Question) {
	if err := q.UnmarshalText([]byte(s)); err != nil {
		panic(err)
	}
	return q
}

func TestUnknownAuthority(t *testing.T) {
	more := map[string]string{"192.0.2.21": "fault timeout *", "192.0.2.22": "fault refused *"}
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		f := compare(t, g, "www.example.test", rr.TypeA)
		if c := f.Caches[0]; !strings.HasPrefix(c.NotAsked, "no authoritative server of www.example.test. A replied") ||
			asked(net, resolverA) > 0 {
			t.Errorf("not asked because %q; %d queries", c.NotAsked, asked(net, resolverA))
		}
	})
}

func TestForce(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Options.Force = true
		c := explain.Assess(compare(t, g, "soon.example.test", rr.TypeA))[0]
		if len(c.Samples) == 0 || c.NotAsked != "" {
			t.Errorf("%+v", c)
		}
	})
}

func TestOnlyExistingTypes(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		f := compare(t, g, "only4.example.test")
		for _, c := range explain.Assess(f) {
			for _, s := range c.Answers {
				if s.Question.Type != rr.TypeA || s.State != safeat.Current {
					t.Errorf("%s: %+v", c.Operator, s)
				}
			}
		}
		for _, q := range net.History() {
			if q.Type == rr.TypeAAAA && q.Server.Addr() == addr(resolverA) {
				t.Errorf("sent %v", q)
			}
		}
	})
}

// TestGeoDNS checks that answers that depend on the location of the client are not called old.
func TestGeoDNS(t *testing.T) {
	t.Run("scope", func(t *testing.T) {
		const view = "subnets\nview 198.51.100.1/32 www.example.test. 300 A 203.0.113.77"
		run(t, map[string]string{"192.0.2.21": view, "192.0.2.22": view},
			func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				g.Options.ECS = netip.MustParsePrefix("198.51.100.1/32")
				if got := states(explain.Assess(compare(t, g, "www.example.test", rr.TypeA))[0]); got != "current 300" {
					t.Errorf("%s, want current", got)
				}
			})
	})
	t.Run("network of the resolver", func(t *testing.T) {
		const view = "subnets\nview 198.51.100.0/24 www.example.test. 300 A 203.0.113.77"
		more := map[string]string{"192.0.2.21": view, "192.0.2.22": view, resolverB: "snoop refuse",
			resolverA: "snoop refuse\nhold www.example.test. 200 A 203.0.113.77"}
		run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			if got := states(explain.Assess(compare(t, g, "www.example.test", rr.TypeA))[0]); got != "current 200" {
				t.Errorf("%s, want current", got)
			}
		})
	})
	t.Run("many versions", func(t *testing.T) {
		more := map[string]string{}
		var all []string
		for i := range 3 {
			at := fmt.Sprintf("198.51.100.%d", 11+i)
			all = append(all, at)
			more[at] = fmt.Sprintf("%s\nhold www.example.test. 200 A 203.0.113.%d", resolving, 90+i)
		}
		run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			for n, want := range map[int]string{2: "old 200", 3: "current 200"} {
				g.Resolvers = list()[:1]
				for _, at := range all[:n] {
					r := list()[0]
					r.ID, r.V4 = at, []netip.Addr{addr(at)}
					g.Resolvers = append(g.Resolvers, r)
				}
				if got := states(explain.Assess(compare(t, g, "www.example.test", rr.TypeA))[1]); got != want {
					t.Errorf("with %d versions: %s, want %s", n, got, want)
				}
			}
		})
	})
	t.Run("turns", func(t *testing.T) {
		more := map[string]string{
			"192.0.2.21": "latency 200ms\nset www.example.test. 30 A 203.0.113.1\nat 1500ms set www.example.test. 30 A " +
				"203.0.113.2",
			"192.0.2.22": "latency 200ms\nset www.example.test. 30 A 203.0.113.2\nat 1500ms set www.example.test. 30 A " +
				"203.0.113.1",
			resolverA: "hold www.example.test. 20 A 203.0.113.3",
			resolverB: "hold www.example.test. 20 A 203.0.113.4",
		}
		run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			g.Options.Past = []explain.Past{{Sets: []explain.Set{{Name: name("www.example.test."), Type: rr.TypeA,
				Data: []string{"203.0.113.4"}}}}}
			f := compare(t, g, "www.example.test", rr.TypeA)
			if explain.Assess(f)[0].Answers[0].State != safeat.Current || explain.Assess(f)[1].Answers[0].State != safeat.Old {
				t.Errorf("%s; %s, want current; old, as an earlier scan saw it", states(explain.Assess(f)[0]),
					states(explain.Assess(f)[1]))
			}
		})
	})
}

func TestLocal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("# made\nsearch example.test\nnameserver "+resolverB+"\nnameserver nonsense\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Options.Local, g.Resolvers = file, list()[:1]
		f := compare(t, g, "www.example.test", rr.TypeA)
		if len(f.Caches) != 2 || !f.Caches[0].Local || f.Caches[0].Addr != addr(resolverB) ||
			states(explain.Assess(f)[0]) != "current 300" || f.Caches[1].Local {
			t.Errorf("%+v", f.Caches)
		}
		g.Options.Local = file + ".absent"
		if _, err := g.Compare(t.Context(), "www.example.test", nil); err == nil ||
			!strings.Contains(err.Error(), "read the resolvers of this machine") {
			t.Errorf("without the file: %v", err)
		}
	})
}

func TestIntercepted(t *testing.T) {
	for fact, script := range map[explain.Fact]string{explain.Yes: resolving, explain.No: "fault timeout *"} {
		for _, kind := range []explain.Kind{explain.Scan, explain.Analyze, explain.Compare} {
			run(t, map[string]string{"192.0.2.99": script}, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				g.Options.Unused = addr("192.0.2.99")
				f := scan(t, g, kind)
				if p := f.Vantage.Intercepted; p.Fact != fact || len(p.Evidence) != 1 ||
					f.Exchanges[p.Evidence[0]].Server != addr("192.0.2.99") {
					t.Errorf("%s: %+v, want %s", kind, p, fact)
				}
				// A comparison makes resolvers send queries of their own.
				if n := len(net.History()); n != f.Queries && kind != explain.Compare {
					t.Errorf("%d queries, the facts say %d", n, f.Queries)
				}
			})
		}
	}
}

func TestFamilies(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Options.IPv6Only = true
		f := compare(t, g, "www.example.test")
		if len(net.History()) > 0 || len(f.Caches) > 0 || f.Vantage.IPv4 != explain.Unasked {
			t.Errorf("sent %v; %+v", net.History(), f.Vantage)
		}
	})
}
