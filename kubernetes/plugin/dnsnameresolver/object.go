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
	maxWarned = 64 // Events about refused addresses of one object, lately
	warnEvery = 10 * time.Minute
)

// object is one DNSNameResolver: what is stored in it, and what is known beyond that.
type object struct {
	key     types.NamespacedName
	pattern enforce.Pattern
	text    string // pattern, as it is written
	seq     uint64 // order in which they were seen
	replica string

	mu      sync.Mutex // guards all below
	live    *v1alpha1.DNSNameResolver
	entries []learn.Entry // of live
	index   map[string]int
	names   map[string]*memory
	known   int           // addresses in names
	total   *atomic.Int64 // addresses in names of all objects
	dropped bool          // nobody will inherit it
	due     time.Time     // when the next of names must be looked at
	gen     uint64        // counts lessons that need a write
	written uint64        // up to which of them all is stored
	progress   chan struct{}
	hostnamesOnly   bool      // the API takes plain names only
	refused int       // writes in a row that the API server did not take, though nobody was first
	failed  int       // writes in a row that failed
	writing bool      // a write is on its way
	lastSweep   time.Time // when memories were last looked through for ones of no use
	notBefore    time.Time // before which there is no other write
	deletedAt    time.Time // when it was deleted; zero: it was not
	successor    *object   // took over what was known, after that
	warned  map[warning]time.Time
	warnedFull    time.Time // when an Event was last made about names there was no room for
}

func newObject(live *v1alpha1.DNSNameResolver, p enforce.Pattern, replica string, seq uint64) *object {
	o := &object{
		key: types.NamespacedName{Namespace: live.Namespace, Name: live.Name}, pattern: p, text: p.String(), seq: seq, replica: replica,
		names: map[string]*memory{}, total: new(atomic.Int64), progress: make(chan struct{}), warned: map[warning]time.Time{},
	}
	o.live = live
	o.entries, o.index = indexed(live)
	return o
}

// set takes a version of the object, unless it is older than the one we have: replies to our own writes overtake the watch. An older one
// counts when all that there is went back to it, as after the database was restored. It reports whether somebody took something away that
// clients may still use.
func (o *object) set(live *v1alpha1.DNSNameResolver, back bool, now time.Time) (shortened bool) {
	newer, at := indexed(live) // questions do not wait for it
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
		if !o.writing { // it may be our own write that the watch tells of
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

// indexed are the entries of an object, and where each name is.
func indexed(live *v1alpha1.DNSNameResolver) ([]learn.Entry, map[string]int) {
	entries := fromStatus(live.Status)
	index := make(map[string]int, len(entries))
	for i, e := range entries {
		index[strings.ToLower(e.Name)] = i
	}
	return entries, index
}

// newest is the newest version of the object.
func (o *object) newest() *v1alpha1.DNSNameResolver {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.live
}

// count is how many entries are stored.
func (o *object) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.entries)
}

func (o *object) wildcard() bool { return o.pattern.Kind() != enforce.Exact }

// turn is this replica's place among others for a name.
func (o *object) rank(name string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(o.replica + " " + name))
	return float64(h.Sum32()) / (1 << 32)
}

func (o *object) learnObject() learn.Object {
	return learn.Object{Name: o.text, Wildcard: o.wildcard(), Rank: o.rank, HostnamesOnly: o.hostnamesOnly}
}

// note takes a lesson. It returns the number of the write that will have it, 0 when none is needed, and when the object must be
// looked at again; zero for never.
func (o *object) note(r learn.Rules, l learn.Observation, now time.Time) (gen uint64, due time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dropped {
		return 0, time.Time{}
	}
	i, stored := o.index[l.Name]
	m := o.names[l.Name]
	room := o.roomLocked(len(l.Addrs), now)
	// What is stored is renewed by who knows of it, however many names somebody makes up; there are not so many of them.
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
		l.Partial = true // what is left out is not missing in the answer
		l.Addrs = slices.DeleteFunc(slices.Clone(l.Addrs), func(a learn.Address) bool { return !m.Knows(a.Addr) && !e.Has(a.Addr) })
	}
	r.Note(&m.Memory, e, l, now)
	o.countLocked(m.Known() - before)
	if !o.deletedAt.IsZero() {
		return 0, time.Time{} // for who inherits
	}
	res := o.evaluateLocked(r, l.Name, m, now)
	m.due = res.Due
	// While a write is on its way, what is stored is not known: a failure may be one of an entry that it adds.
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

// lookLocked tells what becomes of one name, with only the entries that this needs: an object may have a thousand.
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

// dueLocked notes that something is due, and returns when the object must be looked at, if that is earlier than was known.
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

// isStored reports whether the lesson of that number is stored, and a channel that is closed when more is.
func (o *object) isStored(gen uint64) (bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.deletedAt.IsZero() || o.written >= gen, o.progress
}

// nextDue is when the object must be looked at without a lesson; zero: never.
func (o *object) nextDue() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.due
}

// pause lets the next write wait for some time from now.
func (o *object) delayWrites(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notBefore = time.Now().Add(d)
}

// resting is how long the next write has still to wait.
func (o *object) writeDelay() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Until(o.notBefore)
}

// alive reports whether a write that failed is worth another attempt: while clients may use an address of it.
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

// unwritten reports whether something is to be written.
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

// leave marks the object as deleted, and lets go who waits for it.
func (o *object) markDeleted(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.deletedAt.IsZero() {
		o.deletedAt = now
		close(o.progress)
		o.progress = make(chan struct{})
	}
}

// leftSince is how long ago the object was deleted.
func (o *object) deletedFor(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Sub(o.deletedAt)
}

// current is the object itself, or the one that took its place: who asks may have found the old one a moment before.
func (o *object) current() *object {
	o.mu.Lock()
	successor := o.successor
	o.mu.Unlock()
	if successor == nil {
		return o
	}
	return successor.current()
}

// warning is what an Event about a refused address is about: whoever answers may have many addresses of a kind.
type warning struct{ name, why string }

// warn reports whether it is time for an Event.
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
		return false // whoever makes up names would fill the log with them
	}
	o.warned[w] = now
	return true
}

// warnFull is the same about names there was no room for.
func (o *object) warnFull(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.warnedFull) < warnEvery {
		return false
	}
	o.warnedFull = now
	return true
}
