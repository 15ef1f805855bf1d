package match_test

import (
	"fmt"
	"testing"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/match"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// many returns a tree of 100,000 patterns under 1,000 domains of one top-level domain, half of them wildcards.
func many() *match.Tree[int] {
	tree := &match.Tree[int]{}
	for i := range 50_000 {
		tree.Add(must.Pattern(fmt.Sprintf("host%d.domain%d.example", i, i%1000)), i)
		tree.Add(must.Pattern(fmt.Sprintf("*.zone%d.domain%d.example", i, i%1000)), i)
	}
	return tree
}

var questions = []struct{ name, question string }{
	{"elsewhere", "www.nowhere.test."},
	{"sibling", "Other.domain7.example."},
	{"deeper", "x.y.host7.domain7.example."},
	{"service", "kubernetes.default.svc.cluster.local."},
}

func TestNoAllocations(t *testing.T) {
	tree := many()
	var buf [4]int
	for _, q := range questions {
		if n := testing.AllocsPerRun(100, func() {
			if got := tree.Append(buf[:0], q.question); len(got) != 0 {
				t.Fatalf("%s matches %v", q.question, got)
			}
		}); n != 0 {
			t.Errorf("a name that does not match (%s) costs %v allocations", q.name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		if got := tree.Append(buf[:0], "a.zone77.domain77.example."); len(got) != 1 {
			t.Fatalf("got %v", got)
		}
	}); n != 0 {
		t.Errorf("a name that matches costs %v allocations", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	tree := many()
	var buf [4]int
	for _, q := range append(questions, struct{ name, question string }{"hit", "a.zone77.domain77.example."}) {
		b.Run(q.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tree.Append(buf[:0], q.question)
			}
		})
	}
}
