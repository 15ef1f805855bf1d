package gather

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// caches looks into the resolvers, all at the same time.
func (r *run) caches() error {
	all := r.shared()
	local, err := r.local()
	if err != nil {
		return err
	}
	all = append(local, all...)
	types, why := r.harmless()
	var mu sync.Mutex // guards done
	done := 0
	var group sync.WaitGroup
	for i := range all {
		if len(types) == 0 {
			all[i].NotAsked = why
			continue
		}
		group.Go(func() {
			s := sampler{run: r, target: &all[i], budget: r.budget.Beside(r.opts.PerResolver)}
			s.sample(types)
			mu.Lock()
			defer mu.Unlock()
			done++
			r.tell(StageResolvers, all[i].Operator+" "+all[i].Addr.String(), done, len(all))
		})
	}
	group.Wait()
	for _, c := range all {
		r.facts.Caches = append(r.facts.Caches, c.Cache)
	}
	r.askForThem()
	r.told(StageResolvers)
	return nil
}

// harmless are the types that may be asked of resolvers that others use, too, and if there are none, why. A resolver remembers
// that something does not exist, and tells everyone so when it exists at last.
func (r *run) harmless() (out []rr.Type, why string) {
	if r.opts.Force {
		return r.types, ""
	}
	if missing := explain.Missing(r.facts); r.opts.Await && missing != "" {
		return nil, missing + "; a resolver that is asked now remembers what there is"
	}
	for i, t := range r.types {
		reason := r.harm(r.facts.Outcomes[i])
		if reason == "" {
			out = append(out, t)
		} else if why == "" || i == 0 {
			why = reason
		}
	}
	return out, why
}

// harm is why a resolver that is asked for a type could come to remember that there is nothing; empty if it could not.
func (r *run) harm(o explain.Outcome) string {
	subject := fmt.Sprintf("%s %s", o.End, o.Type)
	switch o.Result {
	case iterate.Answer:
	case iterate.NXDomain:
		return fmt.Sprintf("%s does not exist; a resolver that is asked for it remembers that, even when it has been made", o.End)
	case iterate.NoData:
		return fmt.Sprintf("there is no %s; a resolver that is asked for it remembers that, even when it has been made", subject)
	default:
		return fmt.Sprintf("no authority could be asked for %s; a resolver that is asked for what does not exist remembers that", subject)
	}
	aliases := map[dnsname.Name]bool{}
	for _, l := range r.trace.Chain {
		aliases[l.From] = true
	}
	for _, a := range r.facts.Answers {
		denies := a.Class == iterate.NXDomain || a.Class == iterate.NoData || a.Class == iterate.NoSOA
		about := a.Question.Type == o.Type || aliases[a.Question.Name] && slices.Contains(r.types, a.Question.Type)
		if denies && about {
			return fmt.Sprintf("the server %s says that there is no %s; a resolver that asks that one remembers it", a.Server, a.Question)
		}
	}
	return ""
}

// target is a resolver, and where it is asked.
type target struct {
	explain.Cache
	place resolve.Server
}

// shared are the resolvers of the list: one address of each, as the others lead to the same caches, or to as good ones.
func (r *run) shared() (out []target) {
	for _, known := range r.Resolvers {
		c := explain.Cache{ID: known.ID, Operator: cmp.Or(known.Operator, known.ID), Region: known.Region, Filters: known.Filter, NoVote: !known.Vote,
			Flush: known.Flush, Clamps: clamps(known.MaxTTL, known.MaxNegativeTTL)}
		servers := slices.DeleteFunc(known.Servers(), func(s resolve.Server) bool { return !r.family(s.Addr.Addr()) })
		if len(servers) > 0 {
			c.Addr = servers[0].Addr.Addr()
			out = append(out, target{c, servers[0]})
		}
	}
	return out
}

// clamps are the longest times that a resolver says it keeps things; 0 is not known.
func clamps(positive, negative uint32) (out safeat.Clamps) {
	if positive > 0 {
		out.Positive = safeat.Seconds(positive)
	}
	if negative > 0 {
		out.Negative = safeat.Seconds(negative)
	}
	return out
}

