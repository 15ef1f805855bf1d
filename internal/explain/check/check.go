// Package check judges Facts: each check is a function of them, and has a text that explains it.
//
// A check fails only on evidence. What was not asked, not answered or not finished is unknown, and what does not apply has no
// finding at all.
package check

import (
	"cmp"
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
)

// Check is one thing that is looked at, and its explanation.
type Check struct {
	ID       string           `json:"id"`
	Group    string           `json:"group"`
	Title    string           `json:"title"`    // true when it passes
	Severity explain.Severity `json:"severity"` // the worst that it can be
	Kinds    []explain.Kind   `json:"kinds"`    // what must be asked for to have it checked
	What     string           `json:"what"`     // is wrong when it fails
	Why      string           `json:"why"`      // that matters
	How      string           `json:"how"`      // it is found out
	Fix      string           `json:"fix"`
	Refs     []string         `json:"refs,omitempty"`

	judge func(*explain.Facts) []explain.Finding
}

// Groups of checks, in the order of the catalogue.
const (
	Registration = "registration"
	Delegation   = "delegation"
	Zone         = "zone and SOA"
	Name         = "name and chain"
	Caches       = "TTL and caches"
	DNSSEC       = "DNSSEC"
	Conduct      = "server conduct"
	Vantage      = "vantage"
)

var (
	scan     = []explain.Kind{explain.Scan}
	zones    = []explain.Kind{explain.Scan, explain.Analyze}
	names    = []explain.Kind{explain.Analyze, explain.Compare}
	compared = []explain.Kind{explain.Compare}
	every    = []explain.Kind{explain.Scan, explain.Analyze, explain.Compare}
)

// All are the checks, in the order of the catalogue.
func All() []Check {
	delegation := slices.Concat(delegationChecks, serverChecks)
	slices.SortFunc(delegation, func(a, b Check) int { return cmp.Compare(a.ID, b.ID) })
	return slices.Concat(registrationChecks, delegation, soaChecks, nameChecks, answerChecks, cacheChecks, secureChecks,
		conductChecks, vantageChecks)
}

// Find finds a check by its id.
func Find(id string) (Check, bool) {
	return find(All(), func(c Check) bool { return c.ID == id })
}

// Run judges facts by all checks of their kind: what fails first, the worst before the less bad, then what is unknown, then
// what passes. The same facts give the same findings in the same order.
func Run(f *explain.Facts) []explain.Finding {
	var out []explain.Finding
	for _, c := range All() {
		if slices.Contains(c.Kinds, f.Kind) {
			out = append(out, c.Judge(f)...)
		}
	}
	// Stable, so that checks stay in the order of the catalogue and subjects in that of the facts.
	slices.SortStableFunc(out, func(a, b explain.Finding) int {
		return cmp.Or(cmp.Compare(rank[a.Status], rank[b.Status]), worseFirst(a, b))
	})
	return out
}

// Judge is what the check says of facts, of whichever kind they are; nothing if it does not apply to them.
func (c Check) Judge(f *explain.Facts) []explain.Finding {
	out := c.judge(f)
	if len(out) > 0 && c.blind(f) {
		out = unknown(out[0].Subject, "Not seen from here, where somebody on the way answers in place of the servers: %s.", c.Title)
	}
	for i := range out {
		out[i].ID = c.ID
		out[i].Subject = cmp.Or(out[i].Subject, f.Input, "the input") // that has no name in it
		if out[i].Severity == "" {
			out[i].Severity = c.Severity
		}
		if out[i].Status == explain.Fail && out[i].Fix == "" {
			out[i].Fix = c.Fix
		}
		if out[i].Status == explain.Fail && len(out[i].Evidence) == 0 {
			out[i].Evidence = c.shown(f, out[i].Subject)
		}
		slices.Sort(out[i].Evidence)
		out[i].Evidence = slices.Compact(out[i].Evidence)
	}
	slices.SortStableFunc(out, func(a, b explain.Finding) int { return worseFirst(a, b) })
	return out
}

// sighted are the checks of groups that go by what servers say and do not themselves; unsighted are those of the other groups that do.
var sighted, unsighted = []string{"NAM17", "NAM18", "NAM19"}, []string{"REG07", "REG08"}

// blind reports whether what a check goes by is what somebody on the way says. Registries are not asked by DNS, and what was typed
// is not asked of anybody.
func (c Check) blind(f *explain.Facts) bool {
	sees := slices.Contains(sighted, c.ID) || (c.Group == Registration || c.Group == Vantage) && !slices.Contains(unsighted, c.ID)
	return f.Vantage.Intercepted.Fact == explain.Yes && !sees
}

var rank = map[explain.Status]int{explain.Fail: 0, explain.NotKnown: 1, explain.Pass: 2}

// worseFirst orders what fails by severity; with the others it says nothing.
func worseFirst(a, b explain.Finding) int {
	switch {
	case a.Status != explain.Fail || b.Status != explain.Fail || a.Severity == b.Severity:
		return 0
	case a.Severity.AtLeast(b.Severity):
		return -1
	}
	return 1
}
