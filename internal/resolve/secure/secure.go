// Package secure validates the replies of a recorded trace with DNSSEC. It reports whether the answer has a chain of
// trust from the root, and otherwise where and why the chain breaks.
//
// The result depends only on a trace, trust anchors and a point in time. The package sends no queries, so a stored
// trace gives the same result anywhere and at any time. Data that the trace lacks is unknown, never bogus.
//
// Start with Validate in secure.go. It follows the zones (zone.go), verifies signatures (verify.go) and judges the
// answers (answer.go) and the proofs of non-existence (denial.go, nsec.go, nsec3.go). The result types are in
// result.go.
package secure

import (
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// Validate follows the chain of trust in a trace at the time now, for several types of the name of the trace. It does
// common work only once.
func Validate(trace *iterate.Trace, types []rr.Type, anchors []Anchor, now time.Time) (out []Result) {
	shared := validation{now: now, anchors: map[dnsname.Name][]*dns.DS{}, hashes: map[hashKey]string{},
		tags: map[*dns.DNSKEY]uint16{}, verified: map[verified]bool{}, work: new(int)}
	for _, a := range anchors {
		shared.anchors[a.Zone] = append(shared.anchors[a.Zone], a.ds())
	}
	if trace.DNSSEC {
		shared.replies = readReplies(trace)
	}
	for _, t := range types {
		own, v := *trace, shared
		own.Question.Type = t
		v.trace, v.zones = &own, map[dnsname.Name]*zone{}
		out = append(out, v.validate())
	}
	return out
}

func (v *validation) validate() Result {
	trace := v.trace
	for i := range trace.Zones {
		if z := &trace.Zones[i]; !z.Quick && v.zones[z.Name] == nil {
			v.zone(z)
		}
	}
	v.judgeSignatures()
	v.judgeDenials()
	v.judgeAnswers()
	return v.result()
}

// validation is the state of one run of Validate.
type validation struct {
	trace   *iterate.Trace
	now     time.Time
	anchors map[dnsname.Name][]*dns.DS
	replies []*reply
	zones   map[dnsname.Name]*zone
	order   []*zone
	answers []Answer
	// hashes, tags and verified cache expensive results. All types of a call of Validate share them.
	hashes map[hashKey]string

	tags     map[*dns.DNSKEY]uint16
	verified map[verified]bool
	work     *int // number of signatures verified
}

// worst orders states by their effect on a chain: one bogus link breaks it.
var worst = map[State]int{Secure: 0, Insecure: 1, Unknown: 2, Bogus: 3}

func (v *validation) result() Result {
	out := Result{Question: v.trace.Question, At: v.now.UTC(), Answers: v.answers, State: Secure}
	for _, z := range v.order {
		z.shown.State, z.shown.Cause, z.shown.Why = z.state, z.cause, z.why
		if z.ok() {
			z.shown.Why = fmt.Sprintf("signed, and the DS records at %s match its keys", z.shown.Parent)
			if z.parent == nil {
				z.shown.Why = "signed, and the trust anchors match its keys"
			}
		}
		out.Zones = append(out.Zones, z.shown)
	}
	for i, a := range v.answers {
		if i == 0 || worst[a.State] > worst[out.State] {
			out.State, out.Cause, out.Why = a.State, a.Cause, a.Why
		}
	}
	if out.State == Secure {
		out.Expires, out.ExpiresOf = v.expires()
	}
	return out
}
