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
	"github.com/nameplane/nameplane/internal/explain"
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
	cases   = flag.Int("cases", 60, "number of trees with faults")
	healthy = flag.Int("healthy", 40, "number of trees without faults")
	first   = flag.Int("first", 1, "seed of the first tree")
)

// result is what one command finds.
type result struct {
	kind   explain.Kind
	failed []explain.Finding
}

// has reports whether a check failed. A finding that the twin has too, with the same severity, does not count.
func (r result) has(id string, twin result) bool {
	return slices.ContainsFunc(r.failed, func(f explain.Finding) bool {
		return f.ID == id && !slices.ContainsFunc(twin.failed, func(o explain.Finding) bool {
			return o.ID == id && o.Severity == f.Severity
		})
	})
}

// worst returns the worst severity.
func (r result) worst() explain.Severity {
	if len(r.failed) == 0 {
		return explain.Info
	}
	return r.failed[0].Severity
}

// commands builds a tree, and runs scan, analyze and compare on it, and scan on the name too, which is not a zone. It
// returns the failed checks of each.
func commands(t *testing.T, tree *trees.Tree) (results []result, queries map[explain.Kind]int) {
	t.Helper()
	queries = map[explain.Kind]int{}
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		if err := tree.Build(net); err != nil {
			t.Fatal(err)
		}
		g := gatherer(t, net)
		g.Options.Private = tree.Private
		for _, kind := range []explain.Kind{explain.Scan, explain.Analyze, explain.Compare} {
			var f *explain.Facts
			var err error
			switch kind {
			case explain.Scan:
				f, err = g.Scan(t.Context(), tree.Domain)
			case explain.Analyze:
				f, err = g.Analyze(t.Context(), tree.Name, nil)
			case explain.Compare:
				f, err = g.Compare(t.Context(), tree.Name, nil)
			}
			if err != nil {
				t.Fatalf("%s %s: %v", kind, tree.Name, err)
			}
			queries[kind] = f.Queries
			results = append(results, result{kind, failures(f)})
		}
		f, err := g.Scan(t.Context(), tree.Name)
		if err != nil {
			t.Fatalf("scan %s: %v", tree.Name, err)
		}
		results = append(results, result{explain.Scan, failures(f)})
	})
	return results, queries
}

// scan returns the failed checks of all commands.
func scan(t *testing.T, tree *trees.Tree) (failed []explain.Finding, queries map[explain.Kind]int) {
	t.Helper()
	results, queries := commands(t, tree)
	for _, r := range results {
		failed = append(failed, r.failed...)
	}
	return failed, queries
}

// failures returns the failed checks of facts, the worst first.
func failures(f *explain.Facts) []explain.Finding {
	return slices.DeleteFunc(check.Run(f), func(x explain.Finding) bool { return x.Status != explain.Fail })
}

func gatherer(t *testing.T, net *simnet.Net) *gather.Gatherer {
	t.Helper()
	anchor, err := secure.ParseAnchor(simnet.Anchor(dnsname.Root))
	if err != nil {
		t.Fatal(err)
	}
	g := &gather.Gatherer{Exchanger: net, Prober: &probe.Prober{Dial: net.Dial, Listen: net.ListenPacket},
		Anchors: []secure.Anchor{anchor},
		Hints: []iterate.Host{{Name: dnsname.MustParse("a.root-servers.net."),
			Glue: []netip.Addr{netip.MustParseAddr("198.41.0.4")}}},
		Options: gather.Options{Seed: 1, Vantage: "sim", Rate: 100, DKIM: []string{trees.Selector}}}
	for i, a := range []string{"8.8.8.8", "1.1.1.1", "9.9.9.10"} {
		g.Resolvers = append(g.Resolvers, resolvers.Resolver{ID: fmt.Sprintf("r%d", i), Operator: fmt.Sprintf("R%d", i),
			Vote: true, V4: []netip.Addr{netip.MustParseAddr(a)}})
	}
	return g
}

