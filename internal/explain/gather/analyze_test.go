package gather_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/simnet"
)

func analyze(t *testing.T, g *gather.Gatherer, name string, types ...rr.Type) *explain.Facts {
	t.Helper()
	f, err := g.Analyze(t.Context(), name, types)
	return must(t, f, err)
}

func TestAnalyze(t *testing.T) {
	tests := []struct{ name, want string }{
		{"www.example.test", "A answer at www.example.test. in example.test. A 203.0.113.1,203.0.113.2; " +
			"AAAA answer at www.example.test. in example.test. AAAA 2001:db8::1"},
		{"alias.example.test",
			"A answer at www.other.test. in other.test. A 203.0.113.3; AAAA answer at www.other.test. in other.test. AAAA " +
				"2001:db8::3"},
		{"lost.example.test",
			"A nxdomain at lost.other.test. in other.test.; AAAA nxdomain at lost.other.test. in other.test."},
		{"only4.example.test",
			"A answer at only4.example.test. in example.test. A 203.0.113.4; AAAA nodata at only4.example.test. in " +
				"example.test."},
		{"absent.example.test",
			"A nxdomain at absent.example.test. in example.test.; AAAA nxdomain at absent.example.test. in example.test."},
		{"example.test", "A nodata at example.test. in example.test.; AAAA nodata at example.test. in example.test."},
		{"x.absent.test", "A nxdomain at x.absent.test. in test.; AAAA nxdomain at x.absent.test. in test."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				f := analyze(t, g, tt.name)
				if got := outcomes(f); got != tt.want {
					t.Errorf("outcomes are %s, want %s", got, tt.want)
				}
				if n := len(net.History()); n > 120 || n != f.Queries || len(f.Unfinished) > 0 {
					t.Errorf("%d queries, the facts say %d, unfinished %v", n, f.Queries, f.Unfinished)
				}
				if f.Outcomes[0].Plain != f.Outcomes[0].Result {
					t.Errorf("the whole name leads to %s", f.Outcomes[0].Plain)
				}
				for _, a := range f.Answers {
					if len(a.Evidence) == 0 || f.Exchanges[a.Evidence[0]].Server != a.Server ||
						f.Exchanges[a.Evidence[0]].Question != a.Question {
						t.Errorf("the evidence of %+v is something else", a)
					}
				}
			})
		})
	}
}

func TestChain(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Registry = registrar{"other.test.": registry.Free}
		f := analyze(t, g, "lost.example.test")
		want := "[{{lost.example.test. lost.other.test. CNAME 600 example.test.} 2 2 other.test.}]"
		if got := fmt.Sprint(f.Chain); got != want {
			t.Errorf("the chain is %s, want %s", got, want)
		}
		if len(f.Registrations) != 1 || f.Registrations[0].State != registry.Free {
			t.Errorf("registrations are %+v", f.Registrations)
		}
		if got, want := said(f, "lost.example.test. MX"), "22 answer CNAME lost.other.test."; got != want {
			t.Errorf("beside the alias there is %s, want %s", got, want)
		}
	})
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Registry = registrar{}
		if f := analyze(t, g, "alias.example.test"); len(f.Registrations) != 0 {
			t.Errorf("registries were asked about a target that works: %+v", f.Registrations)
		}
	})
}

func TestDifferences(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"none", "", "21 answer A 203.0.113.1,203.0.113.2; 22 answer A 203.0.113.1,203.0.113.2"},
		{"old", "set www.example.test. 300 A 203.0.113.8", "21 answer A 203.0.113.1,203.0.113.2; 22 answer A 203.0.113.8"},
		{"order", "rotate", "21 answer A 203.0.113.1,203.0.113.2; 22 answer A 203.0.113.1,203.0.113.2"},
		{"denied", "drop www.example.test.", "21 answer A 203.0.113.1,203.0.113.2; 22 nxdomain"},
		{"lame", "fault refused *", "21 answer A 203.0.113.1,203.0.113.2; 22 lame-refused"},
		{"silent", "fault timeout www.example.test.", "21 answer A 203.0.113.1,203.0.113.2; 22 timeout"},
		{"cut off", "fault truncate www.example.test.",
			"21 answer A 203.0.113.1,203.0.113.2; 22 answer A 203.0.113.1,203.0.113.2"},
		{"without EDNS", "edns formerr", "21 answer A 203.0.113.1,203.0.113.2; 22 answer A 203.0.113.1,203.0.113.2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t, map[string]string{"192.0.2.22": tt.script}, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				f := analyze(t, g, "www.example.test")
				if got := said(f, "www.example.test. A"); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if n := len(net.History()); n > 120 {
					t.Errorf("%d queries", n)
				}
			})
		})
	}
}

// TestDefaultTypes checks that names of services and reverse zones are not asked for addresses.
func TestDefaultTypes(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		for name, want := range map[string]string{
			"www.example.test":               "[A AAAA]",
			"_dmarc.example.test":            "[TXT]",
			"_acme-challenge.x.example.test": "[TXT]",
			"_sip._tcp.example.test":         "[SRV]",
			"_443._tcp.example.test":         "[TLSA]",
			"x._domainkey.example.test":      "[TXT]",
			"1.2.0.192.in-addr.arpa":         "[PTR]",
			"8.b.d.0.1.0.0.2.ip6.arpa":       "[PTR]",
		} {
			if got := fmt.Sprint(analyze(t, g, name).Types); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		if got := fmt.Sprint(analyze(t, g, "_dmarc.example.test", rr.TypeA).Types); got != "[A]" {
			t.Errorf("%s, although A was asked for", got)
		}
	})
}

