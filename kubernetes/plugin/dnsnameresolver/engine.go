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
	syncWait    = 5 * time.Second // for the first list of objects; after that we serve without
	maxDeleted = 1024
	// linger is how long answers for a deleted object are still held: one that is deleted by hand, or with its rule for a moment, is made
	// again, and the firewall may have had its name all the while.
	linger = 2 * time.Second
	// A lesson waits for others to go with it, from the first to the second of these, by the replica's turn: when the resolver
	// asks several replicas for a name, the later ones see the write of the first and need not make theirs.
	minCoalesce, maxCoalesce = 5 * time.Millisecond, 50 * time.Millisecond
	// Each entry of an object makes every write of it dearer for the API server, which reads and writes all of them several
	// times: 40 ms of CPU for 130 entries were measured. So that the wait grows with them, up to a limit.
	coalescePerEntry, maxCoalesceExtra = 500 * time.Microsecond, 150 * time.Millisecond
)

// engine is what stands behind all server blocks with the same options.
type engine struct {
	opts    options
	log     clog.P
	store   *store
	hold    *hold.Client // nil: no agents
	policy  learn.Policy
	cluster networks // are refused by policy as well
	rules   learn.Rules
	replica string
	tree    atomic.Pointer[match.Tree[*object]] // of active objects
	recent  recent
	queue   workqueue.TypedDelayingInterface[*object]
	changed chan struct{} // the objects are not those of the tree; holds one
	recalls chan struct{} // one for each question that is being asked again
	stop    context.CancelFunc
	ending  atomic.Bool
	writers sync.WaitGroup
	running sync.WaitGroup // all others
	known   atomic.Int64   // addresses that objects remember

	mu       sync.Mutex // guards all below
	objects  map[types.NamespacedName]*object
	deleted map[patternKey]*object // deleted ones, of which clients may still use addresses
	fresh    []*object         // not in the tree yet
	seq      uint64
}

// place is a pattern in a namespace. There is one active object for it: the one seen first.
type patternKey struct {
	namespace string
	pattern   enforce.Pattern
}

func newEngine(o options, s *store) *engine {
	e := &engine{
		opts: o, log: clog.NewWithPlugin(Name), store: s, policy: learn.Policy{Refuse: o.refuse, Permit: o.permit, Special: specialaddr.Table{NAT64: o.nat64}},
		rules:   learn.Rules{MinTTL: o.minTTL, MaxTTL: o.maxTTL, Threshold: o.threshold, Lease: o.lease, MaxNames: o.maxNames, MaxBytes: o.maxBytes},
		cluster: networks{changed: make(chan struct{}, 1), byObject: map[string][]learn.Network{}},
		queue:   workqueue.NewTypedDelayingQueue[*object](),
		changed: make(chan struct{}, 1), recalls: make(chan struct{}, recallers), objects: map[types.NamespacedName]*object{}, deleted: map[patternKey]*object{},
	}
	e.recent.now.Store(time.Now().Unix())
	host, _ := os.Hostname()
	e.replica = host + " " + s.replica // several may run on one host
	if len(o.agents) > 0 || o.service.name != "" {
		e.hold = hold.NewClient(hold.Options{Dial: o.tls.Dial, Timeout: o.timeout, Log: slogTo(e.log)})
		e.hold.SetAgents(o.agents)
	}
	return e
}

// learn takes the lesson of a reply for all objects that its name is in, and waits for what the options say. waited tells
// whether there was something to wait for, and err how that failed.
func (e *engine) learn(ctx context.Context, objects []*object, l learn.Observation, client netip.Addr) (waited bool, err error) {
	tickets, what := e.record(objects, l)
	if e.hold != nil && len(what) > 0 {
		if e.opts.wait == waitAgent {
			return true, e.hold.Hold(ctx, client, what)
		}
		e.hold.Tell(what)
	}
	if e.opts.wait == waitStatus && len(what) > 0 && len(tickets) > 0 {
		return true, e.waitStored(ctx, tickets)
	}
	return false, nil
}

// tell is learn without waiting.
func (e *engine) notify(objects []*object, l learn.Observation) {
	if _, what := e.record(objects, l); e.hold != nil && len(what) > 0 {
		e.hold.Tell(what)
	}
}

// ticket is a write that will carry a lesson.
type ticket struct {
	object *object
	gen    uint64
}

// take brings a lesson to its objects, and makes what agents are told of it.
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

// enqueue asks for a write of an object.
func (e *engine) enqueue(o *object) {
	if e.opts.wait == waitStatus {
		e.queue.Add(o)
		return
	}
	delay := minCoalesce + time.Duration(o.rank(o.text)*float64(maxCoalesce-minCoalesce))
	e.queue.AddAfter(o, delay+min(time.Duration(o.count())*coalescePerEntry, maxCoalesceExtra))
}

// maxMessages is how many messages to an agent one answer makes. Records of a set have one TTL (RFC 2181 §5.2); whoever gives each address
// another one must not fill the queues of all agents.
const maxMessages = 8

// leases returns what the agents get: addresses with equal TTLs in one message. No address is leased for longer than its TTL
// and the grace. Addresses beyond the bound join the last message, with the shortest lease of that one.
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

// allowed are the addresses of a lesson that the policy does not refuse.
func (e *engine) allowed(objects []*object, l learn.Observation, now time.Time) []learn.Address {
	policy := e.policy
	policy.Cluster = e.cluster.now.Load()
	return slices.DeleteFunc(slices.Clone(l.Addrs), func(a learn.Address) bool {
		why := policy.Refused(a.Addr)
		if why == "" && e.hold != nil && slices.ContainsFunc(append(policy.Special.Ends(a.Addr), a.Addr), e.hold.Serves) && !policy.Permits(a.Addr) {
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

// warn makes an Event at an object.
func (e *engine) warn(o *object, reason, format string, args ...any) {
	if e.store.events != nil {
		e.store.events.Eventf(o.newest(), "Warning", reason, format, args...)
	}
	e.log.Warningf("%s: "+format, append([]any{o.key}, args...)...)
}

// waitStored returns when all tickets are stored.
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

// OnAdd, OnUpdate and OnDelete are how the watch tells of objects.
func (e *engine) OnAdd(v any, _ bool) { e.upsert(v, false) }

func (e *engine) OnUpdate(old, v any) {
	was, ok := old.(*v1alpha1.DNSNameResolver)
	is, ok2 := v.(*v1alpha1.DNSNameResolver)
	e.upsert(v, ok && ok2 && older(is.ResourceVersion, was.ResourceVersion))
}

func (e *engine) OnDelete(v any) {
	key, err := cache.DeletionHandlingObjectToName(v) // the watch may have missed the deletion itself, and not know the object any more
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removeLocked(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
}

// upsert takes an object as it is; back says that it was newer before.
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

// forgetLocked lets go of deleted objects of which nobody uses an address any more, and of those that left first if all of them remember more
// than one object may: whoever makes and deletes rules must not fill the memory.
func (e *engine) forgetLocked() {
	now, known := e.store.clock.now(), 0
	left := slices.SortedFunc(maps.Values(e.deleted), func(a, b *object) int { return cmp.Compare(a.deletedFor(now), b.deletedFor(now)) })
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

// rebuild makes the tree of what there is now, and returns what is new in it.
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
	objectCount.Set(float64(live)) // last, so that who sees it can count on it
	return fresh
}
