package alias

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/publish"
)

// index knows the aliases and on which names each depends. An edit adds the names that it finds, because later edits of
// its group must know them. The outcome of the edit takes away the names that are not needed. So there may be too many
// names here for a moment, and never too few.
type index struct {
	entries  map[Key]*entry
	byName   map[dnsname.Name]map[*entry]struct{}
	children map[dnsname.Name]map[dnsname.Name]struct{} // the names of byName, and those above them, by their parents
	byZone   map[uuid.UUID]map[dnsname.Name]struct{}

	byProject map[string]int // how many aliases each project has
}

// entry is an ALIAS.
type entry struct {
	key     Key
	rec     Record         // as it is committed; zero: there is none
	names   []dnsname.Name // that the committed ALIAS depends on
	deps    []dnsname.Name // names, and those that open edits add
	outside dnsname.Name   // followed for it
	open    int            // edits that touch it and have no outcome yet
	home    string         // the project of its zone, as it is committed
	project string         // the same, or what an open edit makes it
}

func newIndex() index {
	return index{entries: map[Key]*entry{}, byName: map[dnsname.Name]map[*entry]struct{}{},
		children: map[dnsname.Name]map[dnsname.Name]struct{}{}, byZone: map[uuid.UUID]map[dnsname.Name]struct{}{},
		byProject: map[string]int{}}
}

func (x *index) entry(k Key) *entry {
	e := x.entries[k]
	if e == nil {
		e = &entry{key: k}
		x.entries[k] = e
		if x.byZone[k.Zone] == nil {
			x.byZone[k.Zone] = map[dnsname.Name]struct{}{}
		}
		x.byZone[k.Zone][k.Name] = struct{}{}
	}
	return e
}

// depend adds names that an ALIAS depends on.
func (x *index) depend(e *entry, names []dnsname.Name) {
	for _, n := range names {
		if slices.Contains(e.deps, n) {
			continue
		}
		e.deps = append(slices.Clip(e.deps), n)
		if x.byName[n] == nil {
			x.byName[n] = map[*entry]struct{}{}
			x.plant(n)
		}
		x.byName[n][e] = struct{}{}
	}
}

// plant adds a name to the tree of names.
func (x *index) plant(n dnsname.Name) {
	for ; !n.IsRoot(); n = n.Parent() {
		up := n.Parent()
		if _, ok := x.children[up][n]; ok {
			return
		}
		if x.children[up] == nil {
			x.children[up] = map[dnsname.Name]struct{}{}
		}
		x.children[up][n] = struct{}{}
	}
}

// prune takes a name out of the tree, and those above it that are there for it alone.
func (x *index) prune(n dnsname.Name) {
	for ; !n.IsRoot() && len(x.byName[n]) == 0 && len(x.children[n]) == 0; n = n.Parent() {
		up := n.Parent()
		if delete(x.children[up], n); len(x.children[up]) == 0 {
			delete(x.children, up)
		}
	}
}

// below calls fn with every ALIAS that depends on a name or on one below it, until fn returns false, and returns false
// then. It visits at most so many names, and returns false if there are more.
func (x *index) below(n dnsname.Name, visits *int, fn func(*entry) bool) bool {
	if *visits--; *visits < 0 {
		return false
	}
	for e := range x.byName[n] {
		if !fn(e) {
			return false
		}
	}
	for child := range x.children[n] {
		if !x.below(child, visits, fn) {
			return false
		}
	}
	return true
}

// only makes an ALIAS depend on the given names and no others.
func (x *index) only(e *entry, names []dnsname.Name) {
	for _, n := range e.deps {
		if slices.Contains(names, n) {
			continue
		}
		if delete(x.byName[n], e); len(x.byName[n]) == 0 {
			delete(x.byName, n)
			x.prune(n)
		}
	}
	e.deps = slices.DeleteFunc(e.deps, func(n dnsname.Name) bool { return !slices.Contains(names, n) })
	x.depend(e, names)
}

func (x *index) drop(e *entry) {
	x.only(e, nil)
	x.own(e, "")
	delete(x.entries, e.key)
	if delete(x.byZone[e.key.Zone], e.key.Name); len(x.byZone[e.key.Zone]) == 0 {
		delete(x.byZone, e.key.Zone)
	}
}

// any reports whether there are aliases at all; nearly no edit needs to look further where there are none.
func (s *Service) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.index.entries) > 0
}

