// Package iterate resolves a name from the root down, asking every server of every zone on the way, and records all of it.
//
// An Iterator is for finding out what is wrong, not for being fast: where a resolver is content with one good reply, it wants
// to know how each server replies, and what the parent and the child say of each other. Its result is a Trace, from which
// others judge.
package iterate

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
)

// Iterator walks from the root to names.
type Iterator struct {
	Exchanger resolve.Exchanger // a resolve.Client must be AsIs to try servers without EDNS
	Options   Options
}

// grace is how long a step waits for slow servers once one has replied well. What comes later is not lost: the walk is gone
// over again with it. Without it each level with a dead server would cost ten of the twenty seconds.
const grace = time.Second

// maxPasses bounds how often a walk is gone over.
const maxPasses = 30

// Run walks to a question. The trace is complete unless its Unfinished says otherwise. An error is not about servers: the
// question was none, or ctx ended.
func (it *Iterator) Run(ctx context.Context, q Question) (*Trace, error) {
	if q.Name.IsZero() || q.Type == 0 {
		return nil, fmt.Errorf("trace %v: a name and a type are needed", q)
	}
	r := newRun(it, q)
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithTimeout(ctx, r.opts.MaxTime)
	defer cancel()
	for range maxPasses {
		r.pass()
		r.working.Wait()
		if !r.omitted {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("trace %v: %w", q, err)
	}
	return r.trace(), nil
}

// run is one walk. All of it happens on one goroutine, except that queries are sent on others.
type run struct {
	opts      Options
	exchanger resolve.Exchanger
	q         Question
	ctx       context.Context
	began     time.Time
	asked     map[askKey]*result
	working   sync.WaitGroup
	omitted   bool // a result was not there yet when this pass wanted it

	way // of this pass

	mu      sync.Mutex // guards the following
	cookies map[netip.Addr]string
	wasted  map[netip.Addr]time.Duration // how long a server was waited for in vain
	ended   map[string]bool              // the limits that were reached
}

// way is what a pass finds. A pass begins with nothing but the results of the queries so far.
type way struct {
	zones   map[dnsname.Name]*zone
	order   []*zone
	chain   []Link
	notes   []Note
	limits  map[string]bool
	copied  map[copyKey]bool
	copies  []Exchange // of replies that were judged for another zone, too
	hosts   map[dnsname.Name]found
	looking []dnsname.Name                   // names of servers that are being looked up, one because of the other
	count   int                              // names that were looked up
	walks   int                              // zones that were entered, again or for the first time
	load    map[netip.Addr]map[Question]bool // what servers were asked
	result  Class
}

type askKey struct {
	server netip.Addr
	q      Question
}

// copyKey is a question to a server as seen from another zone.
type copyKey struct {
	zone dnsname.Name
	askKey
}

// result is what came of a job; the rest is there when done is closed.
type result struct {
	job
	done      chan struct{}
	exchanges []Exchange
	reply     *dns.Msg
	err       error
}

// verdict is a result as seen from a zone.
type verdict struct {
	server netip.Addr
	class  Class
	reply  *dns.Msg
}

func newRun(it *Iterator, q Question) *run {
	return &run{opts: it.Options, exchanger: it.Exchanger, q: q, began: time.Now(), asked: map[askKey]*result{},
		cookies: map[netip.Addr]string{}, wasted: map[netip.Addr]time.Duration{}, ended: map[string]bool{}}
}

// pass goes the whole way, as far as it is known.
func (r *run) pass() {
	r.omitted = false
	r.way = way{zones: map[dnsname.Name]*zone{}, limits: map[string]bool{}, hosts: map[dnsname.Name]found{}, copied: map[copyKey]bool{},
		load: map[netip.Addr]map[Question]bool{}, result: Unknown}
	root := &zone{name: dnsname.Root, hosts: map[dnsname.Name]*host{}}
	for _, h := range r.opts.Hints {
		root.host(h.Name).glue = h.Glue
	}
	r.add(root)
	r.chase()
	r.secure()
}

// start sends a question to a server, unless that was done before.
func (r *run) start(j job) *result {
	k := askKey{j.server, j.q}
	if r.load[j.server] == nil {
		r.load[j.server] = map[Question]bool{}
	}
	r.load[j.server][j.q] = true
	if res, ok := r.asked[k]; ok {
		return res
	}
	res := &result{job: j, done: make(chan struct{})}
	r.asked[k] = res
	r.working.Go(func() {
		defer close(res.done)
		res.exchanges, res.reply, res.err = r.do(j)
	})
	return res
}

// ask asks servers of a zone, all at once, and waits for them, though not for slow ones.
func (r *run) ask(z *zone, servers []netip.Addr, q Question) []verdict {
	var waiting []*result
	for _, s := range servers {
		waiting = append(waiting, r.start(job{zone: z.name, server: s, q: q}))
	}
	return r.collect(z, waiting)
}

// collect are the verdicts that are there in time.
func (r *run) collect(z *zone, waiting []*result) (out []verdict) {
	r.await(z, waiting)
	for _, res := range waiting {
		if !res.isDone() {
			r.omitted = true
			continue
		}
		v := r.judge(z, res)
		out = append(out, v)
		r.copyFor(z, res, v)
	}
	return out
}

// await waits for all results, or for a good one and until the grace of the others has passed.
func (r *run) await(z *zone, waiting []*result) {
	look := time.NewTicker(grace / 10)
	defer look.Stop()
	began := time.Now()
	for {
		missing := slices.IndexFunc(waiting, func(res *result) bool { return !res.isDone() })
		if missing < 0 {
			return
		}
		if time.Since(began) >= grace && slices.ContainsFunc(waiting, func(res *result) bool {
			return res.isDone() && r.judge(z, res).class.Usable()
		}) {
			return
		}
		select {
		case <-waiting[missing].done:
		case <-look.C:
		}
	}
}

// askOne asks servers of a zone one after the other until one replies well. It goes on to the next when one is slow.
func (r *run) askOne(z *zone, servers []netip.Addr, q Question) (out []verdict) {
	var waiting []*result
	for _, s := range r.bestFirst(z, servers) {
		res := r.start(job{zone: z.name, server: s, q: q})
		waiting = append(waiting, res)
		select {
		case <-res.done:
		case <-time.After(grace):
			r.omitted = true // even if it replies before the others
			continue
		}
		if v := r.judge(z, res); v.class.Usable() {
			r.copyFor(z, res, v)
			return []verdict{v}
		}
	}
	return r.collect(z, waiting)
}

// A server that was asked busy questions is let be if others are not slower than its turns: the default rate, whatever the
// rate is.
const (
	busy = 4
	turn = 100 * time.Millisecond
)

// bestFirst puts servers first that are known to be good for the zone, the fastest of them before the others, and last those
// that are not. One that was asked nearly as much as the rate allows is as slow as the wait for its turn makes it. It looks
// only at what was asked before on the same way.
func (r *run) bestFirst(z *zone, servers []netip.Addr) []netip.Addr {
	if !z.surveyed {
		return servers
	}
	cost := func(s netip.Addr) time.Duration {
		res, ok := r.asked[askKey{s, Question{z.name, rr.Type(dns.TypeNS)}}]
		if !ok || !res.isDone() || !r.judge(z, res).class.Usable() {
			return time.Hour
		}
		sum := time.Duration(max(0, len(r.load[s])-busy)) * turn
		for _, e := range res.exchanges {
			sum += e.RTT
		}
		return sum
	}
	return slices.SortedStableFunc(slices.Values(servers), func(a, b netip.Addr) int { return cmp.Compare(cost(a), cost(b)) })
}

func (res *result) isDone() bool {
	select {
	case <-res.done:
		return true
	default:
		return false
	}
}

func (r *run) judge(z *zone, res *result) verdict {
	return verdict{res.server, Classify(z.name, res.q, res.reply, res.err), res.reply}
}

// copyFor writes down what a reply means for another zone than the one it was asked for.
func (r *run) copyFor(z *zone, res *result, v verdict) {
	if res.zone == z.name || len(res.exchanges) == 0 {
		return
	}
	e := res.exchanges[len(res.exchanges)-1]
	e.Zone, e.Class, e.Try = z.name, v.class, 0
	k := copyKey{z.name, askKey{res.server, res.q}}
	if v.class == Unknown || r.copied[k] {
		return
	}
	r.copied[k] = true
	r.copies = append(r.copies, e)
}

func (r *run) note(kind string, z dnsname.Name, subject string) {
	n := Note{kind, z, subject}
	if !slices.Contains(r.notes, n) {
		r.notes = append(r.notes, n)
	}
}
