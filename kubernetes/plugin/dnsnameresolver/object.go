package dnsnameresolver

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

const (
	maxWarned = 64 // maximum number of Events about refused addresses of one object within warnEvery
	warnEvery = 10 * time.Minute
)

// object is one DNSNameResolver: its stored state and what this replica knows beyond it.
type object struct {
	key     types.NamespacedName
	pattern enforce.Pattern
	text    string // text form of pattern
	seq     uint64 // order in which objects were seen
	replica string

	mu      sync.Mutex // guards the fields below
	live    *v1alpha1.DNSNameResolver
	entries []learn.Entry // entries of live
	index   map[string]int
	names   map[string]*memory
	known   int           // number of addresses in names
	total   *atomic.Int64 // number of addresses in names of all objects
	dropped bool          // nothing will inherit the memories
	due     time.Time     // when the next name must be evaluated
	gen     uint64        // number of observations that needed a write
	written uint64        // observations up to this number are stored
	// progress is closed when written increases or the object is deleted.
	progress      chan struct{}
	hostnamesOnly bool      // the API accepts only hostnames
	refused       int       // consecutive writes that the API server rejected without a conflict
	failed        int       // consecutive writes that failed
	writing       bool      // a write is in flight
	lastSweep     time.Time // time of the last sweep of unneeded memories
	notBefore     time.Time // no write before this time
	deletedAt     time.Time // zero unless the object was deleted
	successor     *object   // the object that inherited the memories after a deletion
	warned        map[warning]time.Time
	warnedFull    time.Time // time of the last Event about names that did not fit
}

func newObject(live *v1alpha1.DNSNameResolver, p enforce.Pattern, replica string, seq uint64) *object {
	o := &object{
		key: types.NamespacedName{Namespace: live.Namespace, Name: live.Name}, pattern: p, text: p.String(), seq: seq,
		replica: replica,
		names:   map[string]*memory{}, total: new(atomic.Int64), progress: make(chan struct{}),
		warned: map[warning]time.Time{},
	}
	o.live = live
	o.entries, o.index = indexed(live)
	return o
}

// set stores a new version of the object, unless it is older than the current one: replies to this replica's writes
// overtake the watch. back means that an older version counts, as after a restored backup of the database. set reports
// whether another client removed or shortened an address that clients may still use.
func (o *object) set(live *v1alpha1.DNSNameResolver, back bool, now time.Time) (shortened bool) {
	newer, at := indexed(live) // outside the lock: queries need it
	o.mu.Lock()
	defer o.mu.Unlock()
	if !back && live.UID == o.live.UID && older(live.ResourceVersion, o.live.ResourceVersion) {
		return false
	}
	entries, index := o.entries, o.index
	o.live, o.entries, o.index = live, newer, at
	for n, m := range o.names {
		i, ok := index[n]
		if !ok {
			continue
		}
		var is learn.Entry
		j, remains := o.index[n]
		if remains {
			is = o.entries[j]
		}
		if !o.writing { // the watch may report this replica's own write
			m.NoteCounted(entries[i], is, now)
		}
		if m.dirty || !m.Shortened(entries[i], is, now) {
			continue
		}
		if m.due, o.due, shortened = now, now, true; !remains {
			m.MarkUnwritten()
		}
	}
	return shortened
}

func older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// indexed returns the entries of an object, and the index of each name.
func indexed(live *v1alpha1.DNSNameResolver) ([]learn.Entry, map[string]int) {
	entries := fromStatus(live.Status)
	index := make(map[string]int, len(entries))
	for i, e := range entries {
		index[strings.ToLower(e.Name)] = i
	}
	return entries, index
}

// newest returns the newest version of the object.
func (o *object) newest() *v1alpha1.DNSNameResolver {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.live
}

// count returns the number of stored entries.
func (o *object) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.entries)
}

func (o *object) wildcard() bool { return o.pattern.Kind() != enforce.Exact }

// rank returns the position of this replica among all replicas for a name, from 0 to 1.
func (o *object) rank(name string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(o.replica + " " + name))
	return float64(h.Sum32()) / (1 << 32)
}

func (o *object) learnObject() learn.Object {
	return learn.Object{Name: o.text, Wildcard: o.wildcard(), Rank: o.rank, HostnamesOnly: o.hostnamesOnly}
}

