package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// Missing says what the authority lacks of what the asker waits for: records, those that are expected if any are, and the same at all
// of its servers. It is empty if nothing is.
func Missing(f *Facts) string {
	if slices.ContainsFunc(f.Outcomes, func(o Outcome) bool { return o.Result == iterate.Unknown }) {
		return "its servers could not be asked"
	}
	if !slices.ContainsFunc(f.Outcomes, has) {
		return "there are no such records of " + words.Name(f.Name)
	}
	for _, want := range f.Expect {
		i := slices.IndexFunc(f.Outcomes, func(o Outcome) bool { return o.Type == want.Type })
		if i < 0 || !slices.ContainsFunc(f.Outcomes[i].Sets, func(s Set) bool { return s.Type == want.Type && contains(s.Data, want.Data) }) {
			return fmt.Sprintf("%s is not %s", want.Type, strings.Join(want.Data, ", "))
		}
	}
	for _, d := range Differences(f) {
		// Where each server makes its own answer they never become the same; but if one was named, all must give it.
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
