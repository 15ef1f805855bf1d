package dnsnameresolver

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clog "github.com/coredns/coredns/plugin/pkg/log"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/match"
)

const (
	syncWait   = 5 * time.Second // maximum wait for the first list of objects; after that the plugin serves without it
	maxDeleted = 1024
	// linger is the time for which answers for a deleted object are still held. An object that is deleted by hand, or
	// together with its rule, is often created again. The firewall may contain the name all the time.
	linger = 2 * time.Second
	// A new observation waits between minCoalesce and maxCoalesce for others that can join its write. The delay depends on
	// the rank of the replica. When the resolver queries several replicas for a name, the later ones see the write of the
	// first one and need not write themselves.
	minCoalesce, maxCoalesce = 5 * time.Millisecond, 50 * time.Millisecond
	// The cost of a write grows with the number of entries, because the API server reads and writes all of them several
	// times: 130 entries took 40 ms of CPU. The delay therefore grows by coalescePerEntry per entry, up to
	// maxCoalesceExtra.
	coalescePerEntry, maxCoalesceExtra = 500 * time.Microsecond, 150 * time.Millisecond
)

// engine is the state that all server blocks with the same options share.
type engine struct {
	opts    options
	log     clog.P
	store   *store
	hold    *hold.Client // nil if there are no agents
	policy  learn.Policy
	cluster networks // networks of the cluster, refused in addition to policy
	rules   learn.Rules
	replica string
	tree    atomic.Pointer[match.Tree[*object]] // matches names to active objects
	recent  recent
	queue   workqueue.TypedDelayingInterface[*object]
	changed chan struct{} // signals that the tree must be rebuilt; has capacity one
	recalls chan struct{} // semaphore for repeated queries
	stop    context.CancelFunc
	ending  atomic.Bool
	writers sync.WaitGroup
	running sync.WaitGroup // all goroutines except writers
	known   atomic.Int64   // number of addresses that all objects remember

	mu      sync.Mutex // guards the fields below
	objects map[types.NamespacedName]*object
	deleted map[patternKey]*object // deleted objects whose addresses clients may still use
	fresh   []*object              // not in the tree yet
	seq     uint64
}

// patternKey is a pattern in a namespace. There is one active object per key: the one that was seen first.
type patternKey struct {
	namespace string
	pattern   enforce.Pattern
}

func newEngine(o options, s *store) *engine {
	e := &engine{
		opts: o, log: clog.NewWithPlugin(Name), store: s,
		policy: learn.Policy{Refuse: o.refuse, Permit: o.permit, Special: specialaddr.Table{NAT64: o.nat64}},
		rules: learn.Rules{MinTTL: o.minTTL, MaxTTL: o.maxTTL, Threshold: o.threshold, Lease: o.lease, MaxNames: o.maxNames,
			MaxBytes: o.maxBytes},
		cluster: networks{changed: make(chan struct{}, 1), byObject: map[string][]learn.Network{}},
		queue:   workqueue.NewTypedDelayingQueue[*object](),
		changed: make(chan struct{}, 1), recalls: make(chan struct{}, recallers), objects: map[types.NamespacedName]*object{},
		deleted: map[patternKey]*object{},
	}
	e.recent.now.Store(time.Now().Unix())
	host, _ := os.Hostname()
	e.replica = host + " " + s.replica // several replicas may run on one host
	if len(o.agents) > 0 || o.service.name != "" {
		e.hold = hold.NewClient(hold.Options{Dial: o.tls.Dial, Timeout: o.timeout, Log: slogTo(e.log)})
		e.hold.SetAgents(o.agents)
	}
	return e
}

// learn records an observation for all matching objects and waits as the options say. waited reports whether there was
// anything to wait for, and err why the wait failed.
func (e *engine) learn(ctx context.Context, objects []*object, l learn.Observation, client netip.Addr) (waited bool,
	err error) {
	tickets, what := e.record(objects, l)
	if e.hold != nil && len(what) > 0 {
		if e.opts.wait == waitAgent {
			return true, e.hold.Hold(ctx, client, what)
		}
		e.hold.Send(what)
	}
	if e.opts.wait == waitStatus && len(what) > 0 && len(tickets) > 0 {
		return true, e.waitStored(ctx, tickets)
	}
	return false, nil
}

