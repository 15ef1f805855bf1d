package report

import (
	"fmt"
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// passing are the checks whose failure time alone mends: the authority is right, and caches are late. A resolver that cannot reach
// the servers (TTL08) is none: nobody knows when it can.
var passing = []string{"TTL02", "TTL03", "TTL11"}

// intercepted is the check that fails when somebody on the way answers in place of the servers.
const intercepted = "VAN01"

// vital are the checks without which nobody can say that a name works.
var vital = map[explain.Kind][]string{
	explain.Scan:    {"DEL01", "DEL04"},
	explain.Analyze: {"DEL04", "NAM01"},
	explain.Compare: {"NAM01", "VAN04"},
}

// judge finds the verdict and its sentence.
func (r *Report) judge() {
	worst := r.worst()
	switch {
	case worst != nil && worst.Severity == explain.Critical:
		r.Verdict, r.Summary = NotWorking, "Not working: "+worst.Words
	case r.blind() != "":
		r.Verdict, r.Summary = CannotTell, "Could not tell: "+r.blind()
	case r.failed(passing...) != nil: // there are caches that do not know yet
		r.Verdict, r.Summary = Soon, r.lateWords()
	default:
		r.Verdict, r.Summary = Working, r.workingWords(worst)
	}
}

// first is the first finding of some kind, which is the worst, as they are sorted; nil if there is none.
func (r *Report) first(is func(explain.Finding) bool) *explain.Finding {
	i := slices.IndexFunc(r.Findings, is)
	if i < 0 {
		return nil
	}
	return &r.Findings[i]
}

// worst is the worst finding that does not pass by itself.
func (r *Report) worst() *explain.Finding {
	return r.first(func(f explain.Finding) bool { return f.Status == explain.Fail && !slices.Contains(passing, f.ID) })
}

// blind says what is not known that would have to be; empty if there is nothing.
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

// failed is the worst finding of some checks that failed; nil if none did.
func (r *Report) failed(ids ...string) *explain.Finding {
	return r.first(func(f explain.Finding) bool { return f.Status == explain.Fail && slices.Contains(ids, f.ID) })
}

func (r *Report) lateWords() string {
	asked, late := 0, 0
	for _, c := range r.Caches {
		switch {
		case c.NoVote:
		case c.State == safeat.Old, c.State == safeat.Negative, c.State == safeat.Stale:
			late++
			asked++
		case c.State == safeat.Current:
			asked++
		}
	}
	text := fmt.Sprintf("Working soon: %s is set up, but %d of %s still %s an older answer.", words.Name(r.Target), late, words.Count(asked, "resolver", "resolvers"), words.Verb(late, "has", "have"))
	switch {
	case r.SafeAt.IsZero():
	case r.Safe != nil && r.Safe.Verdict == safeat.Undetermined:
		text += " When everyone sees the new one cannot be told."
	default:
		text += " Everyone sees the new one by " + words.Moment(r.SafeAt, r.At) + "."
		if r.Assumed {
			text += " That rests on assumptions; it is not later than " + words.Moment(r.AtLatest, r.At) + "."
		}
	}
	return text
}

func (r *Report) workingWords(worst *explain.Finding) string {
	said := map[explain.Kind]string{explain.Scan: r.scannedWords(), explain.Analyze: "resolves",
		explain.Compare: "is the same at the resolvers that answered as at its authority"}
	if r.failed("VAN02") != nil { // there are resolvers that filter the name
		said[explain.Compare] = "is the same at the resolvers that do not filter it as at its authority"
	}
	text := fmt.Sprintf("Working: %s %s", words.Name(r.Target), said[r.Kind])
	if worst != nil && worst.Severity.AtLeast(explain.Warning) {
		return text + ". Worst problem: " + worst.Words
	}
	// With a problem, the findings tell how far this is so.
	return text + map[explain.Kind]string{explain.Scan: ", and its servers answer", explain.Analyze: ", and its servers agree"}[r.Kind] + "."
}

// scannedWords say what a scan found in order. Only the domain is registered, and not a name in it; and nobody registers a suffix.
func (r *Report) scannedWords() string {
	switch {
	case r.Target.IsRoot():
		return "is the root"
	case r.domain.IsZero():
		return "is delegated"
	case r.domain != r.Target:
		return "is in " + words.Name(r.domain) + ", which is registered and delegated"
	}
	return "is registered and delegated"
}

// Exit is the exit code of a command that shows the report: 0 all is well, 1 a warning, 2 an error, 3 could not tell.
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
	switch r.Verdict {
	case NotWorking:
		return 2
	case CannotTell:
		return 3
	case Soon:
		return max(code, 1)
	}
	return code
}
