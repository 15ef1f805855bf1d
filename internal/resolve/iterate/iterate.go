// Package iterate resolves a name from the root down, queries every server of every zone on the path, and records all
// replies.
//
// An Iterator finds faults; it is not built for speed. A resolver needs one good reply, but an Iterator records how
// each server replies, and what parent and child say about each other.
//
// Start with Iterator.Run in iterate.go: it returns a Trace (trace.go), from which other packages draw conclusions.
// The walk itself is in walk.go, the servers of a zone in zone.go, and the meaning of a reply in classify.go.
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

// Iterator walks from the root to a name.
type Iterator struct {
	Exchanger resolve.Exchanger // a resolve.Client must have AsIs set, so that servers can be queried without EDNS
	Options   Options
}

// grace is how long a step waits for slow servers after the first usable reply. Later replies are not lost: the next
// pass of the walk uses them. Without grace, each level with a dead server would take ten of the twenty seconds.
const grace = time.Second

// maxPasses limits the number of passes of a walk.
const maxPasses = 30

// Run walks to a question. The trace is complete unless its Unfinished field is set. Errors are never about servers:
// the question is invalid, or ctx ended.
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

// run is the state of one walk. It belongs to one goroutine; only queries are sent on other goroutines.
type run struct {
	opts      Options
	exchanger resolve.Exchanger
	q         Question
	ctx       context.Context
	began     time.Time
	asked     map[askKey]*result
	working   sync.WaitGroup
	omitted   bool // a result was not available when this pass needed it

	passState

	mu      sync.Mutex // guards the following
	cookies map[netip.Addr]string
	waited  map[netip.Addr]time.Duration // time without a reply from a server
	ended   map[string]bool              // the limits that were reached
}

// passState is the state of one pass. It starts empty; only the results of the queries survive from earlier passes.
type passState struct {
	zones  map[dnsname.Name]*zone
	order  []*zone
	chain  []Link
	notes  []Note
	limits map[string]bool
	copied map[copyKey]bool
	copies []Exchange // replies that were also classified for another zone
	hosts  map[dnsname.Name]found
	// stack of server names that are being looked up, each because of the one before it
	looking []dnsname.Name
	count   int                              // number of server names that were looked up
	walks   int                              // number of zones that were entered, including repetitions
	load    map[netip.Addr]map[Question]bool // the questions for each server
	result  Class
}

type askKey struct {
	server netip.Addr
	q      Question
}

// copyKey identifies a question to a server that is classified for another zone.
type copyKey struct {
	zone dnsname.Name
	askKey
}

// result is the result of a job. The fields after done may be read when done is closed.
type result struct {
	job
	done      chan struct{}
	exchanges []Exchange
	reply     *dns.Msg
	err       error
}

// verdict is a result classified for a zone.
type verdict struct {
	server netip.Addr
	class  Class
	reply  *dns.Msg
}

func newRun(it *Iterator, q Question) *run {
	return &run{opts: it.Options, exchanger: it.Exchanger, q: q, began: time.Now(), asked: map[askKey]*result{},
		cookies: map[netip.Addr]string{}, waited: map[netip.Addr]time.Duration{}, ended: map[string]bool{}}
}

// pass walks from the root to the question, using the results that are available.
func (r *run) pass() {
	r.omitted = false
	r.passState = passState{zones: map[dnsname.Name]*zone{}, limits: map[string]bool{}, hosts: map[dnsname.Name]found{},
		copied: map[copyKey]bool{}, load: map[netip.Addr]map[Question]bool{}, result: Unknown}
	root := &zone{name: dnsname.Root, hosts: map[dnsname.Name]*host{}}
	for _, h := range r.opts.Hints {
		root.host(h.Name).glue = h.Glue
	}
	r.add(root)
	r.chase()
	r.askDNSSEC()
}

// start sends a question to a server, unless it was sent before.
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

// ask sends a question to servers of a zone, to all at once. It waits for the replies, except those of slow servers.
func (r *run) ask(z *zone, servers []netip.Addr, q Question) []verdict {
	var waiting []*result
	for _, s := range servers {
		waiting = append(waiting, r.start(job{zone: z.name, server: s, q: q}))
	}
	return r.collect(z, waiting)
}

// collect returns the verdicts of the results that arrive in time.
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

// await blocks until all results are available, or until grace has passed and one of them is usable.
func (r *run) await(z *zone, waiting []*result) {
	tick := time.NewTicker(grace / 10)
	defer tick.Stop()
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
		case <-tick.C:
		}
	}
}

// askOne sends a question to one server of a zone after the other until a reply is usable. It does not wait longer
// than grace for a slow server.
func (r *run) askOne(z *zone, servers []netip.Addr, q Question) (out []verdict) {
	var waiting []*result
	for _, s := range r.bestFirst(z, servers) {
		res := r.start(job{zone: z.name, server: s, q: q})
		waiting = append(waiting, res)
		select {
		case <-res.done:
		case <-time.After(grace):
			r.omitted = true // even if it replies before the servers after it
			continue
		}
		if v := r.judge(z, res); v.class.Usable() {
			r.copyFor(z, res, v)
			return []verdict{v}
		}
	}
	return r.collect(z, waiting)
}

// After busyQuestions questions a server counts as slower by queryInterval for each further one, so that others are
// preferred. queryInterval fits the default rate and does not depend on the actual one.
const (
	busyQuestions = 4
	queryInterval = 100 * time.Millisecond
)

// bestFirst orders servers: those with usable replies for the zone first, the fastest before the others, then the
// rest. A server that was asked nearly as often as the rate allows is as slow as the wait for its rate limit. Only
// questions of the same pass count.
func (r *run) bestFirst(z *zone, servers []netip.Addr) []netip.Addr {
	if !z.surveyed {
		return servers
	}
	cost := func(s netip.Addr) time.Duration {
		res, ok := r.asked[askKey{s, Question{z.name, rr.Type(dns.TypeNS)}}]
		if !ok || !res.isDone() || !r.judge(z, res).class.Usable() {
			return time.Hour
		}
		sum := time.Duration(max(0, len(r.load[s])-busyQuestions)) * queryInterval
		for _, e := range res.exchanges {
			sum += e.RTT
		}
		return sum
	}
	byCost := func(a, b netip.Addr) int { return cmp.Compare(cost(a), cost(b)) }
	return slices.SortedStableFunc(slices.Values(servers), byCost)
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

// copyFor records the class of a reply for another zone than the one it was requested for.
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
