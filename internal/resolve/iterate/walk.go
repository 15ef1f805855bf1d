package iterate

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// end is the last zone of a walk and the replies of its servers.
type end struct {
	zone    *zone
	class   Class // the best class of the replies; Unknown if none is usable
	replies []verdict
}

// ranks order classes by how much they say about the name.
var ranks = map[Class]int{Answer: 3, NoData: 2, NXDomain: 1}

func (e end) better(f end) bool { return ranks[e.class] > ranks[f.class] }

// maxWalks limits the number of zones that a pass enters. If each server sends a different referral, the number of
// paths doubles with each of them. This costs no query, because the same questions lead to all of them. Real names
// need a few hundred at most.
const maxWalks = 1000

// walk descends from a zone to the answer of a question. If full is set it queries all servers of each zone,
// otherwise one usable reply is enough.
func (r *run) walk(z *zone, q Question, depth int, full bool) end {
	if depth > maxDepth {
		r.note(NoteDepth, z.name, q.String())
		r.limits["depth"] = true
		return end{zone: z, class: Unknown}
	}
	if r.walks++; r.walks > maxWalks {
		r.limits["steps"] = true
		return end{zone: z, class: Unknown}
	}
	r.enter(z, full)
	denied := false // the name before was denied, perhaps wrongly
	for known, count := z.name, depth; ; count++ {
		step := r.step(known, q, count)
		if denied {
			step = q
		}
		replies := r.askStep(z, step, full)
		if has(replies, Referral) {
			r.noteENT(z, known, denied, replies)
			return r.descend(z, q, depth, full, replies, step.Name)
		}
		if step == q {
			r.noteENT(z, known, denied, replies)
			return r.conclude(z, q, depth, full, replies)
		}
		if cut := hiddenCut(z, step.Name, replies); !cut.IsZero() {
			return r.walk(r.hiddenZone(z, cut), q, depth+1, full)
		}
		known = step.Name
		denied = !has(replies, Answer) && !has(replies, NoData)
	}
}

// step returns the next question to send.
func (r *run) step(known dnsname.Name, q Question, count int) Question {
	if known == q.Name {
		return q
	}
	name := nextName(known, q.Name, count)
	if name == q.Name {
		return q
	}
	return Question{name, rr.Type(dns.TypeA)} // not NS, which some servers answer wrongly (RFC 9156 §2.1)
}

// askStep sends one question of a walk to the servers of a zone.
func (r *run) askStep(z *zone, q Question, full bool) []verdict {
	servers := r.addrs(z)
	if len(servers) == 0 && z.locating {
		r.note(NoteNSLoop, z.name, q.Name.String())
	}
	if full && !r.opts.Fast {
		return r.ask(z, servers, q)
	}
	return r.askOne(z, servers, q)
}

// noteENT records a name that was denied although something exists below it. A resolver that believes such a denial
// (RFC 8020) does not find the names below.
func (r *run) noteENT(z *zone, name dnsname.Name, denied bool, replies []verdict) {
	if !denied || !has(replies, Answer) && !has(replies, NoData) && !has(replies, Referral) {
		return
	}
	q := Question{name, rr.Type(dns.TypeA)}
	for _, v := range replies {
		res, ok := r.asked[askKey{v.server, q}]
		if ok && v.class.Usable() && v.class != NXDomain && res.isDone() && r.judge(z, res).class == NXDomain {
			r.note(NoteENT, z.name, name.String()+" at "+v.server.String())
		}
	}
}

func has(replies []verdict, c Class) bool {
	return slices.ContainsFunc(replies, func(v verdict) bool { return v.class == c })
}

// referrals returns the cuts that servers refer to, the uppermost first. Correct servers refer to the same one.
func referrals(z *zone, name dnsname.Name, replies []verdict) (cuts []dnsname.Name) {
	for _, v := range replies {
		if v.class == Referral {
			cuts = append(cuts, cutBelow(z.name, name, v.reply.Ns))
		}
	}
	slices.SortFunc(cuts, dnsname.Name.Compare)
	return slices.Compact(cuts)
}

// descend continues the walk at each of the cuts. Servers that also have the child zone have answered already. They
// are queried again as servers of the child if the child lists them.
func (r *run) descend(z *zone, q Question, depth int, full bool, replies []verdict, asked dnsname.Name) end {
	best := end{zone: z, class: Unknown}
	cuts := referrals(z, asked, replies)
	if len(cuts) > 1 {
		for _, cut := range cuts {
			r.note(NoteDiffer, z.name, cut.String())
		}
	}
	for _, cut := range cuts {
		saying := slices.DeleteFunc(slices.Clone(replies), func(v verdict) bool {
			return v.class != Referral || cutBelow(z.name, asked, v.reply.Ns) != cut
		})
		if e := r.walk(r.referredZone(z, cut, saying), q, depth+1, full); e.better(best) || best.zone == z {
			best = e
		}
	}
	return best
}

