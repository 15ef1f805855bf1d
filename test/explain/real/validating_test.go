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

// A zone that BIND signs, below a com and a root that are signed: resolvers and nameplane both have a chain of trust to it.
func TestSecure(t *testing.T) {
	w := signedInternet(t)
	for _, r := range w.Recursors {
		if m := ask(t, r, "www.near.com."); !m.AuthenticatedData {
			t.Errorf("%s does not validate: %v", r.Name, m)
		}
	}
	for _, args := range [][]string{{"scan", "near.com"}, {"analyze", "www.near.com"}, {"compare", "www.near.com", "A"}} {
		r := look(t, args...)
		if r.Verdict != report.Working {
			t.Errorf("%v: %s", args, r.Summary)
		}
		for _, f := range severe(r, explain.Critical, explain.Error) {
			t.Errorf("%v: %s %s: %s", args, f.ID, f.Severity, f.Words)
		}
		if i := slices.IndexFunc(r.Findings, func(f explain.Finding) bool { return f.ID == "SEC01" }); i >= 0 && r.Findings[i].Status != explain.Pass {
			t.Errorf("%v: %s %s", args, r.Findings[i].Status, r.Findings[i].Words)
		}
	}
}

// Resolvers that validate do not remember what nameplane looked at, either.
func TestHarmValidating(t *testing.T) { harm(t, signedInternet(t)) }

// hidden is what a recursor does with a name that it was never asked for, after it was asked for a neighbour.
type hidden struct {
	denied time.Time // when it was asked for the neighbour
	code   int       // of its reply to the first question for the name
	asked  int       // how often it had asked the authority by then
	seen
}

// A resolver that knows that there is nothing between two names makes an answer of that for all of them (RFC 8198): a name that is
// created there stays invisible, although nobody asked for it, until the NSEC record is forgotten.
func TestRanges(t *testing.T) {
	w := signedInternet(t)
	for i := range 2 {
		ranges(t, w, fmt.Sprintf("m%da.near.com.", i), fmt.Sprintf("m%dn.near.com.", i))
	}
}

func ranges(t *testing.T, w *real.World, neighbour, name string) {
	t.Helper()
	const addr = "185.49.140.92"
	before := look(t, "analyze", name, "A")
	if !slices.ContainsFunc(before.Findings, func(f explain.Finding) bool { return f.ID == "TTL04" && f.Status == explain.Fail }) {
		t.Errorf("TTL04 does not say that %s may be hidden: %s", name, texts(before))
	}
	found := make([]hidden, len(w.Recursors))
	for i, r := range w.Recursors {
		found[i].denied = time.Now()
		if m := ask(t, r, neighbour); m.Rcode != dns.RcodeNameError {
			t.Errorf("%s: %s: %s", r.Name, neighbour, dns.RcodeToString[m.Rcode])
		}
	}
	if err := w.Set(t.Context(), name, name+" 5 A "+addr); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i, r := range w.Recursors {
		m := ask(t, r, name)
		asked, err := w.Asked(r.Addr, name)
		if err != nil {
			t.Fatal(err)
		}
		found[i].code, found[i].asked = m.Rcode, asked
		wait.Go(func() { found[i].seen = poll(t.Context(), r, flip{name: name, want: addr}) })
	}
	all := look(t, "compare", name, "A")
	// Of three of them nothing is known here, so that only the bound for those who were not asked can cover them.
	one := look(t, "compare", name, "A", "--change", "--resolvers", onlyOne(t, w.Recursors[0]))
	wait.Wait()
	for i, r := range w.Recursors {
		found[i].judge(t, r, all, one)
	}
}

// onlyOne is a list of resolvers with one of them.
func onlyOne(t *testing.T, r real.Recursor) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolvers")
	if err := os.WriteFile(file, fmt.Appendf(nil, "date 2026-11-15\nresolver one\n  operator One\n  region europe\n  v4 %s\n", r.Addr), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// judge compares with what was predicted, by those who asked all, and by those who asked one.
func (h hidden) judge(t *testing.T, r real.Recursor, all, one *report.Report) {
	t.Helper()
	if h.err != nil {
		t.Errorf("%s: %v", r.Name, h.err)
		return
	}
	gone := h.denied.Add(real.NearNegative * time.Second)
	t.Logf("%s: %s after asking %d times, seen %+.2f s from when the NSEC record ends; told by those who asked it %+.2f s, by those who did not %+.2f s", r.Name,
		dns.RcodeToString[h.code], h.asked, h.new.Sub(gone).Seconds(), all.SafeAt.Sub(gone).Seconds(), one.SafeAt.Sub(gone).Seconds())
	switch {
	case h.code == dns.RcodeNameError && h.asked == 0:
	case r.Name == "powerdns":
		return // it does so with some NSEC records and not with others
	default:
		t.Errorf("%s: a name that nobody asked for: %s after asking the authority %d times", r.Name, dns.RcodeToString[h.code], h.asked)
	}
	if h.old.After(gone.Add(2*time.Second)) || h.new.Before(gone.Add(-2*time.Second)) {
		t.Errorf("%s: hidden until %v, and the NSEC record until %v", r.Name, h.new, gone)
	}
	for what, rep := range map[string]*report.Report{"all": all, "one": one} {
		if h.old.After(rep.SafeAt) {
			t.Errorf("%s: an older answer %v after the time that was told when %s were asked", r.Name, h.old.Sub(rep.SafeAt), what)
		}
	}
}
