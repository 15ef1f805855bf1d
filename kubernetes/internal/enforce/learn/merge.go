package learn

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Object describes the object whose status is written.
type Object struct {
	Name     string // spec.name
	Wildcard bool
	Rank     func(name string) float64 // position of this replica among all replicas for a name, from 0 to 1
	// HostnamesOnly means that the API accepts only names of letters, digits and inner hyphens. The stock definition
	// rejects a whole status if one of its names has an underscore. Such names are folded into the wildcard's own entry.
	HostnamesOnly bool
}

// Result is the new state of a status.
type Result struct {
	Entries []Entry
	Changed bool
	Due     time.Time // when to merge again without a new observation; zero means never
	Omitted []string  // names that do not fit; their addresses are allowed by leases only
	// Exclusive means that the new entries use much of the remaining room. If other replicas added as much at the same
	// time, the status would exceed its limit. The write must therefore fail if there was another write in between.
	Exclusive bool
}

// Merge merges the memories of some names into the entries of an object. It does not modify have. All names in known
// match the object. Merge never removes a valid address to make room.
func (r Rules) Merge(have []Entry, o Object, known map[string]*Memory, now time.Time) Result {
	s := status{rules: r, object: o, entries: slices.Clone(have), known: known, now: now}
	for _, e := range have {
		s.size += e.size()
	}
	had := s.size
	for _, n := range slices.Sorted(maps.Keys(known)) {
		s.merge(n, known[n])
	}
	if own := known[o.Name]; o.Wildcard && own != nil && own.own {
		s.dropCovered(known)
	}
	return Result{s.entries, s.changed, s.due, s.omitted, s.nearLimit(s.size - had)}
}

// nearLimit reports whether a growth takes more than half of the remaining room. Smaller growths of two replicas fit
// together. Those of a few more replicas fit into the margin between MaxBytes and the hard limit.
func (s *status) nearLimit(grown int) bool {
	limit := s.rules.MaxBytes
	return limit > 0 && grown > max(limit/24, (limit-s.size+grown)/2)
}

// status is a status that is being changed.
type status struct {
	rules   Rules
	object  Object
	now     time.Time
	known   map[string]*Memory
	entries []Entry
	size    int
	changed bool
	pruned  bool
	due     time.Time
	omitted []string
	indexes map[string]int // index of each entry by name in lower case; nil if it must be rebuilt
}

// index returns the index of the entry of a name, or -1. It uses a map because a status has up to a thousand entries,
// and as many names may be merged into it.
func (s *status) index(name string) int {
	if s.indexes == nil {
		s.indexes = make(map[string]int, len(s.entries))
		for i, e := range slices.Backward(s.entries) {
			s.indexes[strings.ToLower(e.Name)] = i
		}
	}
	if i, ok := s.indexes[strings.ToLower(name)]; ok {
		return i
	}
	return -1
}

// insert adds an entry at the beginning or at the end.
func (s *status) insert(at int, e Entry) {
	s.entries = slices.Insert(s.entries, at, e)
	if at == len(s.entries)-1 && s.indexes != nil {
		s.indexes[strings.ToLower(e.Name)] = at
		return
	}
	s.indexes = nil
}

func (s *status) merge(name string, m *Memory) {
	own := -1
	if s.object.Wildcard {
		own = s.index(s.object.Name)
	}
	i := s.index(name)
	if i < 0 && own >= 0 && name != s.object.Name && s.entries[own].covers(m, s.now) {
		s.due = earlier(s.due, s.coveredUntil(own, m))
		return
	}
	if i < 0 && !s.fits(name) {
		s.fold(name, own, m)
		return
	}
	e := Entry{Name: name}
	if i >= 0 {
		e = s.entries[i]
	} else if m.failure != 0 { // there is no entry to count the failure in
		m = &Memory{addrs: m.addrs}
	}
	c := s.rules.apply(e, m, s.object.Rank(name), s.now)
	s.due = earlier(s.due, c.due)
	switch {
	case !c.changed, i < 0 && len(c.entry.Addrs) == 0:
		return
	case c.remove:
		s.remove(i)
	case i >= 0:
		s.replace(i, c.entry, m)
	default:
		s.add(name, c.entry, m)
	}
}

// coveredUntil returns the time at which m must be merged again. The wildcard's own entry covers m, but only lookups of
// the wildcard itself renew that entry.
func (s *status) coveredUntil(own int, m *Memory) time.Time {
	var due time.Time
	find := s.entries[own].finder(len(m.addrs))
	for a, p := range m.addrs {
		if i := find(a); i >= 0 && p.until.After(s.now) {
			due = earlier(due, s.entries[own].Addrs[i].Until())
		}
	}
	return due
}

// fits reports whether the API accepts an entry with this name.
func (s *status) fits(name string) bool {
	if name == s.object.Name {
		return true
	}
	for l := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(name, "*."), "."), ".") {
		if l == "" || s.object.HostnamesOnly && (l[0] == '-' || l[len(l)-1] == '-') {
			return false
		}
		for i := range len(l) {
			if c := l[i]; c != '-' && (c != '_' || s.object.HostnamesOnly) && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
				return false
			}
		}
	}
	return true
}

