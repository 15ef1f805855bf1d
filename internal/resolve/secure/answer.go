package secure

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// judgeAnswers judges the answers for the name of the question and for each name of its alias chain.
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

// zoneOf returns the zone that has the answer to a question: the deepest one in the trace. DS records are in the
// parent.
func (v *validation) zoneOf(q iterate.Question) *zone {
	for n := q.Name; !n.IsZero(); n = n.Parent() {
		if z := v.zones[n]; z != nil && (n != q.Name || uint16(q.Type) != dns.TypeDS || n.IsRoot()) {
			return z
		}
	}
	return nil
}

// answer judges the replies of all servers to a question. The answer has the best judgement, because a resolver tries
// other servers after a bad reply.
func (v *validation) answer(q iterate.Question) Answer {
	z := v.zoneOf(q)
	a := Answer{Question: q, State: Unknown, Cause: NotSeen, Why: fmt.Sprintf("the trace has no usable reply to %s", q)}
	if z == nil {
		return a
	}
	a.Zone = z.name
	var found []judgement
	known := func(server netip.Addr) bool {
		return slices.ContainsFunc(a.Servers, func(s Server) bool { return s.Addr == server })
	}
	for _, r := range v.replies {
		if r.zone != z.name || r.q != q || r.class == iterate.Referral || known(r.server) {
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
		a.Why = fmt.Sprintf("signed by %s with valid signatures", z.name)
		wrong := slices.DeleteFunc(slices.Clone(a.Servers), func(s Server) bool { return s.State != Bogus })
		if len(wrong) > 0 {
			a.Why += fmt.Sprintf("; those of %d of %d servers are invalid: %s", len(wrong), len(a.Servers), wrong[0].Why)
		}
	}
	return a
}

// data judges the reply of one server for a name: its records, an alias, or a denial.
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
		j = v.denial(z, r).prove(func(p prover) judgement { return p.noCloser(s.owner, labels) })
	}
	return j, wild
}

// alias returns the set that redirects the name of the question: its CNAME record, or a DNAME record above it. The
// CNAME record that comes with a DNAME is not signed, because every resolver can derive it (RFC 6672 §5.3.1).
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
