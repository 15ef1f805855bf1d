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

// index maps names to the aliases that depend on them. An edit adds the names that it finds at once, because later
// edits of its group need them. When the edit has an outcome, names that are not needed are removed. So the index may
// hold too many names for a moment, but never too few.
type index struct {
	entries  map[Key]*entry
	byName   map[dnsname.Name]map[*entry]struct{}
	children map[dnsname.Name]map[dnsname.Name]struct{} // the names of byName and their ancestors, by parent
	byZone   map[uuid.UUID]map[dnsname.Name]struct{}

	byProject map[string]int // number of aliases of each project
}

// entry is one ALIAS.
type entry struct {
	key              Key
	rec              Record         // committed record; zero: none
	names            []dnsname.Name // names that the committed ALIAS depends on
	deps             []dnsname.Name // names, and the names that open edits add
	outside          dnsname.Name   // outside target that the tracker follows for this ALIAS
	open             int            // number of edits that touch it and have no outcome yet
	committedProject string         // committed project of its zone
	project          string         // committedProject, or the project that an open edit sets
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
			x.addToTree(n)
		}
		x.byName[n][e] = struct{}{}
	}
}

// addToTree adds a name and its ancestors to the tree of names.
func (x *index) addToTree(n dnsname.Name) {
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

// removeFromTree removes a name from the tree, and each ancestor that is there only because of it.
func (x *index) removeFromTree(n dnsname.Name) {
	for ; !n.IsRoot() && len(x.byName[n]) == 0 && len(x.children[n]) == 0; n = n.Parent() {
		up := n.Parent()
		if delete(x.children[up], n); len(x.children[up]) == 0 {
			delete(x.children, up)
		}
	}
}

// below calls fn for every ALIAS that depends on n or on a name below it. It stops and returns false when fn returns
// false, or when it has visited more than *visits names.
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

// setNames makes an ALIAS depend on the given names and no others.
func (x *index) setNames(e *entry, names []dnsname.Name) {
	for _, n := range e.deps {
		if slices.Contains(names, n) {
			continue
		}
		if delete(x.byName[n], e); len(x.byName[n]) == 0 {
			delete(x.byName, n)
			x.removeFromTree(n)
		}
	}
	e.deps = slices.DeleteFunc(e.deps, func(n dnsname.Name) bool { return !slices.Contains(names, n) })
	x.depend(e, names)
}

func (x *index) remove(e *entry) {
	x.setNames(e, nil)
	x.setProject(e, "")
	delete(x.entries, e.key)
	if delete(x.byZone[e.key.Zone], e.key.Name); len(x.byZone[e.key.Zone]) == 0 {
		delete(x.byZone, e.key.Zone)
	}
}

// hasAliases reports whether there are aliases at all. Without aliases, an edit needs no further checks.
func (s *Service) hasAliases() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.index.entries) > 0
}

// edit holds the effects of one publisher edit on aliases.
type edit struct {
	written  map[Key]bool // aliases whose record sets this edit wrote; these writes do not trigger flattening again
	changes  map[Key]change
	followed int             // number of aliases flattened because they depend on a changed name
	due      map[dueName]int // due rows that this edit wrote (due.go)
}

// change is the effect of an edit on one ALIAS.
type change struct {
	rec     Record // zero: the ALIAS is removed
	names   []dnsname.Name
	outside dnsname.Name
	project string
	epoch   int // Service.epoch when the change was assessed
}

// edit returns the effects of tx on aliases. They are applied to the index when tx is committed.
func (s *Service) edit(tx *publish.Tx) *edit {
	ed := s.edits[tx]
	if ed == nil {
		ed = &edit{written: map[Key]bool{}, changes: map[Key]change{}, due: map[dueName]int{}}
		s.edits[tx] = ed
		tx.OnDone(func(committed bool) {
			delete(s.edits, tx)
			s.done(ed, committed)
		})
	}
	return ed
}

// touch registers that an edit changes an ALIAS, which depends on names from now on. It reports whether the ALIAS is
// new to the project. With an empty project, the project of the ALIAS does not change.
func (s *Service) touch(ed *edit, k Key, names []dnsname.Name, project string) (isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.entry(k)
	if _, ok := ed.changes[k]; !ok {
		e.open++
		ed.changes[k] = change{}
	}
	s.index.depend(e, names)
	if project == "" || e.project == project {
		return false
	}
	s.index.setProject(e, project)
	return true
}

// committed returns the record of an ALIAS, unless an open edit touches it.
func (s *Service) committed(k Key) (Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.entries[k]
	if e == nil || e.open > 0 {
		return Record{}, false
	}
	return e.rec, true
}

// done applies the outcome of an edit.
func (s *Service) done(ed *edit, committed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, m := range ed.changes {
		e := s.index.entries[k]
		e.open--
		if committed {
			s.applyLocked(e, m)
		}
		switch {
		case e.open > 0:
		case e.rec.Status == "":
			s.index.remove(e)
		default:
			s.index.setNames(e, e.names)
			s.index.setProject(e, e.committedProject)
		}
	}
	if committed && len(ed.due) > 0 {
		maps.Copy(s.due, ed.due)
		s.nudge()
	}
}

// applyLocked applies the committed change of an ALIAS to its entry.
func (s *Service) applyLocked(e *entry, m change) {
	if m.rec.Status != e.rec.Status && m.rec.Status != "" {
		s.metrics.transitions.WithLabelValues(string(m.rec.Status)).Inc()
	}
	s.setRecord(e, m.rec)
	e.names, e.committedProject = m.names, m.project
	s.followLocked(e, m.outside)
	s.retryPendingLocked(e)
	if m.epoch != s.epoch && m.rec.Status != "" { // SetTracker or SetPolicy ran before this ALIAS was in the index
		s.dirty[e.key] = true
		s.nudge()
	}
}

// followLocked makes the tracker follow an outside target for an ALIAS, instead of its previous target.
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

// retryPendingLocked looks up the target of a pending ALIAS again, if an earlier lookup for another ALIAS found no
// addresses. If such a lookup is in flight, Changed will mark the ALIAS. If it ended a moment ago, the ALIAS is
// flattened with its result.
func (s *Service) retryPendingLocked(e *entry) {
	if e.rec.Status != statusPending || e.outside.IsZero() || !needsRetry(s.tracker, e.outside) {
		return
	}
	if s.refreshLocked(e.outside, time.Now()) > 0 && !s.tracker.Refreshing(e.outside) {
		s.dirty[e.key] = true
		s.nudge()
	}
}

// needsRetry reports whether the target was looked up and has no addresses, or its last lookup failed. A new ALIAS with
// that target triggers another lookup.
func needsRetry(t *follow.Tracker, target dnsname.Name) bool {
	if t == nil {
		return false
	}
	failed, found := false, false
	for _, f := range families {
		st, _ := t.State(target, f)
		if st.Cause() == "" {
			return false // the first lookup is in flight
		}
		failed = failed || st.Err != nil
		found = found || st.Answer == follow.Found
	}
	return failed || !found
}