// hiddenCut returns a zone cut that only an SOA record shows.
func hiddenCut(z *zone, name dnsname.Name, replies []verdict) dnsname.Name {
	for _, v := range replies {
		if v.class != NoData && v.class != NXDomain {
			continue
		}
		if cut := soaOwner(z.name, name, v.reply.Ns); !cut.IsZero() && cut != z.name {
			return cut
		}
	}
	return dnsname.Name{}
}

// conclude returns the end of a walk, unless the replies show that the servers have another zone further down.
func (r *run) conclude(z *zone, q Question, depth int, full bool, replies []verdict) end {
	e := end{zone: z, class: Unknown, replies: replies}
	for _, v := range replies {
		if ranks[v.class] > ranks[e.class] {
			e.class = v.class
		}
	}
	cut := hiddenCut(z, q.Name, replies)
	if cut.IsZero() && full && e.class == Answer && q.Type != rr.Type(dns.TypeDS) && q.Name != z.name {
		cut = r.answerZone(z, q.Name, replies)
	}
	if cut.IsZero() || q.Type == rr.Type(dns.TypeDS) && cut == q.Name {
		return e
	}
	return r.walk(r.hiddenZone(z, cut), q, depth+1, full)
}

// answerZone queries the SOA record at a name that has an answer. It shows which zone the answer is from. answerZone
// returns the zero name if that is z.
func (r *run) answerZone(z *zone, name dnsname.Name, replies []verdict) dnsname.Name {
	first := slices.IndexFunc(replies, func(v verdict) bool { return v.class == Answer })
	if _, alias := aliasOf(Question{Name: name}, replies[first].reply.Answer); alias {
		name = name.Parent() // a name with a CNAME has no SOA and is not an apex
	}
	if name == z.name || !name.IsIn(z.name) {
		return dnsname.Name{}
	}
	q := Question{name, rr.Type(dns.TypeSOA)}
	for _, v := range r.askOne(z, r.addrs(z), q) {
		if v.class == Answer || v.class == NoData {
			if cut := soaOwner(z.name, name, slices.Concat(v.reply.Answer, v.reply.Ns)); cut != z.name {
				return cut
			}
		}
	}
	return dnsname.Name{}
}

// deepest returns the lowest known zone that can answer a question. DS records are in the parent (RFC 4035 §2.4).
func (r *run) deepest(q Question, full bool) *zone {
	for n := q.Name; ; n = n.Parent() {
		z := r.zones[n]
		if z != nil && z.entered && (z.full || !full) && (n != q.Name || q.Type != rr.Type(dns.TypeDS) || n.IsRoot()) ||
			n.IsRoot() {
			return z
		}
	}
}

// chase walks to the question and then follows its aliases. If servers have different aliases, it follows all of
// them.
func (r *run) chase() {
	seen := map[dnsname.Name]bool{r.q.Name: true}
	todo := []Question{r.q}
	best := Unknown
	for hops := 0; len(todo) > 0; hops++ {
		q := todo[0]
		todo = todo[1:]
		e := r.walk(r.deepest(q, true), q, 0, true)
		r.probe(e, q)
		links := r.links(e, q)
		if len(links) == 0 && ranks[e.class] > ranks[best] {
			best = e.class
		}
		for _, l := range links {
			r.chain = append(r.chain, l)
			switch {
			case seen[l.To]:
				r.note(NoteAliasLoop, e.zone.name, l.From.String()+" to "+l.To.String())
			case len(seen) > wire.MaxChain:
				r.note(NoteAliasLong, e.zone.name, l.From.String()+" to "+l.To.String())
			default:
				seen[l.To] = true
				todo = append(todo, Question{l.To, q.Type})
			}
		}
	}
	r.result = best
}

// links returns the aliases in the replies to a question.
func (r *run) links(e end, q Question) (out []Link) {
	for _, v := range e.replies {
		if v.class != Answer && v.class != NXDomain {
			continue
		}
		l, ok := aliasOf(q, v.reply.Answer)
		l.Zone = e.zone.name
		if ok && !slices.ContainsFunc(out, func(o Link) bool { return o.To == l.To }) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Link) int { return a.To.Compare(b.To) })
	if len(out) > 1 {
		r.note(NoteAliases, e.zone.name, q.String())
	}
	return out
}