// local are the resolvers that this machine uses.
func (r *run) local() (out []target, err error) {
	if r.opts.Local == "" {
		return nil, nil
	}
	text, err := os.ReadFile(r.opts.Local)
	if err != nil {
		return nil, fmt.Errorf("find the resolvers of this machine: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil && len(out) < maxLocal {
			out = append(out, target{explain.Cache{ID: "local", Operator: "this machine's resolver", Addr: a, Local: true}, udp(a)})
		}
	}
	return out, nil
}

// maxLocal is how many resolvers of a resolv.conf file are used (resolv.conf(5)).
const maxLocal = 3

// sampler asks one resolver.
type sampler struct {
	*run
	*target
	budget *resolve.Budget // of queries to this resolver
}

// way is how a resolver is asked for one type.
type way struct {
	q       iterate.Question
	recurse bool // it does not tell what it holds without being asked to look
	tried   bool // with CD
	useless bool
}

// sample takes as many samples as it may, of all types in turns: behind one address there are often many caches.
func (s *sampler) sample(types []rr.Type) {
	var ways []*way
	for _, t := range types {
		ways = append(ways, &way{q: iterate.Question{Name: s.facts.Name, Type: t}})
	}
	for s.budget.Left() > 0 {
		before := s.budget.Left()
		for _, w := range ways {
			if !w.useless && s.budget.Left() > 0 {
				s.once(w)
			}
		}
		if s.budget.Left() == before {
			return
		}
	}
}

// once takes one sample. First it is tried without RD, which only tells what is there.
func (s *sampler) once(w *way) {
	if !w.recurse {
		p := s.send(w.q, false, false)
		if p.view != nil && tellsAll(w.q, p.view) {
			s.keep(w.q, p, false, false)
			return
		}
		w.recurse = p.view == nil || p.view.Rcode == "REFUSED"
	}
	if s.budget.Left() == 0 {
		return
	}
	p := s.send(w.q, true, false)
	if len(p.ids) == 0 {
		w.useless = true
		return
	}
	s.keep(w.q, p, true, false)
	w.useless = p.view == nil || p.view.Rcode == "REFUSED"
	if p.view != nil && p.view.Rcode == "SERVFAIL" {
		s.uncheck(w)
	}
}

// uncheck asks again without validation: if there is an answer then, DNSSEC is what fails.
func (s *sampler) uncheck(w *way) {
	w.useless = true
	if s.budget.Left() == 0 || w.tried {
		return
	}
	w.tried = true
	if p := s.send(w.q, true, true); len(p.ids) > 0 {
		s.keep(w.q, p, true, true)
	}
}

// send asks once, and over TCP if the reply does not fit. Each query has a port of its own, so that they reach different ones of
// the machines behind an address.
func (s *sampler) send(q iterate.Question, recurse, unchecked bool) (out reply) {
	query := iterate.Query{Server: s.place, Question: q, RD: recurse, CD: unchecked, NoDNSSEC: true}
	timeout := s.opts.Recursion
	for s.budget.Left() > 0 {
		if s.budget.Acquire(s.ctx, s.Addr) != nil {
			s.refused()
			return out
		}
		s.run.send(query, timeout, &out)
		if out.last.Class != iterate.Truncated || query.Server.Transport != resolve.UDP {
			break
		}
		query.Server.Transport = resolve.TCP
	}
	return out
}

// tellsAll reports whether a reply to a query without RD tells what the cache holds of a question: the whole chain, or that
// there is nothing. Without that it is what a server says that would have to look, as a referral.
func tellsAll(q iterate.Question, v *iterate.View) bool {
	end := q.Name
	for range v.Answer {
		if target, ok := targetOf(v.Answer, end); ok && len(iterate.Records(v.Answer, end, q.Type)) == 0 {
			end = target
		}
	}
	switch {
	case v.Rcode == "NXDOMAIN":
		return true
	case v.Rcode != "NOERROR":
		return false
	case len(iterate.Records(v.Answer, end, q.Type)) > 0:
		return true
	}
	return soaOf(v.Authority) != nil
}

func (s *sampler) keep(q iterate.Question, p reply, recurse, unchecked bool) {
	out := explain.Sample{Question: q, At: p.last.At + p.last.RTT, Recurse: recurse, NoCheck: unchecked, Evidence: p.ids}
	if v := p.view; v != nil {
		out.Rcode, out.Sets, out.NSID, out.Errors, out.SOA = v.Rcode, setsOf(v.Answer), v.NSID, v.EDE, soaOf(v.Authority)
	}
	s.Samples = append(s.Samples, out)
}
