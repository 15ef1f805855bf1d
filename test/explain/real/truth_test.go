package real_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/test/explain/real"
)

// TestTruth compares reports with the answers of real resolvers. If a report has a critical finding, some resolver
// must fail; if it has none, all must succeed.
func TestTruth(t *testing.T) {
	env := internet(t)
	for _, x := range []struct {
		name     string
		critical bool
	}{
		{"www.good.com.", false}, {"good.com.", false}, {"shop.good.com.", false}, {"www.live.com.", false},
		{"www.other.net.", false},
		{"bad.com.", false}, {"www.half.com.", false},
		{"www.bad.com.", true}, {"www.lame.com.", true}, {"www.noglue.com.", true}, {"loop.good.com.", true},
		{"nothing.good.com.", true},
		{"www.nobody.com.", true},
	} {
		rep := scanReport(t, "analyze", x.name, "A")
		critical := severe(rep, explain.Critical)
		failed := 0
		for _, r := range env.Recursors {
			m, err := real.Ask(t.Context(), r.Addr, x.name, dns.TypeA, true)
			if err != nil || m.Rcode != dns.RcodeSuccess || len(real.Data(m, dns.TypeA)) == 0 {
				failed++
			}
		}
		ids := make([]string, 0, len(critical))
		for _, f := range critical {
			ids = append(ids, f.ID)
		}
		t.Logf("%-18s %-14s critical %v; %d of %d resolvers fail", x.name, rep.Verdict, ids, failed, len(env.Recursors))
		if (len(critical) > 0) != (failed > 0) || x.critical != (failed > 0) {
			t.Errorf("%s: %d of %d resolvers fail, and we say %s", x.name, failed, len(env.Recursors), texts(rep))
		}
	}
}
