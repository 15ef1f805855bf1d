package secure

import (
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// Validate follows the chain of trust through what a trace has of it, as of now, for some types of the name that the trace is
// about. What they share is done once.
func Validate(trace *iterate.Trace, types []rr.Type, anchors []Anchor, now time.Time) (out []Result) {
	shared := validation{now: now, anchors: map[dnsname.Name][]*dns.DS{}, hashes: map[hashKey]string{}, tags: map[*dns.DNSKEY]uint16{},
		verified: map[verified]bool{}, work: new(int)}
	for _, a := range anchors {
		shared.anchors[a.Zone] = append(shared.anchors[a.Zone], a.ds())
	}
	if trace.DNSSEC {
		shared.replies = read(trace)
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

// validation is one run of Validate.
type validation struct {
	trace   *iterate.Trace
	now     time.Time
	anchors map[dnsname.Name][]*dns.DS
	replies []*reply
	zones   map[dnsname.Name]*zone
	order   []*zone
	answers []Answer
	hashes  map[hashKey]string

	tags     map[*dns.DNSKEY]uint16
	verified map[verified]bool
	work     *int // signatures that were verified
}

// worst orders states by what a user notices of a chain: one bogus link breaks it.
var worst = map[State]int{Secure: 0, Insecure: 1, Unknown: 2, Bogus: 3}

func (v *validation) result() Result {
	out := Result{Question: v.trace.Question, At: v.now.UTC(), Answers: v.answers, State: Secure}
	for _, z := range v.order {
		z.shown.State, z.shown.Cause, z.shown.Why = z.state, z.cause, z.why
		if z.ok() {
			z.shown.Why = fmt.Sprintf("signed, and the DS records at %s are for its keys", z.shown.Parent)
			if z.parent == nil {
				z.shown.Why = "signed, and the trust anchors are for its keys"
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