// notify records an observation without waiting.
func (e *engine) notify(objects []*object, l learn.Observation) {
	if _, what := e.record(objects, l); e.hold != nil && len(what) > 0 {
		e.hold.Send(what)
	}
}

// ticket identifies the write that will contain an observation.
type ticket struct {
	object *object
	gen    uint64
}

// record adds an observation to its objects. It returns the writes that will contain it, and the messages for the
// agents.
func (e *engine) record(objects []*object, l learn.Observation) (tickets []ticket, what []hold.Learned) {
	now := e.store.clock.now()
	l.Addrs = e.allowed(objects, l, now)
	var patterns []string
	for _, o := range objects {
		gen, due := o.note(e.rules, l, now)
		if successor := o.current(); successor != o {
			o = successor
			gen, due = o.note(e.rules, l, now)
		}
		switch {
		case gen > 0:
			tickets = append(tickets, ticket{o, gen})
			e.enqueue(o)
		case !due.IsZero():
			e.queue.AddAfter(o, due.Sub(now))
		}
		if !slices.Contains(patterns, o.text) {
			patterns = append(patterns, o.text)
			what = append(what, leases(o.text, l)...)
		}
	}
	return tickets, what
}

// enqueue schedules a write of an object.
func (e *engine) enqueue(o *object) {
	if e.opts.wait == waitStatus {
		e.queue.Add(o)
		return
	}
	delay := minCoalesce + time.Duration(o.rank(o.text)*float64(maxCoalesce-minCoalesce))
	e.queue.AddAfter(o, delay+min(time.Duration(o.count())*coalescePerEntry, maxCoalesceExtra))
}

// maxMessages is the maximum number of messages to an agent for one answer. All records of a set have one TTL (RFC 2181
// §5.2). A server that gives each address another TTL must not fill the queues of all agents.
const maxMessages = 8

// leases returns the messages for the agents. Addresses with equal TTLs share a message. No address is leased for
// longer than its TTL plus the grace. If there are more than maxMessages TTLs, the remaining addresses join the last
// message, which takes the shortest of their leases.
func leases(pattern string, l learn.Observation) []hold.Learned {
	var out []hold.Learned
	for _, a := range l.Addrs {
		lease := a.TTL + learn.Grace
		i := slices.IndexFunc(out, func(x hold.Learned) bool { return x.Lease == lease })
		if i < 0 && len(out) < maxMessages {
			out = append(out, hold.Learned{Pattern: pattern, Name: l.Name, Lease: lease})
		}
		if i < 0 {
			i = len(out) - 1
			out[i].Lease = min(out[i].Lease, lease)
		}
		out[i].Addrs = append(out[i].Addrs, a.Addr)
	}
	return out
}

// allowed returns the addresses of an observation that the policy does not refuse.
func (e *engine) allowed(objects []*object, l learn.Observation, now time.Time) []learn.Address {
	policy := e.policy
	policy.Cluster = e.cluster.now.Load()
	return slices.DeleteFunc(slices.Clone(l.Addrs), func(a learn.Address) bool {
		why := policy.Refused(a.Addr)
		if why == "" && e.hold != nil && slices.ContainsFunc(append(policy.Special.Ends(a.Addr), a.Addr), e.hold.Serves) &&
			!policy.Permits(a.Addr) {
			why = "an address of a pod"
		}
		if why == "" {
			return false
		}
		refusedAddresses.WithLabelValues(why).Inc()
		for _, o := range objects {
			if o.warn(warning{l.Name, why}, now) {
				e.warn(o, "AddressRefused", "%s has the address %s, which is not allowed: %s", l.Name, a.Addr, why)
			}
		}
		return true
	})
}

// warn records an Event for an object and logs it.
func (e *engine) warn(o *object, reason, format string, args ...any) {
	if e.store.events != nil {
		e.store.events.Eventf(o.newest(), "Warning", reason, format, args...)
	}
	e.log.Warningf("%s: "+format, append([]any{o.key}, args...)...)
}

// waitStored blocks until all tickets are stored.
func (e *engine) waitStored(ctx context.Context, tickets []ticket) error {
	timer := time.NewTimer(e.opts.timeout)
	defer timer.Stop()
	for _, t := range tickets {
		for {
			ok, progress := t.object.isStored(t.gen)
			if ok {
				break
			}
			select {
			case <-progress:
			case <-ctx.Done():
				return ctx.Err()
			case <-timer.C:
				return hold.ErrTimeout
			}
		}
	}
	return nil
}

