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

// Make is the report of facts and of what check.Run found in them, in its order. It is a function of both: the same facts make
// the same report.
func Make(f *explain.Facts, findings []explain.Finding) *Report {
	r := &Report{Schema: Schema, Kind: f.Kind, Target: f.Name, Types: f.Types, At: f.At.UTC(), Took: f.Took, Queries: f.Queries,
		Unfinished: f.Unfinished, NoRoute: f.Vantage.NoRoute, Findings: slices.Clone(findings), Outcomes: f.Outcomes, Chain: f.Chain, domain: f.Domain}
	if r.Findings == nil {
		r.Findings = []explain.Finding{}
	}
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
	r.judge()
	return r
}

// timing is all that has to do with when.
func (r *Report) timing(f *explain.Facts) {
	if f.Kind == explain.Scan && len(f.PlanNS) == 0 {
		return
	}
	if len(f.Caches) > 0 {
		safe := explain.Safe(f)
		r.Caches = cacheLines(f, safe)
		if len(explain.Links(f)) > 0 { // or there is no answer that anybody could see
			r.Safe, r.SafeAt, r.AtLatest, r.Assumed = &safe, safe.At.UTC(), safe.Latest.UTC(), safe.Assumed
		}
	}
	if plan, ok := explain.PlanChange(f); ok {
		r.Plan = &plan
	}
}

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

// steps are what to do, one for each thing to be done: findings with the same remedy are one.
func (r *Report) steps() {
	for _, f := range r.Findings {
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

// evidence are the exchanges that findings which did not pass refer to.
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
			r.Evidence = append(r.Evidence, Evidence{ID: exchangeID(i), At: e.At, Dig: dig(e, samples[i], subnets[i]), Result: cmp.Or(e.Error, string(e.Class)), RTT: e.RTT})
		}
	}
}

func exchangeID(i int) string { return fmt.Sprintf("q%d", i) }

// dig is the command that asks the same. Of an exchange with a resolver, the sample tells how it was asked; an authority may have been
// asked on behalf of a subnet.
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
		return text // resolvers are asked without signatures
	}
	return text + " +dnssec"
}
