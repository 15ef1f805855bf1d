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

// sampleResolvers queries all resolvers concurrently for their cached answers.
func (r *run) sampleResolvers() error {
	all := r.listedResolvers()
	local, err := r.localResolvers()
	if err != nil {
		return err
	}
	all = append(local, all...)
	types, why := r.safeTypes()
	var mu sync.Mutex // guards done
	done := 0
	var group sync.WaitGroup
	for i := range all {
		if len(types) == 0 {
			all[i].NotAsked = why
			continue
		}
		group.Go(func() {
			s := sampler{run: r, target: &all[i], budget: r.budget.Separate(r.opts.PerResolver)}
			s.sample(types)
			mu.Lock()
			defer mu.Unlock()
			done++
			r.reportProgress(StageResolvers, all[i].Operator+" "+all[i].Addr.String(), done, len(all))
		})
	}
	group.Wait()
	for _, c := range all {
		r.facts.Caches = append(r.facts.Caches, c.Cache)
	}
	r.askWithSubnets()
	r.reportStage(StageResolvers)
	return nil
}

// safeTypes returns the types that may be asked of shared resolvers. If there are none, why says the reason. A
// resolver caches that a name does not exist, and answers so to everyone even after the name is created.
func (r *run) safeTypes() (out []rr.Type, why string) {
	if r.opts.Force {
		return r.types, ""
	}
	if missing := explain.Missing(r.facts); r.opts.Await && missing != "" {
		return nil, missing + "; a resolver that is asked now would cache the present answer"
	}
	for i, t := range r.types {
		reason := r.cacheHarm(r.facts.Outcomes[i])
		if reason == "" {
			out = append(out, t)
		} else if why == "" || i == 0 {
			why = reason
		}
	}
	return out, why
}

// cacheHarm returns the reason why a resolver that is asked for a type could cache a negative answer; empty if it
// could not.
func (r *run) cacheHarm(o explain.Outcome) string {
	subject := fmt.Sprintf("%s %s", o.End, o.Type)
	switch o.Result {
	case iterate.Answer:
	case iterate.NXDomain:
		return fmt.Sprintf("%s does not exist; a resolver that is asked for it would cache that, even if it is created later",
			o.End)
	case iterate.NoData:
		return fmt.Sprintf("there is no record set %s; a resolver that is asked for it would cache that, "+
			"even if it is created later", subject)
	default:
		return fmt.Sprintf("no authoritative server of %s replied; if it does not exist, a resolver would cache that",
			subject)
	}
	aliases := map[dnsname.Name]bool{}
	for _, l := range r.trace.Chain {
		aliases[l.From] = true
	}
	for _, a := range r.facts.Answers {
		denies := a.Class == iterate.NXDomain || a.Class == iterate.NoData || a.Class == iterate.NoSOA
		about := a.Question.Type == o.Type || aliases[a.Question.Name] && slices.Contains(r.types, a.Question.Type)
		if denies && about {
			return fmt.Sprintf("the server %s denies that %s exists; a resolver that queries this server would cache that",
				a.Server, a.Question)
		}
	}
	return ""
}

// target is a resolver, and the endpoint at which it is queried.
type target struct {
	explain.Cache
	endpoint resolve.Server
}

// listedResolvers returns the resolvers of the list, with one address each: the others share the same caches or
// equivalent ones.
func (r *run) listedResolvers() (out []target) {
	for _, known := range r.Resolvers {
		c := explain.Cache{ID: known.ID, Operator: cmp.Or(known.Operator, known.ID), Region: known.Region,
			Filters: known.Filter, NoVote: !known.Vote,
			Flush: known.Flush, Clamps: clamps(known.MaxTTL, known.MaxNegativeTTL)}
		servers := slices.DeleteFunc(known.Servers(), func(s resolve.Server) bool { return !r.family(s.Addr.Addr()) })
		if len(servers) > 0 {
			c.Addr = servers[0].Addr.Addr()
			out = append(out, target{c, servers[0]})
		}
	}
	return out
}

