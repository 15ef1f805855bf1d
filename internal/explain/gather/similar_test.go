package gather_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/simnet"
)

// similar returns the names that were found, and how many queries that took.
func similar(t *testing.T, net *simnet.Net, f *explain.Facts, name string) (string, int) {
	t.Helper()
	var out []string
	for _, n := range f.Near {
		out = append(out, n.How+" "+n.Name.String())
		for _, i := range n.Evidence {
			if f.Exchanges[i].Question.Name != n.Name {
				t.Errorf("the evidence of %s is %v", n.Name, f.Exchanges[i])
			}
		}
	}
	extra := 0
	own := dnsname.MustParse(name)
	for _, q := range net.History() {
		if a := q.Server.Addr(); a == addr(resolverA) || a == addr(resolverB) {
			t.Errorf("a resolver was asked: %v", q)
		}
		if n := q.Name.String(); !own.IsIn(q.Name) && !strings.HasPrefix(n, "probe-") && !strings.HasPrefix(n, "_") &&
			!strings.HasPrefix(n, "ns") && !strings.HasSuffix(n, "other.test.") {
			extra++
		}
	}
	return strings.Join(out, ", "), extra
}

func TestSimilarName(t *testing.T) {
	const more = `mail.example.test. 300 A 203.0.113.5
		www.shop.example.test. 300 A 203.0.113.6
		portal.example.test.example.test. 300 A 203.0.113.7
		blog.example.test. 300 TXT "no address"
	`
	signed := more + "sign example.test."
	tests := []struct {
		name, script, want string
		most               int // queries
	}{
		{"wwww.example.test", more, "spelling www.example.test.", 1},
		{"ww.example.test", more, "spelling www.example.test.", 1},
		{"wwww.example.test", signed, "spelling www.example.test.", 0}, // the NSEC range shows it
		{"mial.example.test", more, "spelling mail.example.test.", 1},
		{"www.shpo.example.test", more, "spelling www.shop.example.test.", 1},
		{"ns3.example.test", more, "", 3}, // ns1 and ns2 are different hosts
		{"nss1.example.test", more, "spelling ns1.example.test.", 0},
		{"portal.example.test", more, "doubled portal.example.test.example.test.", 2},
		{"bolg.example.test", more, "", 3},     // the similar name has no address either
		{"whatever.example.test", more, "", 2}, // similar to nothing
		{"www.example.test", more, "", 0},      // exists
		{"lost.example.test", more, "", 0},     // an alias of a name that does not exist
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run(t, map[string]string{"192.0.2.21": tt.script, "192.0.2.22": tt.script},
				func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
					f := analyze(t, g, tt.name)
					got, extra := similar(t, net, f, tt.name)
					if got != tt.want {
						t.Errorf("similar names are %q, want %q", got, tt.want)
					}
					if extra > tt.most || len(net.History()) > 120 {
						t.Errorf("%d queries for other names, want %d", extra, tt.most)
					}
				})
		})
	}
}

// TestNoSimilar checks that a scan of a domain, or a caller that waits for a name, gets no similar names.
func TestNoSimilar(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		f, err := g.Scan(t.Context(), "wwww.example.test")
		if got, extra := similar(t, net, must(t, f, err), "wwww.example.test"); got != "" || extra > 0 {
			t.Errorf("similar names are %q, after %d queries", got, extra)
		}
	})
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Options.NoSimilar = true
		if got, extra := similar(t, net, analyze(t, g, "wwww.example.test"), "wwww.example.test"); got != "" || extra > 0 {
			t.Errorf("similar names are %q, after %d queries", got, extra)
		}
	})
}

func TestSimilarDomain(t *testing.T) {
	const root = "net. 60 NS ns1.nic.net.\nns1.nic.net. 60 A 192.0.2.41"
	tests := []struct{ name, want string }{
		{"exammple.test", "spelling example.test."},
		{"wwwexample.test", "spelling example.test."},
		{"examp1e.test", "spelling example.test."},
		{"exmaple.test", "spelling example.test."},
		{"example.nte", "spelling example.net."},
		{"other.nte", ""},
		{"unbelievable.test", ""}, // has many neighbours
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			more := map[string]string{"192.0.2.1": root, "192.0.2.2": root,
				"192.0.2.41": "zone net.\nnet. 60 NS ns1.nic.net.\nexample.net. 60 NS ns1.example.test."}
			run(t, more, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
				asked := &counting{}
				g.Registry = asked
				f, err := g.Scan(t.Context(), tt.name)
				f = must(t, f, err)
				got, extra := similar(t, net, f, tt.name)
				if got != tt.want {
					t.Errorf("similar names are %q, want %q", got, tt.want)
				}
				if extra > 3 || asked.n != 1 {
					t.Errorf("%d queries for other names, %d to registries", extra, asked.n)
				}
				if x := finding(f, "REG01"); x.Status != explain.Fail ||
					got != "" && !strings.Contains(x.Words, "The similar name ") {
					t.Errorf("%s: %s", x.Status, x.Words)
				}
			})
		})
	}
}

// counting is a registry in which every domain is free. It counts the lookups.
type counting struct{ n int }

func (c *counting) Lookup(_ context.Context, domain dnsname.Name) (registry.Registration, error) {
	c.n++
	return registry.Registration{Domain: domain.String(), State: registry.Free}, nil
}
