package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// Missing returns a sentence part that says what the authority lacks, or "" if it lacks nothing. The authority must
// have records, they must be the expected ones if the user gave any, and all servers must have the same.
func Missing(f *Facts) string {
	if slices.ContainsFunc(f.Outcomes, func(o Outcome) bool { return o.Result == iterate.Unknown }) {
		return "its servers could not be queried"
	}
	if !slices.ContainsFunc(f.Outcomes, has) {
		return words.Name(f.Name) + " has no such records"
	}
	for _, want := range f.Expect {
		i := slices.IndexFunc(f.Outcomes, func(o Outcome) bool { return o.Type == want.Type })
		if i < 0 || !slices.ContainsFunc(f.Outcomes[i].Sets, func(s Set) bool {
			return s.Type == want.Type && contains(s.Data, want.Data)
		}) {
			return fmt.Sprintf("%s is not %s", want.Type, strings.Join(want.Data, ", "))
		}
	}
	for _, d := range Differences(f) {
		// Servers that compute their own answers never agree. With an expected record, all of them must still give it.
		wanted := slices.ContainsFunc(f.Expect, func(s Set) bool { return s.Type == d.Question.Type })
		if d.Manner == Divided || d.Manner == Computed && wanted {
			return fmt.Sprintf("its servers have different records of %s %s", words.Name(d.Question.Name), d.Question.Type)
		}
	}
	return ""
}

func contains(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
