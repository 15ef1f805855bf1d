package report

import (
	"fmt"
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/registry"
)

// temporary are the checks whose failure ends by itself: the authority is right, and caches are late. TTL08 is not one
// of them: nobody knows when that resolver can reach the servers again.
var temporary = []string{"TTL02", "TTL03", "TTL11", "SVC34"}

// intercepted is the check that fails when a device on the network path answers instead of the servers.
const intercepted = "VAN01"

// vital are the checks that must not be unknown for the verdict that a name works.
var vital = map[explain.Kind][]string{
	explain.Scan:    {"DEL01", "DEL04"},
	explain.Analyze: {"DEL04", "NAM01"},
	explain.Compare: {"NAM01", "VAN04"},

	explain.KindService: {"SVC20"},
}

// judge sets the verdict and its sentence. A critical finding decides first, even if other checks are unknown.
func (r *Report) judge() {
	worst := r.worst()
	switch {
	case worst != nil && worst.Severity == explain.Critical:
		r.Verdict, r.Summary = NotWorking, "Not working: "+worst.Words
		if broken := explain.FirstBroken(r.Findings); r.host != "" && broken != "" {
			r.Summary = fmt.Sprintf("Not working: the first broken link is the %s. %s", broken, worst.Words)
		}
	case r.blind() != "":
		r.Verdict, r.Summary = Undecided, "No verdict: "+r.blind()
	case r.failed(temporary...) != nil: // some caches still hold an older answer
		r.Verdict, r.Summary = Soon, r.lateWords()
	default:
		r.Verdict, r.Summary = Working, r.workingWords(worst)
	}
}

// first returns the first finding for which is returns true, or nil. Findings are sorted, so it is the worst one.
func (r *Report) first(is func(explain.Finding) bool) *explain.Finding {
	i := slices.IndexFunc(r.Findings, is)
	if i < 0 {
		return nil
	}
	return &r.Findings[i]
}

// worst returns the worst finding that does not end by itself, or nil.
func (r *Report) worst() *explain.Finding {
	return r.first(func(f explain.Finding) bool { return f.Status == explain.Fail && !slices.Contains(temporary, f.ID) })
}

// blind returns the sentence about a missing fact that prevents a verdict, or "".
func (r *Report) blind() string {
	if x := r.failed(intercepted); x != nil {
		return x.Words
	}
	if x := r.first(func(f explain.Finding) bool {
		return f.Status == explain.NotKnown && slices.Contains(vital[r.Kind], f.ID)
	}); x != nil {
		return x.Words
	}
	return ""
}

// failed returns the worst failure of these checks, or nil.
func (r *Report) failed(ids ...string) *explain.Finding {
	return r.first(func(f explain.Finding) bool { return f.Status == explain.Fail && slices.Contains(ids, f.ID) })
}

// lateWords returns the summary for the verdict Soon.
func (r *Report) lateWords() string {
	if x := r.failed("SVC34"); x != nil {
		r.SafeAt = x.Visible.UTC()
		return fmt.Sprintf("Working soon: %s %s. %s", words.Name(r.Target), r.serviceWords(), x.Words)
	}
	asked, late := 0, 0
	for _, c := range r.Caches {
		switch {
		case c.NoVote: // neither late nor current: its answers prove nothing
		case c.State == safeat.Old, c.State == safeat.Negative, c.State == safeat.Stale:
			late++
			asked++
		case c.State == safeat.Current:
			asked++
		}
	}
	text := fmt.Sprintf("Working soon: %s is set up, but %d of %s still %s an older answer.", words.Name(r.Target), late,
		words.Count(asked, "resolver", "resolvers"), words.Verb(late, "has", "have"))
	switch {
	case r.SafeAt.IsZero():
	case r.Safe != nil && r.Safe.Verdict == safeat.Undetermined:
		text += " It is not known when everyone sees the new one."
	default:
		text += " Everyone sees the new one by " + words.Moment(r.SafeAt, r.At) + "."
		if r.Assumed {
			text += " This is based on assumptions; the latest time is " + words.Moment(r.AtLatest, r.At) + "."
		}
	}
	return text
}

// workingWords returns the summary for the verdict Working. It names the worst problem, if there is one.
func (r *Report) workingWords(worst *explain.Finding) string {
	said := map[explain.Kind]string{explain.Scan: r.scannedWords(), explain.Analyze: "resolves",
		explain.Compare:     "has the same answer at its authority and at all resolvers that answered",
		explain.KindService: r.serviceWords()}
	if r.failed("VAN02") != nil { // some resolvers filter the name
		said[explain.Compare] = "has the same answer at its authority and at all resolvers that do not filter it"
	}
	if broken := explain.FirstBroken(r.Findings); r.host != "" && broken != "" {
		return fmt.Sprintf("Working in part: the first broken link is the %s. %s", broken, worst.Words)
	}
	text := fmt.Sprintf("Working: %s %s", words.Name(r.Target), said[r.Kind])
	if worst != nil && worst.Severity.AtLeast(explain.Warning) {
		return text + ". Worst problem: " + worst.Words
	}
	// With a problem, the findings may contradict this part.
	return text + map[explain.Kind]string{explain.Scan: ", and its servers answer",
		explain.Analyze: ", and its servers agree"}[r.Kind] + "."
}

// scannedWords returns what a scan confirmed. Only the domain is registered, not a name below it, and a public suffix
// is not registered. Without an answer of the registry, only the delegation is known.
func (r *Report) scannedWords() string {
	known, inParent := "is delegated", !r.zone.IsZero() && r.zone != r.domain && r.domain.IsIn(r.zone)
	if r.Registration != nil && r.Registration.State == string(registry.Registered) {
		known = "is registered and delegated"
	}
	switch {
	case r.Target.IsRoot():
		return "is the root"
	case r.domain.IsZero():
		return "is delegated"
	case r.zone.IsZero():
		return "is in " + words.Name(r.domain) + ", which " + known
	case inParent && len(r.Chain) > 0:
		return "is no zone but an alias for " + words.Name(r.Chain[0].To) + ", in " + words.Name(r.zone)
	case inParent:
		return "is no zone but a name in " + words.Name(r.zone)
	case r.zone != r.Target && len(r.Chain) > 0:
		return "is no zone but an alias for " + words.Name(r.Chain[0].To) + ", in " + words.Name(r.zone) +
			", which " + known
	case r.zone != r.Target:
		return "is no zone but a name in " + words.Name(r.zone) + ", which " + known
	case r.domain != r.Target:
		return "is a zone in " + words.Name(r.domain) + ", which " + known
	}
	return known
}

// Exit returns the exit code of a command that shows the report: 0 for no problems, 1 for a warning, 2 for an error, 3
// for no verdict.
func (r *Report) Exit(failOn explain.Severity) int {
	code := 0
	for _, f := range r.Findings {
		if f.Status != explain.Fail {
			continue
		}
		switch {
		case f.Severity.AtLeast(failOn):
			return 2
		case f.Severity.AtLeast(explain.Warning):
			code = 1
		}
	}
	// The verdict can be worse than any single finding: unknown results have no severity.
	switch r.Verdict {
	case NotWorking:
		return 2
	case Undecided:
		return 3
	case Soon:
		return max(code, 1)
	}
	return code
}