// add adds a new entry if there is room for it. Entries of single names may take three fifths of the room. The rest is
// for folded addresses, which need a third of the bytes.
func (s *status) add(name string, e Entry, m *Memory) {
	r := s.rules
	for {
		full := r.MaxNames > 0 && len(s.entries) >= r.MaxNames || r.MaxBytes > 0 && s.size+e.size() > r.MaxBytes*3/5
		if !full || name == s.object.Name {
			break
		}
		if s.prune(-1) {
			continue
		}
		s.fold(name, s.index(s.object.Name), m)
		return
	}
	if e = s.fitting(e); len(e.Addrs) == 0 {
		return
	}
	at := len(s.entries)
	if s.object.Wildcard && name == s.object.Name {
		at = 0 // readers expect the wildcard's own entry first
	}
	s.insert(at, e)
	s.size += e.size()
	s.changed = true
}

// fitting returns e with as many of its addresses as fit: a reply may have thousands.
func (s *status) fitting(e Entry) Entry {
	room := s.rules.MaxBytes - s.size - e.size()
	if s.rules.MaxBytes == 0 || room >= 0 {
		return e
	}
	n := len(e.Addrs)
	for ; n > 0 && room < 0; n-- {
		room += addrSize(e.Addrs[n-1].Addr)
	}
	s.omitted = append(s.omitted, e.Name)
	e.Addrs = e.Addrs[:n:n]
	return e
}

func (s *status) replace(i int, e Entry, m *Memory) {
	grown := e.size() - s.entries[i].size()
	over := func() bool { return grown > 0 && s.rules.MaxBytes > 0 && s.size+grown > s.rules.MaxBytes }
	if over() {
		s.prune(i)
	}
	if over() {
		// The new addresses do not fit. Renew the stored ones, which need no room, but do not write them with every answer.
		s.omitted = append(s.omitted, e.Name)
		had := s.entries[s.index(e.Name)]
		c := s.rules.apply(had, m.only(had), s.object.Rank(e.Name), s.now)
		s.due = earlier(s.due, c.due)
		if !c.changed {
			return
		}
		e, grown = c.entry, c.entry.size()-had.size()
	}
	s.entries[s.index(e.Name)] = e
	s.size += grown
	s.changed = true
}

func (s *status) remove(i int) {
	s.size -= s.entries[i].size()
	s.entries, s.indexes = slices.Delete(s.entries, i, i+1), nil
	s.changed = true
}

// fold adds the addresses of a name to the wildcard's own entry. The agents program the same addresses in both cases.
func (s *status) fold(name string, own int, m *Memory) {
	if !s.object.Wildcard || !m.Alive(s.now) {
		return
	}
	e := Entry{Name: s.object.Name}
	if own >= 0 {
		e = s.entries[own]
	}
	// Merge only the addresses: a success or failure of this name is not one of the wildcard.
	c := s.rules.apply(e, &Memory{addrs: m.addrs}, s.object.Rank(name), s.now)
	s.due = earlier(s.due, c.due)
	if !c.changed {
		return
	}
	grown := c.entry.size()
	if own >= 0 {
		grown -= e.size()
	}
	if s.rules.MaxBytes > 0 && s.size+grown > s.rules.MaxBytes {
		if s.prune(-1) {
			s.fold(name, s.index(s.object.Name), m)
			return
		}
		s.omitted = append(s.omitted, name)
		return
	}
	if own >= 0 {
		s.entries[own] = c.entry
	} else {
		s.insert(0, c.entry)
	}
	s.size += grown
	s.changed = true
}

// prune makes room, at most once per merge. It removes entries that have no address in use, and ended addresses of the
// wildcard's own entry. It does not change the entry at index keep; -1 means none. It reports whether it removed
// anything.
func (s *status) prune(keep int) bool {
	if s.pruned {
		return false
	}
	s.pruned = true
	before, out := s.size, make([]Entry, 0, len(s.entries))
	dead := s.now.Add(-Grace)
	for i, e := range s.entries {
		switch {
		case i == keep:
		case e.Name == s.object.Name:
			old := e.size()
			e.Addrs = slices.DeleteFunc(slices.Clone(e.Addrs), func(h StoredAddress) bool { return !h.Until().After(dead) })
			s.size += e.size() - old
		case e.expired(dead) && !s.alive(e.Name):
			s.size -= e.size()
			continue
		}
		out = append(out, e)
	}
	s.entries, s.indexes = out, nil
	s.changed = s.changed || s.size != before
	return s.size != before
}

// alive reports whether a name that is being merged has an address in use. Its stored addresses may have ended only
// because the API was unavailable.
func (s *status) alive(name string) bool {
	m := s.known[strings.ToLower(name)]
	return m != nil && m.Alive(s.now)
}

// dropCovered removes the entries whose addresses the wildcard's own entry stores for as long.
func (s *status) dropCovered(known map[string]*Memory) {
	own := s.index(s.object.Name)
	if own < 0 {
		return
	}
	o := s.entries[own]
	find, before := o.finder(len(s.entries)), len(s.entries)
	s.indexes = nil
	s.entries = slices.DeleteFunc(s.entries, func(e Entry) bool {
		if e.Name == o.Name || len(e.Addrs) == 0 {
			return false
		}
		for _, h := range e.Addrs {
			if i := find(h.Addr); i < 0 || h.Until().After(o.Addrs[i].Until().Add(slack)) {
				return false
			}
		}
		m := known[e.Name]
		return m == nil || o.covers(m, s.now)
	})
	s.changed = s.changed || len(s.entries) != before
}