// TestAliasItself asks for an alias and for the records of its target at the same time.
func TestAliasItself(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		for _, types := range [][]rr.Type{{rr.TypeA, rr.TypeCNAME}, {rr.TypeCNAME, rr.TypeA}} {
			f := analyze(t, g, "alias.example.test", types...)
			var got []string
			for _, o := range f.Outcomes {
				got = append(got, fmt.Sprint(o.Type, " ", o.Result, " ", o.End, " ", o.Sets[0].Data))
			}
			const want = "[A answer www.other.test. [203.0.113.3] CNAME answer alias.example.test. [www.other.test.]]"
			if fmt.Sprint(got) != want {
				t.Errorf("%v, want %s", got, want)
			}
		}
	})
}

// TestLetterCase has servers that write the names in their records in different case, as servers that compress names
// do.
func TestLetterCase(t *testing.T) {
	more := map[string]string{"192.0.2.21": "set www.example.test. 300 MX 10 mail.eXaMpLe.TeSt.",
		"192.0.2.22": "set www.example.test. 300 MX 10 mail.example.test.",
		resolverA:    "hold www.example.test. 200 MX 10 Mail.example.test."}
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		f := compare(t, g, "www.example.test", rr.TypeMX)
		const want = "21 answer MX 10 mail.example.test.; 22 answer MX 10 mail.example.test."
		if got := said(f, "www.example.test. MX"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := states(explain.Assess(f)[0]); got != "current 200" {
			t.Errorf("%s, want current", got)
		}
	})
}

func TestRotatedAnswers(t *testing.T) {
	// Each server has one of two addresses at a time. Asked again, each gives the answer of the other.
	more := map[string]string{
		"192.0.2.21": "latency 200ms\nset www.example.test. 30 A 203.0.113.1\nat 1500ms set www.example.test. 30 A " +
			"203.0.113.2",
		"192.0.2.22": "latency 200ms\nset www.example.test. 30 A 203.0.113.2\nat 1500ms set www.example.test. 30 A " +
			"203.0.113.1",
	}
	run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		f := analyze(t, g, "www.example.test", rr.TypeA)
		want := "21 answer A 203.0.113.1 or A 203.0.113.2; 22 answer A 203.0.113.2 or A 203.0.113.1"
		if got := said(f, "www.example.test. A"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestSubnet(t *testing.T) {
	const view = "subnets\nview 198.51.100.0/24 www.example.test. 300 A 203.0.113.77"
	run(t, map[string]string{"192.0.2.21": view, "192.0.2.22": view},
		func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			g.Options.ECS = netip.MustParsePrefix("198.51.100.0/24")
			f := analyze(t, g, "www.example.test", rr.TypeA)
			got := ""
			for _, a := range f.Answers {
				if a.Subnet.IsValid() {
					got += fmt.Sprintf("%s%s; ", a.Subnet, setText(a.Sets))
				}
			}
			if want := "198.51.100.0/24 A 203.0.113.77; 198.51.100.0/24 A 203.0.113.77; "; got != want {
				t.Errorf("for the subnet: %s, want %s", got, want)
			}
			if got, want := setText(f.Outcomes[0].Sets), " A 203.0.113.1,203.0.113.2"; got != want {
				t.Errorf("the outcome is%s, want%s", got, want)
			}
		})
}

func TestWildcard(t *testing.T) {
	tests := []struct {
		name  string
		class iterate.Class
		same  bool
	}{{"www.example.test", iterate.NXDomain, false}, {"any.wild.example.test", iterate.Answer, true},
		{"own.wild.example.test", iterate.Answer, false}}
	const own = "own.wild.example.test. 300 A 203.0.113.10"
	run(t, map[string]string{"192.0.2.21": own, "192.0.2.22": own},
		func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			for _, tt := range tests {
				f := analyze(t, g, tt.name)
				if w := f.Wildcard; w == nil || w.Class != tt.class || w.Same != tt.same {
					t.Errorf("%s: the wildcard is %+v, want %s, %v", tt.name, w, tt.class, tt.same)
				}
			}
		})
}

func TestFullName(t *testing.T) {
	// Servers of the parent fail only for queries with the full name.
	wrong := map[string]string{"192.0.2.11": "fault empty www.example.test."}
	for _, want := range []iterate.Class{iterate.Answer, iterate.LameNotAuth} {
		run(t, wrong, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			if o := analyze(t, g, "www.example.test", rr.TypeA).Outcomes[0]; o.Result != iterate.Answer || o.Plain != want {
				t.Errorf("minimised it is %s, else %s, want %s", o.Result, o.Plain, want)
			}
		})
		wrong["192.0.2.12"] = wrong["192.0.2.11"]
	}
}

func TestEmptyNonTerminal(t *testing.T) {
	const deep = "a.b.example.test. 300 A 203.0.113.5\nhollow"
	run(t, map[string]string{"192.0.2.21": deep, "192.0.2.22": deep},
		func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			f := analyze(t, g, "a.b.example.test", rr.TypeA)
			if f.Outcomes[0].Result != iterate.Answer || len(f.Notes) != 2 || f.Notes[0].Kind != iterate.NoteENT {
				t.Errorf("%s, notes %v", outcomes(f), f.Notes)
			}
		})
}
