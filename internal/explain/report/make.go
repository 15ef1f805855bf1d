package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// Make builds the report of facts and the findings of check.Run, in their order. The same facts and findings give the
// same report.
func Make(f *explain.Facts, findings []explain.Finding) *Report {
	r := &Report{Schema: Schema, Kind: f.Kind, Target: f.Name, Types: f.Types, At: f.At.UTC(), Took: f.Took,
		Queries:    f.Queries,
		Unfinished: f.Unfinished, NoRoute: f.Vantage.NoRoute, Findings: slices.Clone(findings), Outcomes: f.Outcomes,
		Chain: f.Chain, domain: f.Domain, zone: f.Zone}
	if r.Findings == nil {
		r.Findings = []explain.Finding{}
	}
	r.service(f)
	r.count()
	r.Registration = registrationOf(f)
	r.Delegation = delegationOf(f)
	r.Planned = plannedOf(f)
	r.SOA = soaLines(f)
	r.Negative = negativeOf(f)
	r.Differences = differences(f)
	r.timing(f)
	r.steps()
	r.evidence(f)
	r.judge() // last: the summary uses the findings, the caches and the times
	return r
}

// timing adds the states of resolvers, when everyone sees the new answer, and the plan of a change.
func (r *Report) timing(f *explain.Facts) {
	if f.Kind == explain.Scan && len(f.PlanNS) == 0 {
		return
	}
	if len(f.Caches) > 0 {
		safe := explain.Safe(f)
		r.Caches = cacheLines(f, safe)
		if len(explain.Links(f)) > 0 { // without links there is no answer to wait for
			r.Safe, r.SafeAt, r.AtLatest, r.Assumed = &safe, safe.At.UTC(), safe.Latest.UTC(), safe.Assumed
		}
	}
	if plan, ok := explain.PlanChange(f); ok {
		r.Plan = &plan
	}
}

// count counts the findings by result. Failures of all severities count separately, because only some of them are
// problems.
func (r *Report) count() {
	r.Counts.Failed = map[explain.Severity]int{}
	for _, f := range r.Findings {
		switch f.Status {
		case explain.Pass:
			r.Counts.Passed++
		case explain.NotKnown:
			r.Counts.Unknown++
		default:
			r.Counts.Failed[f.Severity]++
		}
	}
}

// steps adds what to do. Findings with the same actor and fix become one step.
func (r *Report) steps() {
	for _, f := range r.Findings {
		// Notices are not problems, so they need no action.
		if f.Status != explain.Fail || f.Fix == "" || !f.Severity.AtLeast(explain.Warning) {
			continue
		}
		i := slices.IndexFunc(r.Do, func(s Step) bool { return s.Actor == f.Actor && s.Text == f.Fix })
		if i < 0 {
			r.Do = append(r.Do, Step{Actor: f.Actor, Text: f.Fix, Visible: f.Visible})
			i = len(r.Do) - 1
		}
		if !slices.Contains(r.Do[i].Findings, f.ID) {
			r.Do[i].Findings = append(r.Do[i].Findings, f.ID)
		}
		if f.Visible.After(r.Do[i].Visible) {
			r.Do[i].Visible = f.Visible
		}
	}
}

// evidence adds the exchanges of the findings that did not pass.
func (r *Report) evidence(f *explain.Facts) {
	wanted := map[int]bool{}
	for _, finding := range r.Findings {
		if finding.Status == explain.Pass {
			continue
		}
		for _, i := range finding.Evidence {
			wanted[i] = i >= 0 && i < len(f.Exchanges)
		}
	}
	// An exchange does not record its flags and client subnet. The samples and answers that refer to it do.
	samples := map[int]explain.Sample{}
	for _, c := range f.Caches {
		for _, s := range c.Samples {
			for _, i := range s.Evidence {
				samples[i] = s
			}
		}
	}
	subnets := map[int]netip.Prefix{}
	for _, a := range f.Answers {
		for _, i := range a.Evidence {
			subnets[i] = a.Subnet
		}
	}
	for i, e := range f.Exchanges {
		if wanted[i] {
			r.Evidence = append(r.Evidence,
				Evidence{ID: exchangeID(i), At: e.At, Dig: dig(e, samples[i], subnets[i]), Result: cmp.Or(e.Error, string(e.Class)),
					RTT: e.RTT})
		}
	}
}

// exchangeID returns the ID of an exchange, as findings and evidence show it.
func exchangeID(i int) string { return fmt.Sprintf("q%d", i) }

// dig returns the command that repeats an exchange. For a resolver, the sample has the flags of the query. An authority
// may have been queried on behalf of a client subnet.
func dig(e iterate.Exchange, s explain.Sample, subnet netip.Prefix) string {
	text := fmt.Sprintf("dig @%s %s %s", e.Server, e.Question.Name, e.Question.Type)
	if !s.Recurse {
		text += " +norecurse"
	}
	if s.NoCheck {
		text += " +cdflag"
	}
	if subnet.IsValid() {
		text += " +subnet=" + subnet.String()
	}
	switch transport := strings.ToLower(e.Transport); transport {
	case "tcp", "tls":
		text += " +" + transport
	}
	switch {
	case !e.EDNS:
		return text + " +noedns"
	case s.Evidence != nil:
		return text // queries to resolvers do not request signatures
	}
	return text + " +dnssec"
}
