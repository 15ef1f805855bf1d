package gather

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// reply is what came of a question: the exchanges that it took, and the last of them.
type reply struct {
	ids  []int
	last iterate.Exchange
	view *iterate.View // nil: there is none
}

// class is that of the last exchange; Unknown if none took place.
func (p reply) class() iterate.Class {
	if len(p.ids) == 0 {
		return iterate.Unknown
	}
	return p.last.Class
}

// to is a question to a server of a zone.
func to(zone dnsname.Name, server netip.Addr, name dnsname.Name, t rr.Type) iterate.Query {
	return iterate.Query{Zone: zone, Server: udp(server), Question: iterate.Question{Name: name, Type: t}}
}

const port53 = 53

func udp(a netip.Addr) resolve.Server { return resolve.Server{Addr: netip.AddrPortFrom(a, port53)} }

// ask asks an authority until there is a reply to judge, or no hope for one.
func (r *run) ask(q iterate.Query) (out reply) {
	for failures := 0; ; {
		timeout := r.opts.Timeouts[failures]
		if err := r.budget.Acquire(r.ctx, q.Server.Addr.Addr()); err != nil {
			r.refused()
			return out
		}
		r.send(q, timeout, &out)
		switch c := out.last.Class; {
		case (c == iterate.Truncated || c == iterate.BadCookie) && q.Server.Transport == resolve.UDP:
			q.Server.Transport = resolve.TCP
		case (c == iterate.FormErr || c == iterate.NotImp || c == iterate.BadVers) && !q.NoEDNS:
			q.NoEDNS = true
		case c.Transport() && failures+1 < min(len(r.opts.Timeouts), tries):
			failures++
		default:
			return out
		}
	}
}

// tries are fewer than those of a walk: the server was found to reply there.
const tries = 2

// send sends one query, for which there is leave.
func (r *run) send(q iterate.Query, timeout time.Duration, out *reply) {
	ctx, cancel := context.WithTimeout(r.ctx, timeout)
	defer cancel()
	e := iterate.Ask(ctx, r.Exchanger, r.facts.At, q)
	r.budget.Release()
	e.Try = len(out.ids) + 1
	if e.Class.Transport() && r.ctx.Err() != nil {
		e.Class = iterate.Unknown // it may have been about to reply
	}
	out.last, out.view = e, nil
	if v, err := e.View(); err == nil {
		out.view = &v
	}
	id := r.record(e)
	out.ids = append(out.ids, id)
	if q.ECS.IsValid() {
		r.mu.Lock()
		r.subnets[id] = q.ECS
		r.mu.Unlock()
	}
}

// refused notes why a query was not sent.
func (r *run) refused() {
	if r.ctx.Err() != nil {
		r.limit(r.opts.MaxTime.String())
		return
	}
	r.limit(r.budget.String())
}

// askAll asks questions at the same time.
func (r *run) askAll(qs []iterate.Query) []reply {
	out := make([]reply, len(qs))
	var group sync.WaitGroup
	for i, q := range qs {
		group.Go(func() { out[i] = r.ask(q) })
	}
	group.Wait()
	return out
}

// good are the servers of a zone that replied as authorities for it.
func (r *run) good(z *iterate.Zone) []netip.Addr {
	return slices.DeleteFunc(r.addrs(z), func(a netip.Addr) bool {
		return !slices.ContainsFunc(r.trace.Exchanges, func(e iterate.Exchange) bool {
			return e.Server == a && e.Zone == z.Name && e.Class.Usable()
		})
	})
}
