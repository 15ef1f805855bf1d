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

// reply is the result of a query: the exchanges of all its attempts, and the last of them.
type reply struct {
	ids  []int
	last iterate.Exchange
	view *iterate.View // decoded reply; nil: none
}

// class returns the class of the last exchange, or Unknown if nothing was sent.
func (p reply) class() iterate.Class {
	if len(p.ids) == 0 {
		return iterate.Unknown
	}
	return p.last.Class
}

// newQuery returns a query to a server of a zone.
func newQuery(zone dnsname.Name, server netip.Addr, name dnsname.Name, t rr.Type) iterate.Query {
	return iterate.Query{Zone: zone, Server: udp(server), Question: iterate.Question{Name: name, Type: t}}
}

const port53 = 53

func udp(a netip.Addr) resolve.Server { return resolve.Server{Addr: netip.AddrPortFrom(a, port53)} }

// ask queries an authoritative server until a usable reply arrives or the attempts are used up. It falls back to TCP
// and to queries without EDNS.
func (r *run) ask(q iterate.Query) (out reply) {
	for failures := 0; ; {
		timeout := r.opts.Timeouts[failures]
		if err := r.budget.Acquire(r.ctx, q.Server.Addr.Addr()); err != nil {
			r.addUnsent()
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

// tries is lower than for the walk, where the server has already replied.
const tries = 2

// send sends one query. The caller has acquired it from the budget.
func (r *run) send(q iterate.Query, timeout time.Duration, out *reply) {
	ctx, cancel := context.WithTimeout(r.ctx, timeout)
	defer cancel()
	e := iterate.Ask(ctx, r.Exchanger, r.facts.At, q)
	r.budget.Release()
	e.Try = len(out.ids) + 1
	if e.Class.Transport() && r.ctx.Err() != nil {
		e.Class = iterate.Unknown // the reply may have been in transit
	}
	out.last, out.view = e, nil
	if v, err := e.View(); err == nil {
		out.view = &v
	}
	id := r.addExchange(e)
	out.ids = append(out.ids, id)
	if q.ECS.IsValid() {
		r.mu.Lock()
		r.subnets[id] = q.ECS
		r.mu.Unlock()
	}
}

// addUnsent records the limit that kept a query from being sent.
func (r *run) addUnsent() {
	if r.ctx.Err() != nil {
		r.addLimit(r.opts.MaxTime.String())
		return
	}
	r.addLimit(r.budget.String())
}

// askAll sends queries concurrently and returns their replies in the same order.
func (r *run) askAll(qs []iterate.Query) []reply {
	out := make([]reply, len(qs))
	var group sync.WaitGroup
	for i, q := range qs {
		group.Go(func() { out[i] = r.ask(q) })
	}
	group.Wait()
	return out
}

// usableServers returns the servers of a zone that gave a usable reply for it on the walk.
func (r *run) usableServers(z *iterate.Zone) []netip.Addr {
	return slices.DeleteFunc(r.addrs(z), func(a netip.Addr) bool {
		return !slices.ContainsFunc(r.trace.Exchanges, func(e iterate.Exchange) bool {
			return e.Server == a && e.Zone == z.Name && e.Class.Usable()
		})
	})
}