// clamps returns the maximum times for which a resolver caches, according to its operator; 0 means unknown.
func clamps(positive, negative uint32) (out safeat.Clamps) {
	if positive > 0 {
		out.Positive = safeat.Seconds(positive)
	}
	if negative > 0 {
		out.Negative = safeat.Seconds(negative)
	}
	return out
}

// localResolvers returns the resolvers of this machine.
func (r *run) localResolvers() (out []target, err error) {
	if r.opts.Local == "" {
		return nil, nil
	}
	text, err := os.ReadFile(r.opts.Local)
	if err != nil {
		return nil, fmt.Errorf("read the resolvers of this machine: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil && len(out) < maxLocal {
			out = append(out, target{explain.Cache{ID: "local", Operator: "this machine's resolver", Addr: a, Local: true},
				udp(a)})
		}
	}
	return out, nil
}

// maxLocal is how many nameserver lines of a resolv.conf file are used (resolv.conf(5)).
const maxLocal = 3

// sampler queries one resolver.
type sampler struct {
	*run
	*target
	budget *resolve.Budget // queries to this resolver
}

// questionState is how one resolver is queried for one type.
type questionState struct {
	q       iterate.Question
	recurse bool // set RD: without it the resolver does not show its cache
	tried   bool // a query with CD was sent
	useless bool // further queries would show nothing new
}

// sample takes samples until the budget is used up, and alternates between the types. Many samples are needed: there
// are often many caches behind one address.
func (s *sampler) sample(types []rr.Type) {
	var all []*questionState
	for _, t := range types {
		all = append(all, &questionState{q: iterate.Question{Name: s.facts.Name, Type: t}})
	}
	for s.budget.Left() > 0 {
		before := s.budget.Left()
		for _, w := range all {
			if !w.useless && s.budget.Left() > 0 {
				s.sampleOnce(w)
			}
		}
		if s.budget.Left() == before {
			return
		}
	}
}

// sampleOnce takes one sample. It first tries without RD, which shows the cache and changes nothing.
func (s *sampler) sampleOnce(w *questionState) {
	if !w.recurse {
		p := s.send(w.q, false, false)
		if p.view != nil && showsCache(w.q, p.view) {
			s.addSample(w.q, p, false, false)
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
	s.addSample(w.q, p, true, false)
	w.useless = p.view == nil || p.view.Rcode == "REFUSED"
	if p.view != nil && p.view.Rcode == "SERVFAIL" {
		s.retryUnchecked(w)
	}
}

// retryUnchecked queries again with CD set. If there is an answer now, DNSSEC validation is what fails.
func (s *sampler) retryUnchecked(w *questionState) {
	w.useless = true
	if s.budget.Left() == 0 || w.tried {
		return
	}
	w.tried = true
	if p := s.send(w.q, true, true); len(p.ids) > 0 {
		s.addSample(w.q, p, true, true)
	}
}

// send sends one query, and repeats it over TCP if the reply is truncated. Each query has its own source port, so
// that queries reach different machines behind an anycast address.
func (s *sampler) send(q iterate.Question, recurse, unchecked bool) (out reply) {
	query := iterate.Query{Server: s.endpoint, Question: q, RD: recurse, CD: unchecked, NoDNSSEC: true}
	timeout := s.opts.Recursion
	for s.budget.Left() > 0 {
		if s.budget.Acquire(s.ctx, s.Addr) != nil {
			s.addUnsent()
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

// showsCache reports whether a reply to a query without RD shows the cached answer: the full chain, or a negative
// answer. Other replies, such as referrals, only show that the resolver would have to recurse.
func showsCache(q iterate.Question, v *iterate.View) bool {
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

func (s *sampler) addSample(q iterate.Question, p reply, recurse, unchecked bool) {
	out := explain.Sample{Question: q, At: p.last.At + p.last.RTT, Recurse: recurse, NoCheck: unchecked, Evidence: p.ids}
	if v := p.view; v != nil {
		out.Rcode, out.Sets, out.NSID, out.Errors, out.SOA = v.Rcode, setsOf(v.Answer), v.NSID, v.EDE, soaOf(v.Authority)
	}
	s.Samples = append(s.Samples, out)
}
