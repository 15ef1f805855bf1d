package hostname

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/nameplane/nameplane/internal/explain/service"
)

// Key identifies a report: a hostname of the routes and Ingresses of a namespace. Two namespaces with the same hostname
// have two reports, and each is judged by the objects of its own routes: a route of another namespace must neither
// break a report nor be shown in it.
type Key struct{ Namespace, Host string }

// objectID identifies an object.
type objectID struct{ kind, namespace, name string }

func (a objectID) compare(b objectID) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// object is an object of the cluster.
type object struct {
	id         objectID
	apiVersion string
	uid        types.UID
	parsed     *service.Objects // has only this object

	topics []string // what the object concerns
	// For routes and Ingresses: the hostnames, and the topics of the objects on which they depend.
	hosts, needs []string
}

// index has all objects of the cluster, and which hostnames depend on which of them. A change costs as much as the
// objects that depend on it, and not as much as the cluster.
type index struct {
	mu      sync.Mutex // guards the following
	kinds   []string   // the kinds that are watched
	objects map[objectID]*object
	about   map[string]map[objectID]*object // objects by topic
	needers map[string]map[objectID]*object // routes and Ingresses by the topics that they need
	keys    map[Key]map[objectID]*object    // routes and Ingresses by hostname
	names   map[types.NamespacedName]Key    // the names of the reports
	// Routes and Ingresses to evaluate again, and topics whose needers are to be evaluated again. Several changes of one
	// Gateway with thousands of routes cost one evaluation.
	dirty       map[objectID]*object
	dirtyTopics map[string]bool
	changed     map[Key]bool  // the hostnames of deleted objects
	signal      chan struct{} // has a value if something is dirty
}

func newIndex() *index {
	return &index{
		objects: map[objectID]*object{}, about: map[string]map[objectID]*object{},
		needers: map[string]map[objectID]*object{}, keys: map[Key]map[objectID]*object{},
		names: map[types.NamespacedName]Key{}, dirty: map[objectID]*object{}, dirtyTopics: map[string]bool{},
		changed: map[Key]bool{}, signal: make(chan struct{}, 1),
	}
}

// put adds or replaces an object.
func (x *index) put(o *object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.objects[o.id]
	if old != nil {
		if old.uid == o.uid && reflect.DeepEqual(old.parsed, o.parsed) {
			return // only a part changed that no check reads
		}
		// The dependencies of the old version stay until the next evaluation, which needs its hostnames.
		o.hosts, o.needs = old.hosts, old.needs
		x.forgetLocked(old)
		for _, t := range old.topics { // the new version may concern others
			x.dirtyTopics[t] = true
		}
	}
	o.topics = topicsOf(o)
	x.objects[o.id] = o
	x.rememberLocked(o)
	x.markLocked(o)
}

// remove deletes an object.
func (x *index) remove(id objectID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if o := x.objects[id]; o != nil {
		delete(x.objects, id)
		x.forgetLocked(o)
		x.markLocked(o)
		delete(x.dirty, id)
		for _, h := range o.hosts {
			x.changed[Key{id.namespace, h}] = true
		}
	}
}

// replace removes all objects of a kind that are not in keep.
func (x *index) replace(kind string, keep map[objectID]bool) {
	x.mu.Lock()
	var gone []objectID
	for id := range x.objects {
		if id.kind == kind && !keep[id] {
			gone = append(gone, id)
		}
	}
	x.mu.Unlock()
	for _, id := range gone {
		x.remove(id)
	}
}

// watching adds a kind that is watched.
func (x *index) watching(kind string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kinds = append(x.kinds, kind)
	slices.Sort(x.kinds)
}

// rememberLocked adds an object to the maps by topic and hostname. The caller holds mu.
func (x *index) rememberLocked(o *object) {
	for _, t := range o.topics {
		insert(x.about, t, o)
	}
	for _, t := range o.needs {
		insert(x.needers, t, o)
	}
	for _, h := range o.hosts {
		insert(x.keys, Key{o.id.namespace, h}, o)
	}
}

// forgetLocked removes an object from the maps by topic and hostname. The caller holds mu.
func (x *index) forgetLocked(o *object) {
	for _, t := range o.topics {
		drop(x.about, t, o.id)
	}
	for _, t := range o.needs {
		drop(x.needers, t, o.id)
	}
	for _, h := range o.hosts {
		drop(x.keys, Key{o.id.namespace, h}, o.id)
	}
}

// markLocked records that an object has changed. The caller holds mu.
func (x *index) markLocked(o *object) {
	if isOwner(o.id.kind) {
		x.dirty[o.id] = o
	}
	for _, t := range o.topics {
		x.dirtyTopics[t] = true
	}
	select {
	case x.signal <- struct{}{}:
	default:
	}
}

// settle evaluates what has changed, and returns the hostnames whose results may differ now.
func (x *index) settle() []Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	for t := range x.dirtyTopics {
		for id, o := range x.needers[t] {
			x.dirty[id] = o
		}
	}
	for id, o := range x.dirty {
		for _, h := range o.hosts { // those of the previous evaluation
			x.changed[Key{id.namespace, h}] = true
		}
		x.forgetLocked(o)
		o.hosts, o.needs = x.evaluateLocked(o)
		x.rememberLocked(o)
		for _, h := range o.hosts {
			x.changed[Key{id.namespace, h}] = true
		}
	}
	out := make([]Key, 0, len(x.changed))
	for k := range x.changed {
		out = append(out, k)
		at := types.NamespacedName{Namespace: k.Namespace, Name: Name(k.Host)}
		if len(x.keys[k]) > 0 {
			x.names[at] = k
		} else {
			delete(x.names, at)
		}
	}
	clear(x.dirty)
	clear(x.dirtyTopics)
	clear(x.changed)
	return out
}

// named returns the hostname of a report. ok is false if no route or Ingress has it.
func (x *index) named(at types.NamespacedName) (key Key, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key, ok = x.names[at]
	return key, ok
}

func insert[K comparable](m map[K]map[objectID]*object, key K, o *object) {
	if m[key] == nil {
		m[key] = map[objectID]*object{}
	}
	m[key][o.id] = o
}

func drop[K comparable](m map[K]map[objectID]*object, key K, id objectID) {
	delete(m[key], id)
	if len(m[key]) == 0 {
		delete(m, key)
	}
}