// OnAdd, OnUpdate and OnDelete implement cache.ResourceEventHandler.
func (e *engine) OnAdd(v any, _ bool) { e.upsert(v, false) }

func (e *engine) OnUpdate(old, v any) {
	was, ok := old.(*v1alpha1.DNSNameResolver)
	is, ok2 := v.(*v1alpha1.DNSNameResolver)
	e.upsert(v, ok && ok2 && older(is.ResourceVersion, was.ResourceVersion))
}

func (e *engine) OnDelete(v any) {
	// the watch may have missed the deletion, and no longer have the object
	key, err := cache.DeletionHandlingObjectToName(v)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removeLocked(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
}

// upsert adds or updates an object. back reports that the stored object was newer before, as after a restored backup.
func (e *engine) upsert(v any, back bool) {
	live, ok := v.(*v1alpha1.DNSNameResolver)
	if !ok {
		return
	}
	key := types.NamespacedName{Namespace: live.Namespace, Name: live.Name}
	p, err := enforce.ParsePattern(string(live.Spec.Name), enforce.PatternOptions{Deep: e.opts.deep})
	e.mu.Lock()
	defer e.mu.Unlock()
	if o := e.objects[key]; o != nil && err == nil && o.pattern == p && o.newest().UID == live.UID {
		if o.set(live, back, e.store.clock.now()) {
			e.enqueue(o)
		}
		return
	}
	e.removeLocked(key)
	if err != nil {
		e.log.Warningf("%s is ignored: %v", key, err)
		return
	}
	e.seq++
	o := newObject(live, p, e.replica, e.seq)
	o.total = &e.known
	e.objects[key] = o
	e.fresh = append(e.fresh, o)
	at := patternKey{key.Namespace, p}
	if old := e.deleted[at]; old != nil {
		delete(e.deleted, at)
		if o.inherit(old, e.store.clock.now()) {
			e.enqueue(o)
		}
	}
	e.signal()
}

func (e *engine) removeLocked(key types.NamespacedName) {
	o := e.objects[key]
	if o == nil {
		return
	}
	o.markDeleted(time.Now())
	time.AfterFunc(linger, e.signal)
	delete(e.objects, key)
	at := patternKey{key.Namespace, o.pattern}
	if before := e.deleted[at]; before != nil {
		before.drop()
	}
	if len(e.deleted) >= maxDeleted {
		for _, before := range e.deleted {
			before.drop()
		}
		clear(e.deleted)
	}
	e.deleted[at] = o
	e.signal()
}

// forgetLocked deletes the deleted objects whose addresses are no longer in use. If the remaining ones remember more
// than one object may, it also deletes the oldest ones: a client that creates and deletes rules must not fill the
// memory.
func (e *engine) forgetLocked() {
	now, known := e.store.clock.now(), 0
	left := slices.SortedFunc(maps.Values(e.deleted),
		func(a, b *object) int { return cmp.Compare(a.deletedFor(now), b.deletedFor(now)) })
	for _, o := range left {
		n := o.inUse(now)
		if known += n; known > maxKnown || n == 0 && o.deletedFor(time.Now()) >= linger {
			delete(e.deleted, patternKey{o.key.Namespace, o.pattern})
			o.drop()
		}
	}
}

func (e *engine) signal() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// rebuild builds the tree of the current objects and returns the objects that are new in it.
func (e *engine) rebuild() []*object {
	e.mu.Lock()
	first := map[patternKey]*object{}
	for _, o := range e.objects {
		at := patternKey{o.key.Namespace, o.pattern}
		if have := first[at]; have == nil || o.seq < have.seq {
			first[at] = o
		}
	}
	fresh := e.fresh
	e.fresh = nil
	live := len(first)
	e.forgetLocked()
	for at, o := range e.deleted {
		if first[at] == nil && o.deletedFor(time.Now()) < linger {
			first[at] = o
		}
	}
	e.mu.Unlock()
	tree := &match.Tree[*object]{}
	for at, o := range first {
		tree.Add(at.pattern, o)
	}
	e.tree.Store(tree)
	objectCount.Set(float64(live)) // last: tests wait for this value before they query
	return fresh
}
