package learn

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Object is whose status is written.
type Object struct {
	Name     string // spec.name
	Wildcard bool
	Turn     func(name string) float64 // this replica's place among others, from 0 to 1
	// Plain says that the API takes names of letters, digits and inner hyphens only: the stock definition refuses a status
	// with an underscore in any name of it. Other names are folded into the wildcard's own entry.
	Plain bool
}

// Result is what a status becomes.
type Result struct {
	Entries []Entry
	Changed bool
	Due     time.Time // when to look again without a new lesson; zero: no need
	Left    []string  // names there was no room for; their addresses live by leases alone
	// Crowded says that the room was judged by what there was, and that others who did the same at once would not fit beside:
	// the write must fail if there was another one in between.
	Crowded bool
}

// Merge brings what is known of some names into the entries of an object, which are not changed themselves. Names that are in
// known are in the object. Nothing that is valid is removed to make room.
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
	return Result{s.entries, s.changed, s.due, s.left, s.crowded(s.size - had)}
}

// crowded judges a growth: one that takes more than half of what is left. Smaller ones of two replicas fit, and those of a handful in what
// MaxBytes leaves free below the bound that matters.
func (s *status) crowded(grown int) bool {
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
	left    []string
	places  map[string]int // of entries, by name in lower case; nil: to be made
}

// index is where the entry of a name is, or -1. A status has up to a thousand, and as many may be merged into it.
func (s *status) index(name string) int {
	if s.places == nil {
		s.places = make(map[string]int, len(s.entries))
		for i, e := range slices.Backward(s.entries) {
			s.places[strings.ToLower(e.Name)] = i
		}
	}
	if i, ok := s.places[strings.ToLower(name)]; ok {
		return i
	}
	return -1
}

// insert adds an entry, at its beginning or its end.
func (s *status) insert(at int, e Entry) {
	s.entries = slices.Insert(s.entries, at, e)
	if at == len(s.entries)-1 && s.places != nil {
		s.places[strings.ToLower(e.Name)] = at
		return
	}
	s.places = nil
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
	} else if m.failure != 0 { // there is nothing to count it in
		m = &Memory{addrs: m.addrs}
	}
	c := s.rules.apply(e, m, s.object.Turn(name), s.now)
	s.due = earlier(s.due, c.due)
	switch {
	case !c.changed, i < 0 && len(c.entry.Addrs) == 0:
		return
	case c.remove:
		s.remove(i)
	case i >= 0:
		s.replace(i, c.entry, m)
	default:
		s.add(name, c.entry, own, m)
	}
}

// coveredUntil is when m must be looked at again, since the own entry that covers it is renewed by lookups of the wildcard only.
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

// fits reports whether the API takes an entry of that name.
func (s *status) fits(name string) bool {
	if name == s.object.Name {
		return true
	}
	for l := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(name, "*."), "."), ".") {
		if l == "" || s.object.Plain && (l[0] == '-' || l[len(l)-1] == '-') {
			return false
		}
		for i := range len(l) {
			if c := l[i]; c != '-' && (c != '_' || s.object.Plain) && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
				return false
			}
		}
	}
	return true
}

// add makes a new entry when there is room for one. Entries of single names may take three fifths of the room; the rest is for
// addresses that are folded, which take a third of the octets.
func (s *status) add(name string, e Entry, own int, m *Memory) {
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

// fitting is a new entry with as many of its addresses as there is room for: whoever answers may have thousands.
func (s *status) fitting(e Entry) Entry {
	room := s.rules.MaxBytes - s.size - e.size()
	if s.rules.MaxBytes == 0 || room >= 0 {
		return e
	}
	n := len(e.Addrs)
	for ; n > 0 && room < 0; n-- {
		room += addrSize(e.Addrs[n-1].Addr)
	}
	s.left = append(s.left, e.Name)
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
		// What is new has no room. What is there already takes none, is not to end because of it, and is not written with every answer.
		s.left = append(s.left, e.Name)
		had := s.entries[s.index(e.Name)]
		c := s.rules.apply(had, m.only(had), s.object.Turn(e.Name), s.now)
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
	s.entries, s.places = slices.Delete(s.entries, i, i+1), nil
	s.changed = true
}

// fold puts the addresses of a name into the wildcard's own entry. Whoever programs switches sees no difference.
func (s *status) fold(name string, own int, m *Memory) {
	if !s.object.Wildcard || !m.Alive(s.now) {
		return
	}
	e := Entry{Name: s.object.Name}
	if own >= 0 {
		e = s.entries[own]
	}
	// Only the addresses: a success or a failure of another name is none of the wildcard's.
	c := s.rules.apply(e, &Memory{addrs: m.addrs}, s.object.Turn(name), s.now)
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
		s.left = append(s.left, name)
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

// prune makes room once: entries of which no address is in use go, and such addresses of the wildcard's own entry. The entry at keep
// stays as it is; -1 is none.
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
			e.Addrs = slices.DeleteFunc(slices.Clone(e.Addrs), func(h Held) bool { return !h.Until().After(dead) })
			s.size += e.size() - old
		case e.expired(dead) && !s.alive(e.Name):
			s.size -= e.size()
			continue
		}
		out = append(out, e)
	}
	s.entries, s.places = out, nil
	s.changed = s.changed || s.size != before
	return s.size != before
}

// alive reports whether a name that is being merged has an address in use: what is stored of it may have ended because nobody could write.
func (s *status) alive(name string) bool {
	m := s.known[strings.ToLower(name)]
	return m != nil && m.Alive(s.now)
}

// dropCovered removes the entries whose addresses the wildcard's own entry holds for as long.
func (s *status) dropCovered(known map[string]*Memory) {
	own := s.index(s.object.Name)
	if own < 0 {
		return
	}
	o := s.entries[own]
	find, before := o.finder(len(s.entries)), len(s.entries)
	s.places = nil
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
