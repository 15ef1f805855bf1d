package real_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/test/explain/real"
)

// TestSecure checks a zone that BIND signs, below a signed com and root: resolvers and nameplane both validate it.
func TestSecure(t *testing.T) {
	env := signedInternet(t)
	for _, r := range env.Recursors {
		if m := ask(t, r, "www.near.com."); !m.AuthenticatedData {
			t.Errorf("%s does not validate: %v", r.Name, m)
		}
	}
	for _, args := range [][]string{{"scan", "near.com"}, {"analyze", "www.near.com"}, {"compare", "www.near.com", "A"}} {
		r := scanReport(t, args...)
		if r.Verdict != report.Working {
			t.Errorf("%v: %s", args, r.Summary)
		}
		for _, f := range severe(r, explain.Critical, explain.Error) {
			t.Errorf("%v: %s %s: %s", args, f.ID, f.Severity, f.Words)
		}
		if i := slices.IndexFunc(r.Findings, func(f explain.Finding) bool { return f.ID == "SEC01" }); i >= 0 &&
			r.Findings[i].Status != explain.Pass {
			t.Errorf("%v: %s %s", args, r.Findings[i].Status, r.Findings[i].Words)
		}
	}
}

// TestHarmValidating is TestHarm with validating resolvers.
func TestHarmValidating(t *testing.T) { harm(t, signedInternet(t)) }

// hidden is what a recursor does with a new name, after it was asked for a neighbour of the name.
type hidden struct {
	denied time.Time // when it was asked for the neighbour
	code   int       // response code of the first query for the name
	asked  int       // queries that it had sent to the authority by then
	seen
}

// TestRanges checks that a validating resolver denies all names in a cached NSEC range (RFC 8198). A name that is
// created in the range stays invisible until the NSEC record expires, although nobody asked for it before.
func TestRanges(t *testing.T) {
	env := signedInternet(t)
	for i := range 2 {
		ranges(t, env, fmt.Sprintf("m%da.near.com.", i), fmt.Sprintf("m%dn.near.com.", i))
	}
}

func ranges(t *testing.T, env *real.Environment, neighbour, name string) {
	t.Helper()
	const addr = "185.49.140.92"
	before := scanReport(t, "analyze", name, "A")
	if !slices.ContainsFunc(before.Findings, func(f explain.Finding) bool {
		return f.ID == "TTL04" && f.Status == explain.Fail
	}) {
		t.Errorf("TTL04 does not say that %s may be hidden: %s", name, texts(before))
	}
	found := make([]hidden, len(env.Recursors))
	for i, r := range env.Recursors {
		found[i].denied = time.Now()
		if m := ask(t, r, neighbour); m.Rcode != dns.RcodeNameError {
			t.Errorf("%s: %s: %s", r.Name, neighbour, dns.RcodeToString[m.Rcode])
		}
	}
	if err := env.Set(t.Context(), name, name+" 5 A "+addr); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i, r := range env.Recursors {
		m := ask(t, r, name)
		asked, err := env.Asked(r.Addr, name)
		if err != nil {
			t.Fatal(err)
		}
		found[i].code, found[i].asked = m.Rcode, asked
		wait.Go(func() { found[i].seen = poll(t.Context(), r, flip{name: name, want: addr}) })
	}
	all := scanReport(t, "compare", name, "A")
	// This run knows only one of the four resolvers, so only the bound for resolvers that were not asked covers the
	// others.
	one := scanReport(t, "compare", name, "A", "--change", "--resolvers", onlyOne(t, env.Recursors[0]))
	wait.Wait()
	for i, r := range env.Recursors {
		found[i].judge(t, r, all, one)
	}
}

// onlyOne returns a file with a list of one resolver.
func onlyOne(t *testing.T, r real.Recursor) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolvers")
	if err := os.WriteFile(file, fmt.Appendf(nil,
		"date 2026-11-15\nresolver one\n  operator One\n  region europe\n  v4 %s\n", r.Addr), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// judge compares the observation with two predictions: all from a run that queried all resolvers, one from a run that
// queried one.
func (h hidden) judge(t *testing.T, r real.Recursor, all, one *report.Report) {
	t.Helper()
	if h.err != nil {
		t.Errorf("%s: %v", r.Name, h.err)
		return
	}
	gone := h.denied.Add(real.NearNegative * time.Second)
	t.Logf("%s: %s after asking %d times, seen %+.2f s from when the NSEC record ends; "+
		"predicted %+.2f s if it was queried, %+.2f s if not", r.Name, dns.RcodeToString[h.code], h.asked,
		h.new.Sub(gone).Seconds(), all.SafeAt.Sub(gone).Seconds(), one.SafeAt.Sub(gone).Seconds())
	switch {
	case h.code == dns.RcodeNameError && h.asked == 0:
	case r.Name == "powerdns":
		return // it does so only with some NSEC records
	default:
		t.Errorf("%s: a name that nobody asked for: %s after asking the authority %d times", r.Name,
			dns.RcodeToString[h.code], h.asked)
	}
	if h.old.After(gone.Add(2*time.Second)) || h.new.Before(gone.Add(-2*time.Second)) {
		t.Errorf("%s: hidden until %v, and the NSEC record until %v", r.Name, h.new, gone)
	}
	for what, rep := range map[string]*report.Report{"all": all, "one": one} {
		if h.old.After(rep.SafeAt) {
			t.Errorf("%s: an older answer %v after the predicted time of the run that queried %s", r.Name,
				h.old.Sub(rep.SafeAt), what)
		}
	}
}
