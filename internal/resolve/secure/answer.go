package secure

import (
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// judgeAnswers judges the answer for the name of the question, and for each name that aliases lead to.
func (v *validation) judgeAnswers() {
	todo := []dnsname.Name{v.trace.Question.Name}
	for i := 0; i < len(todo); i++ {
		v.answers = append(v.answers, v.answer(iterate.Question{Name: todo[i], Type: v.trace.Question.Type}))
		for _, l := range v.trace.Chain {
			if l.From == todo[i] && !slices.Contains(todo, l.To) {
				todo = append(todo, l.To)
			}
		}
	}
}

// zoneOf is the zone that has the answer to a question: the deepest one that was looked at. DS is the parent's.
func (v *validation) zoneOf(q iterate.Question) *zone {
	for n := q.Name; !n.IsZero(); n = n.Parent() {
		if z := v.zones[n]; z != nil && (n != q.Name || uint16(q.Type) != dns.TypeDS || n.IsRoot()) {
			return z
		}
	}
	return nil
}

func (v *validation) answer(q iterate.Question) Answer {
	z := v.zoneOf(q)
	a := Answer{Question: q, State: Unknown, Cause: NotSeen, Why: fmt.Sprintf("no reply to %s was seen that can be judged", q)}
	if z == nil {
		return a
	}
	a.Zone = z.name
	var found []judgement
	for _, r := range v.replies {
		if r.zone != z.name || r.q != q || r.class == iterate.Referral || slices.ContainsFunc(a.Servers, func(s Server) bool { return s.Addr == r.server }) {
			continue
		}
		j, wild := v.data(z, r)
		found = append(found, j)
		a.Servers = append(a.Servers, Server{r.server, j.state, j.cause, j.why})
		a.Wildcard = a.Wildcard || wild
		if a.Class == "" || a.Class != iterate.Answer && r.class == iterate.Answer {
			a.Class = r.class
		}
	}
	if len(found) == 0 {
		return a
	}
	j := best(found)
	a.State, a.Cause, a.Why = j.state, j.cause, j.why
	if j.ok() {
		a.Why = fmt.Sprintf("signed by %s, and the signatures are good", z.name)
		if wrong := slices.DeleteFunc(slices.Clone(a.Servers), func(s Server) bool { return s.State != Bogus }); len(wrong) > 0 {
			a.Why += fmt.Sprintf("; not those of %d of %d servers: %s", len(wrong), len(a.Servers), wrong[0].Why)
		}
	}
	return a
}

// data judges what one reply has for a name: records, an alias, or that there is nothing.
func (v *validation) data(z *zone, r *reply) (j judgement, wildcard bool) {
	if !z.ok() {
		return judgement{z.state, Above, z.why}, false
	}
	s := pick(r.answer, r.q.Name, uint16(r.q.Type))
	if s == nil || len(s.records) == 0 {
		s = alias(r)
	}
	if s == nil {
		if r.soa() != z.name {
			return unknown(NotSeen, "the reply to %s is from another zone than %s", r.q, z.name), false
		}
		return v.negative(z, r), false
	}
	j, sig := v.verify(z, z.keys, s)
	if !j.ok() {
		return j, false
	}
	labels, wild := expanded(s, sig)
	if wild {
		j = v.denial(z, r).by(func(p prover) judgement { return p.noCloser(s.owner, labels) })
	}
	return j, wild
}

// alias is the set that sends those elsewhere who ask for a name: a CNAME record of it, or a DNAME record above it, from which
// everybody can make the CNAME record that comes with it, so that this one is not signed (RFC 6672 §5.3.1).
func alias(r *reply) *set {
	for _, s := range r.answer {
		if s.typ == dns.TypeDNAME && s.owner != r.q.Name && r.q.Name.IsIn(s.owner) && len(s.records) > 0 {
			return s
		}
	}
	if has(r.answer, r.q.Name, dns.TypeCNAME) {
		return pick(r.answer, r.q.Name, dns.TypeCNAME)
	}
	return nil
}
