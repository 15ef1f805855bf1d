package explain_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/simnet"
	trees "github.com/nameplane/nameplane/test/explain"
)

// TestMailBudget checks a scan that runs out of queries. It must not report a fault of mail records that the zone does
// not have, and must not send more queries than its limit.
func TestMailBudget(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		for limit := 10; limit <= 150; limit += 7 {
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(1)
				tree := trees.Healthy(seed)
				if err := tree.Build(net); err != nil {
					t.Fatal(err)
				}
				g := gatherer(t, net)
				g.Options.MaxQueries = limit
				f, err := g.Scan(t.Context(), tree.Domain)
				if err != nil {
					t.Fatal(err)
				}
				if f.Queries > limit {
					t.Errorf("seed %d: %d queries, more than %d", seed, f.Queries, limit)
				}
				missing := slices.ContainsFunc(f.Mail, func(l explain.Lookup) bool { return l.Result == iterate.Unknown })
				if missing && len(f.Unfinished) == 0 {
					t.Errorf("seed %d, %d queries: records are not known, and no limit was reached", seed, limit)
				}
				if slices.Contains(f.Unfinished, "0 queries") {
					t.Errorf("seed %d, %d queries: unfinished %q", seed, limit, f.Unfinished)
				}
				for _, x := range check.Run(f) {
					if strings.HasPrefix(x.ID, "MAI") && x.Status == explain.Fail && x.Severity != explain.Notice {
						t.Errorf("seed %d, %d queries: %s %s", seed, limit, x.ID, x.Words)
					}
				}
			})
		}
	}
}
