package explain_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/dnsname"
	looks "github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
	trees "github.com/nameplane/nameplane/test/explain"
)

var (
	cases   = flag.Int("cases", 60, "trees with faults to look at")
	healthy = flag.Int("healthy", 40, "trees without faults to look at")
	first   = flag.Int("first", 1, "the seed of the first tree")
)

// look makes a tree, and looks at it in all three ways.
func look(t *testing.T, tree *trees.Tree) (failed []looks.Finding, queries map[looks.Kind]int) {
	t.Helper()
	queries = map[looks.Kind]int{}
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		if err := tree.Build(net); err != nil {
			t.Fatal(err)
		}
		g := gatherer(t, net)
		for _, kind := range []looks.Kind{looks.Scan, looks.Analyze, looks.Compare} {
			var f *looks.Facts
			var err error
			switch kind {
			case looks.Scan:
				f, err = g.Scan(t.Context(), tree.Domain)
			case looks.Analyze:
				f, err = g.Analyze(t.Context(), tree.Name, nil)
			case looks.Compare:
				f, err = g.Compare(t.Context(), tree.Name, nil)
			}
			if err != nil {
				t.Fatalf("%s %s: %v", kind, tree.Name, err)
			}
			queries[kind] = f.Queries
			for _, x := range check.Run(f) {
				if x.Status == looks.Fail {
					failed = append(failed, x)
				}
			}
		}
	})
	return failed, queries
}

func gatherer(t *testing.T, net *simnet.Net) *gather.Gatherer {
	t.Helper()
	anchor, err := secure.ParseAnchor(simnet.Anchor(dnsname.Root))
	if err != nil {
		t.Fatal(err)
	}
	g := &gather.Gatherer{Exchanger: net, Prober: &probe.Prober{Dial: net.Dial, Listen: net.ListenPacket}, Anchors: []secure.Anchor{anchor},
		Hints:   []iterate.Host{{Name: dnsname.MustParse("a.root-servers.net."), Glue: []netip.Addr{netip.MustParseAddr("198.41.0.4")}}},
		Options: gather.Options{Seed: 1, Vantage: "sim", Rate: 100}}
	for i, a := range []string{"8.8.8.8", "1.1.1.1", "9.9.9.10"} {
		g.Resolvers = append(g.Resolvers, resolvers.Resolver{ID: fmt.Sprintf("r%d", i), Operator: fmt.Sprintf("R%d", i), Vote: true, V4: []netip.Addr{netip.MustParseAddr(a)}})
	}
	return g
}

// TestHealthy looks at trees with nothing wrong, and finds no error.
func TestHealthy(t *testing.T) {
	for seed := range *healthy {
		tree := trees.Healthy(uint64(*first + seed))
		failed, _ := look(t, tree)
		for _, f := range failed {
			if f.Severity.AtLeast(looks.Warning) {
				t.Errorf("%s (seed %d): %s %s: %s", tree.Name, *first+seed, f.Severity, f.ID, f.Words)
			}
		}
	}
}

// score counts how a check did.
type score struct{ wanted, found, wrong int }

// TestCorpus looks at trees with faults that are known. It prints what became of each check, and fails below 98 in a hundred.
func TestCorpus(t *testing.T) {
	scores := map[string]*score{}
	at := func(id string) *score {
		if scores[id] == nil {
			scores[id] = &score{}
		}
		return scores[id]
	}
	for i := range *cases {
		seed := uint64(*first + i)
		tree, faults := trees.Break(seed)
		failed, _ := look(t, tree)
		found := map[string]bool{}
		for _, f := range failed {
			found[f.ID] = true
		}
		var want, may []string
		for _, f := range faults {
			want = append(want, f.Want...)
			may = append(may, f.May...)
		}
		slices.Sort(want)
		for _, id := range slices.Compact(want) {
			at(id).wanted++
			if found[id] {
				at(id).found++
			} else {
				t.Logf("seed %d (%s): %s is not found", seed, strings.Join(tree.Faults, "; "), id)
			}
		}
		for _, f := range failed {
			if f.Severity.AtLeast(looks.Warning) && !slices.Contains(want, f.ID) && !slices.Contains(may, f.ID) {
				at(f.ID).wrong++
				t.Logf("seed %d (%s): %s %s is found: %s", seed, strings.Join(tree.Faults, "; "), f.Severity, f.ID, f.Words)
			}
		}
	}
	total := score{}
	for _, id := range slices.SortedFunc(maps.Keys(scores), cmp.Compare[string]) {
		s := scores[id]
		total.wanted, total.found, total.wrong = total.wanted+s.wanted, total.found+s.found, total.wrong+s.wrong
		t.Logf("| %s | %d | %d | %d | %s | %s |", id, s.wanted, s.found, s.wrong, percent(s.found, s.wanted), percent(s.found, s.found+s.wrong))
		if s.found*100 < 98*s.wanted || s.found*100 < 98*(s.found+s.wrong) {
			t.Errorf("%s is below 98 %%", id)
		}
	}
	t.Logf("| all | %d | %d | %d | %s | %s |", total.wanted, total.found, total.wrong, percent(total.found, total.wanted), percent(total.found, total.found+total.wrong))
}

func percent(a, b int) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(a)/float64(b))
}