// edit is what one edit of the publisher makes of aliases.
type edit struct {
	own      map[Key]bool // whose record sets it has written: these give no reason to flatten again
	made     map[Key]made
	followed int             // ALIAS that it flattened because of what they depend on
	due      map[dueName]int // the rows of due.go that it has written
}

// made is what an edit makes of an ALIAS.
type made struct {
	rec     Record // zero: it is removed
	names   []dnsname.Name
	outside dnsname.Name
	project string
	epoch   int // of the tracker and the policy by which it was judged
}

// edit returns what tx makes of aliases, and takes it in when tx is committed.
func (s *Service) edit(tx *publish.Tx) *edit {
	ed := s.edits[tx]
	if ed == nil {
		ed = &edit{own: map[Key]bool{}, made: map[Key]made{}, due: map[dueName]int{}}
		s.edits[tx] = ed
		tx.OnDone(func(committed bool) {
			delete(s.edits, tx)
			s.done(ed, committed)
		})
	}
	return ed
}

// touch notes that an edit changes an ALIAS, which depends on names from now on, and reports whether the ALIAS is new to
// the project. An empty project leaves the ALIAS where it is.
func (s *Service) touch(ed *edit, k Key, names []dnsname.Name, project string) (isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.entry(k)
	if _, ok := ed.made[k]; !ok {
		e.open++
		ed.made[k] = made{}
	}
	s.index.depend(e, names)
	if project == "" || e.project == project {
		return false
	}
	s.index.own(e, project)
	return true
}

// committed returns the record of an ALIAS, if no open edit touches it.
func (s *Service) committed(k Key) (Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.entries[k]
	if e == nil || e.open > 0 {
		return Record{}, false
	}
	return e.rec, true
}

// done takes in the outcome of an edit.
func (s *Service) done(ed *edit, committed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, m := range ed.made {
		e := s.index.entries[k]
		e.open--
		if committed {
			s.takeLocked(e, m)
		}
		switch {
		case e.open > 0:
		case e.rec.Status == "":
			s.index.drop(e)
		default:
			s.index.only(e, e.names)
			s.index.own(e, e.home)
		}
	}
	if committed && len(ed.due) > 0 {
		maps.Copy(s.due, ed.due)
		s.nudge()
	}
}

// takeLocked makes an entry what a committed edit made of the ALIAS.
func (s *Service) takeLocked(e *entry, m made) {
	if m.rec.Status != e.rec.Status && m.rec.Status != "" {
		s.metrics.turned.WithLabelValues(string(m.rec.Status)).Inc()
	}
	s.setRecord(e, m.rec)
	e.names, e.home = m.names, m.project
	s.followLocked(e, m.outside)
	s.pursueLocked(e)
	if m.epoch != s.epoch && m.rec.Status != "" { // SetTracker and SetPolicy did not see it
		s.dirty[e.key] = true
		s.nudge()
	}
}

// followLocked makes the tracker follow an outside target for an ALIAS, instead of the one it followed for it before.
func (s *Service) followLocked(e *entry, outside dnsname.Name) {
	if e.outside == outside {
		return
	}
	if old := e.outside; !old.IsZero() {
		if s.followed[old]--; s.followed[old] == 0 {
			delete(s.followed, old)
			if s.tracker != nil {
				s.tracker.Unfollow(old, follow.Both)
			}
		}
	}
	e.outside = outside
	if outside.IsZero() {
		return
	}
	if s.followed[outside]++; s.followed[outside] == 1 && s.tracker != nil {
		s.tracker.Follow(outside, follow.Both)
	}
}

// pursueLocked looks the target of a pending ALIAS up again, if an earlier lookup, for another ALIAS, found no addresses.
// When that lookup is under way already, Changed will mark the ALIAS. When it ended a moment ago, the ALIAS is flattened by
// what is known.
func (s *Service) pursueLocked(e *entry) {
	if e.rec.Status != statusPending || e.outside.IsZero() || !doubted(s.tracker, e.outside) {
		return
	}
	if s.refreshLocked(e.outside, time.Now()) > 0 && !s.tracker.Refreshing(e.outside) {
		s.dirty[e.key] = true
		s.nudge()
	}
}

// doubted reports whether a target was looked up and has no addresses, or the last lookup failed. A new ALIAS with that
// target has it looked up again.
func doubted(t *follow.Tracker, target dnsname.Name) bool {
	if t == nil {
		return false
	}
	failed, found := false, false
	for _, f := range families {
		st, _ := t.State(target, f)
		if st.Cause() == "" {
			return false // it is being looked up
		}
		failed = failed || st.Err != nil
		found = found || st.Answer == follow.Found
	}
	return failed || !found
}
