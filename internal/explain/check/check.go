// Package check turns explain.Facts into findings: a catalogue of checks, each a function of the facts with a text that
// explains it.
//
// Start with Run in check.go: it applies every check of the catalogue and sorts the findings. The files catalogue_*.go
// hold the texts; a field named judge in them leads to the code of a check.
//
// A check fails only on evidence. If a query was not sent, not answered or not finished, the result is unknown. A check
// that does not apply returns no finding.
package check

import (
	"cmp"
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
)

// Check is one entry of the catalogue: what is checked, and its explanation.
type Check struct {
	ID       string           `json:"id"`
	Group    string           `json:"group"`
	Title    string           `json:"title"`    // a statement that is true when the check passes
	Severity explain.Severity `json:"severity"` // the worst severity of its findings
	Kinds    []explain.Kind   `json:"kinds"`    // the commands that run the check
	What     string           `json:"what"`     // what is wrong when it fails
	Why      string           `json:"why"`      // why that matters
	How      string           `json:"how"`      // how it is determined
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
	Mail         = "mail and CAA"
	Service      = "service"
	Vantage      = "vantage"
)

var (
	scan     = []explain.Kind{explain.Scan}
	zones    = []explain.Kind{explain.Scan, explain.Analyze, explain.KindService}
	names    = []explain.Kind{explain.Analyze, explain.Compare, explain.KindService}
	compared = []explain.Kind{explain.Compare}
	every    = []explain.Kind{explain.Scan, explain.Analyze, explain.Compare, explain.KindService}
	services = []explain.Kind{explain.KindService}

	// SVC20, SVC21, SVC31 and SVC32 replace checks of these kinds for a service, because they know what the records must
	// be.
	asked    = []explain.Kind{explain.Analyze, explain.Compare}
	reported = []explain.Kind{explain.Scan, explain.Analyze, explain.Compare}
)

// All returns the checks in the order of the catalogue.
func All() []Check {
	delegation := slices.Concat(delegationChecks, serverChecks)
	slices.SortFunc(delegation, func(a, b Check) int { return cmp.Compare(a.ID, b.ID) })
	return slices.Concat(registrationChecks, delegation, soaChecks, nameChecks, answerChecks, cacheChecks, secureChecks,
		conductChecks, mailChecks, serviceChecks, recordChecks, ownershipChecks, certificateChecks, pageChecks,
		vantageChecks)
}

// Find returns the check with an ID such as "DEL04".
func Find(id string) (Check, bool) {
	return find(All(), func(c Check) bool { return c.ID == id })
}

// Run applies all checks for the kind of f. Failures come first, the worst before the others, then unknown results,
// then passes. The same facts give the same findings in the same order.
func Run(f *explain.Facts) []explain.Finding {
	var out []explain.Finding
	for _, c := range All() {
		if slices.Contains(c.Kinds, f.Kind) {
			out = append(out, c.Judge(f)...)
		}
	}
	sortFindings(out)
	return out
}

// sortFindings sorts findings by status and severity. The sort is stable: checks stay in the order of the catalogue,
// and subjects in the order of the facts.
func sortFindings(all []explain.Finding) {
	slices.SortStableFunc(all, func(a, b explain.Finding) int {
		return cmp.Or(cmp.Compare(rank[a.Status], rank[b.Status]), worseFirst(a, b))
	})
}

// Judge returns the findings of the check for facts of any kind, or none if the check does not apply. It completes each
// finding with the ID, severity, fix and evidence of the check.
func (c Check) Judge(f *explain.Facts) []explain.Finding {
	out := c.judge(f)
	if len(out) > 0 && c.blind(f) {
		out = unknown(out[0].Subject,
			"Could not be checked, because a device on the network path answers instead of the servers: %s.", c.Title)
	}
	for i := range out {
		out[i].ID = c.ID
		out[i].Subject = cmp.Or(out[i].Subject, f.Input, "the input") // for input without a name
		if out[i].Severity == "" {
			out[i].Severity = c.Severity
		}
		if out[i].Status == explain.Fail && out[i].Fix == "" {
			out[i].Fix = c.Fix
		}
		if out[i].Status == explain.Fail && len(out[i].Evidence) == 0 {
			out[i].Evidence = c.defaultEvidence(f, out[i].Subject)
		}
		slices.Sort(out[i].Evidence)
		out[i].Evidence = slices.Compact(out[i].Evidence)
	}
	sortFindings(out)
	return out
}

// Groups decide whether a check depends on DNS replies, with these exceptions. withoutDNS are checks of the user's
// input in the group Name. withDNS are checks in the group Registration that compare the registry with the parent zone.
var withoutDNS, withDNS = []string{"NAM17", "NAM18", "NAM19"}, []string{"REG07", "REG08"}

// blind reports whether the check depends on DNS replies, which a device on the network path intercepts. Registries are
// not queried by DNS.
func (c Check) blind(f *explain.Facts) bool {
	independent := slices.Contains(withoutDNS, c.ID) || (c.Group == Registration || c.Group == Vantage) &&
		!slices.Contains(withDNS, c.ID)
	return f.Vantage.Intercepted.Fact == explain.Yes && !independent
}

var rank = map[explain.Status]int{explain.Fail: 0, explain.NotKnown: 1, explain.Pass: 2}

// worseFirst orders failures by severity. Other findings are equal.
func worseFirst(a, b explain.Finding) int {
	switch {
	case a.Status != explain.Fail || b.Status != explain.Fail || a.Severity == b.Severity:
		return 0
	case a.Severity.AtLeast(b.Severity):
		return -1
	}
	return 1
}