// TestHealthy checks that trees without faults have no failed checks of severity warning or worse.
func TestHealthy(t *testing.T) {
	for seed := range *healthy {
		tree := trees.Healthy(uint64(*first + seed))
		failed, _ := scan(t, tree)
		for _, f := range failed {
			if f.Severity.AtLeast(explain.Warning) {
				t.Errorf("%s (seed %d): %s %s: %s", tree.Name, *first+seed, f.Severity, f.ID, f.Words)
			}
		}
	}
}

// TestEachFault applies every fault alone to five trees. All five must be found, and the same trees without the fault
// must not have the finding.
func TestEachFault(t *testing.T) {
	healthy := map[uint64][]result{} // of trees without faults, by seed
	for _, fault := range trees.Faults {
		t.Run(fault.Name, func(t *testing.T) {
			variants := 0
			for seed := uint64(1); variants < 5; seed++ {
				if seed > 200 {
					t.Fatalf("only %d of 200 trees can have it", variants)
				}
				tree := trees.Healthy(seed)
				if !fault.Apply(tree) {
					continue
				}
				variants++
				compareTwins(t, fault, seed, tree, twinOf(t, fault, seed, healthy))
			}
		})
	}
}

// twinOf returns the findings of the tree without the fault.
func twinOf(t *testing.T, fault trees.Fault, seed uint64, known map[uint64][]result) []result {
	t.Helper()
	if out := known[seed]; out != nil && fault.Twin == nil {
		return out
	}
	tree := trees.Healthy(seed)
	if fault.Twin != nil {
		fault.Twin(tree)
		out, _ := commands(t, tree)
		return out
	}
	known[seed], _ = commands(t, tree)
	return known[seed]
}

// compareTwins compares the findings of a tree with those of the same tree without the fault.
func compareTwins(t *testing.T, fault trees.Fault, seed uint64, tree *trees.Tree, healthy []result) {
	t.Helper()
	got, _ := commands(t, tree)
	for _, id := range fault.Want {
		found := slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool {
			return got[i].has(id, healthy[i]) && (fault.By == "" || got[i].kind == fault.By)
		})
		if !found {
			t.Errorf("seed %d: %s is not found", seed, id)
		}
	}
	if worst := got[0].worst(); fault.Worst != "" && worst != fault.Worst {
		t.Errorf("seed %d: the worst severity of scan %s is %s, want %s: %s", seed, tree.Domain, worst, fault.Worst,
			got[0].failed[0].Words)
	}
	for _, r := range healthy {
		if worst := r.worst(); worst.AtLeast(explain.Warning) {
			t.Errorf("seed %d: without the fault, %s finds: %s %s", seed, r.kind, r.failed[0].ID, r.failed[0].Words)
		}
	}
}

// score counts the results of a check.
type score struct{ wanted, found, wrong int }

// TestCorpus scans trees with known faults. It prints recall and precision of each check, and fails below 98 %.
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
		failed, _ := scan(t, tree)
		found := map[string]bool{}
		for _, f := range failed {
			found[f.ID] = true
		}
		var want, allowed []string
		for _, f := range faults {
			want = append(want, f.Want...)
			allowed = append(allowed, f.Allowed...)
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
			if f.Severity.AtLeast(explain.Warning) && !slices.Contains(want, f.ID) && !slices.Contains(allowed, f.ID) {
				at(f.ID).wrong++
				t.Logf("seed %d (%s): %s %s is found: %s", seed, strings.Join(tree.Faults, "; "), f.Severity, f.ID, f.Words)
			}
		}
	}
	total := score{}
	for _, id := range slices.SortedFunc(maps.Keys(scores), cmp.Compare[string]) {
		s := scores[id]
		total.wanted, total.found, total.wrong = total.wanted+s.wanted, total.found+s.found, total.wrong+s.wrong
		t.Logf("| %s | %d | %d | %d | %s | %s |", id, s.wanted, s.found, s.wrong, percent(s.found, s.wanted),
			percent(s.found, s.found+s.wrong))
		if s.found*100 < 98*s.wanted || s.found*100 < 98*(s.found+s.wrong) {
			t.Errorf("%s is below 98 %%", id)
		}
	}
	t.Logf("| all | %d | %d | %d | %s | %s |", total.wanted, total.found, total.wrong, percent(total.found, total.wanted),
		percent(total.found, total.found+total.wrong))
}

func percent(a, b int) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(a)/float64(b))
}