// note adds an observation. It returns the number of the write that will contain it, or 0 if none is needed. due is the
// time at which the object must be evaluated again, or zero.
func (o *object) note(r learn.Rules, l learn.Observation, now time.Time) (gen uint64, due time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dropped {
		return 0, time.Time{}
	}
	i, stored := o.index[l.Name]
	m := o.names[l.Name]
	room := o.roomLocked(len(l.Addrs), now)
	// Always renew stored names, even if invented names filled the memory: the number of stored names is bounded.
	if m == nil && !stored && (len(l.Addrs) == 0 || !room || len(o.names) >= maxMemories) {
		return 0, time.Time{}
	}
	if m == nil {
		m = &memory{}
		o.names[l.Name] = m
	}
	e := learn.Entry{Name: l.Name}
	if stored {
		e = o.entries[i]
	}
	before := m.Known()
	if !room {
		l.Partial = true // addresses that do not fit are not missing in the answer
		l.Addrs = slices.DeleteFunc(slices.Clone(l.Addrs),
			func(a learn.Address) bool { return !m.Knows(a.Addr) && !e.Has(a.Addr) })
	}
	r.Note(&m.Memory, e, l, now)
	o.countLocked(m.Known() - before)
	if !o.deletedAt.IsZero() {
		return 0, time.Time{} // for the successor
	}
	res := o.evaluateLocked(r, l.Name, m, now)
	m.due = res.Due
	// During a write the stored state is unknown: a failure may concern an entry that the write adds.
	if !res.Changed && !(o.writing && m.Failing()) {
		if !m.dirty {
			m.TakePending()
		}
		return 0, o.scheduleLocked(res.Due)
	}
	m.dirty = true
	o.gen++
	return o.gen, time.Time{}
}

// evaluateLocked merges one name, with only the entries that matter for it: an object may have a thousand.
func (o *object) evaluateLocked(r learn.Rules, name string, m *memory, now time.Time) learn.Result {
	var relevant []learn.Entry
	if own, ok := o.index[o.text]; ok && o.wildcard() && name != o.text {
		relevant = append(relevant, o.entries[own])
	}
	if i, ok := o.index[name]; ok {
		relevant = append(relevant, o.entries[i])
	}
	r.MaxNames, r.MaxBytes = 0, 0
	return r.Merge(relevant, o.learnObject(), map[string]*learn.Memory{name: &m.Memory}, now)
}

// scheduleLocked sets the next evaluation to the given time, if that is earlier. It returns the time if it changed, or
// zero.
func (o *object) scheduleLocked(at time.Time) time.Time {
	if at.IsZero() || !o.due.IsZero() && !at.Before(o.due) {
		return time.Time{}
	}
	o.due = at
	return at
}

func (o *object) storedLocked(gen uint64) {
	if gen > o.written {
		o.written = gen
		close(o.progress)
		o.progress = make(chan struct{})
	}
}

// isStored reports whether observation number gen is stored. The channel is closed when more observations are stored.
func (o *object) isStored(gen uint64) (bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.deletedAt.IsZero() || o.written >= gen, o.progress
}

// nextDue returns the time at which the object must be evaluated without a new observation, or zero.
func (o *object) nextDue() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.due
}

// delayWrites postpones the next write by d.
func (o *object) delayWrites(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notBefore = time.Now().Add(d)
}

// writeDelay returns the remaining delay of the next write.
func (o *object) writeDelay() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Until(o.notBefore)
}

// alive reports whether a failed write should be retried: clients may still use one of its addresses.
func (o *object) alive(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.names {
		if m.dirty && m.Alive(now) {
			return o.deletedAt.IsZero()
		}
	}
	return false
}

// unwritten reports whether there is anything to write.
func (o *object) unwritten() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.names {
		if m.dirty {
			return true
		}
	}
	return false
}

// markDeleted marks the object as deleted and releases the replies that wait for it.
func (o *object) markDeleted(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.deletedAt.IsZero() {
		o.deletedAt = now
		close(o.progress)
		o.progress = make(chan struct{})
	}
}

// deletedFor returns the time since the object was deleted.
func (o *object) deletedFor(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Sub(o.deletedAt)
}

// current returns the object, or its latest successor: a query may have found the old object just before the change.
func (o *object) current() *object {
	o.mu.Lock()
	successor := o.successor
	o.mu.Unlock()
	if successor == nil {
		return o
	}
	return successor.current()
}

// warning identifies the subject of an Event about a refused address. It has no address, because a server may return
// many addresses of one kind.
type warning struct{ name, why string }

// warn reports whether an Event is due.
func (o *object) warn(w warning, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.warned[w]) < warnEvery {
		return false
	}
	if len(o.warned) >= maxWarned {
		maps.DeleteFunc(o.warned, func(_ warning, at time.Time) bool { return now.Sub(at) >= warnEvery })
	}
	if len(o.warned) >= maxWarned {
		return false // a server that invents names must not fill the log
	}
	o.warned[w] = now
	return true
}

// warnFull reports whether an Event about names that did not fit is due.
func (o *object) warnFull(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.warnedFull) < warnEvery {
		return false
	}
	o.warnedFull = now
	return true
}
