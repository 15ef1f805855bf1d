package alias

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// index knows the aliases and on which names each depends. An edit adds to it what it makes; only settle takes away, when
// the edit is durable. So an edit that fails leaves names too many here, and never one too few.
type index struct {
	entries map[Key]*entry
	byName  map[dnsname.Name]map[*entry]struct{}
	byZone  map[uuid.UUID]map[dnsname.Name]struct{}
	changed map[Key]bool // to be settled
}

// entry is an ALIAS.
type entry struct {
	key     Key
	apex    dnsname.Name   // of its zone; zero until an edit touches it
	rec     Record         // that is told
	next    *Record        // what an edit made of it that may not be served yet; nil: nothing
	during  *zone.Snapshot // what was served in that edit
	deps    []dnsname.Name
	outside dnsname.Name // followed for it
	stored  bool         // rec is in the store, but for newer times
	turn    uint64       // steps with each edit that touches it
	gone    bool         // an edit has removed it
}

func newIndex() index {
	return index{entries: map[Key]*entry{}, byName: map[dnsname.Name]map[*entry]struct{}{},
		byZone: map[uuid.UUID]map[dnsname.Name]struct{}{}, changed: map[Key]bool{}}
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
		}
		x.byName[n][e] = struct{}{}
	}
}

// depend only on the given names from now on.
func (x *index) only(e *entry, names []dnsname.Name) {
	for _, n := range e.deps {
		if slices.Contains(names, n) {
			continue
		}
		if delete(x.byName[n], e); len(x.byName[n]) == 0 {
			delete(x.byName, n)
		}
	}
	e.deps = slices.DeleteFunc(e.deps, func(n dnsname.Name) bool { return !slices.Contains(names, n) })
	x.depend(e, names)
}

func (x *index) drop(e *entry) {
	x.only(e, nil)
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

// note takes in what an edit made of an ALIAS in the zone with this apex, which may be the same as before. That it waits for its
// addresses may be told at once, and more when the edit is served.
func (s *Service) note(k Key, apex dnsname.Name, rec Record, w *way, same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.entry(k)
	e.turn++
	e.apex = apex
	e.stored = e.stored && same
	s.shownLocked(e) // of an edit before this one
	news := !e.newest().same(rec)
	if rec.Status == Pending || rec.same(e.rec) {
		s.settledLocked(e, rec)
	} else {
		e.next, e.during = &rec, s.publisher.Snapshot()
	}
	e.gone = false
	names := w.names()
	s.index.depend(e, names)
	if news || w.outside != e.outside || len(e.deps) > len(names) {
		s.index.changed[k] = true
		s.nudge()
	}
}

// stored is what the store has of an ALIAS, if that is known: no edit that may have failed has changed it.
func (s *Service) stored(k Key) (Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.entries[k]
	if e == nil || !e.stored {
		return Record{}, false
	}
	return e.rec, true
}

// forget takes in that an edit removed an ALIAS.
func (s *Service) forget(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.index.entries[k]; e != nil {
		e.turn++
		e.gone, e.stored = true, false
		s.index.changed[k] = true
		s.nudge()
	}
}

// settle makes the index exact again for what edits have touched, and begins and ends to follow targets.
func (s *Service) settle(ctx context.Context) error {
	turns := s.takeChanged()
	if len(turns) == 0 {
		return nil
	}
	// When this returns, the edits that touched the index have been made, or have failed.
	err := s.publisher.Commit(ctx, actor, func(*publish.Tx) error { return nil })
	if err == nil {
		err = s.publisher.View(func(v store.View) error { return s.settleIn(v, turns) })
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for k := range turns {
			s.index.changed[k] = true
		}
	}
	return err
}

func (s *Service) takeChanged() map[Key]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	turns := map[Key]uint64{}
	for k := range s.index.changed {
		if e := s.index.entries[k]; e != nil {
			turns[k] = e.turn
		}
	}
	s.index.changed = map[Key]bool{}
	return turns
}

func (s *Service) settleIn(v store.View, turns map[Key]uint64) error {
	s.mu.Lock()
	t, all := s.tracker, s.policy.AllZones
	s.mu.Unlock()
	w := walker{v: v, all: all, known: func(n dnsname.Name) []follow.Link { return knownLinks(t, n) }, ways: map[start]*way{}}
	for k, turn := range turns {
		target, ok, err := targetOf(v, k)
		if err != nil {
			return err
		}
		if !ok {
			s.settleOne(k, turn, nil, Record{})
			continue
		}
		z, err := v.Zone(k.Zone)
		if err != nil {
			return err
		}
		way, err := w.walk(z.Project, target)
		if err != nil {
			return err
		}
		var rec Record
		if err := v.Object(store.KindAlias, k.id(), &rec); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		s.settleOne(k, turn, way, rec)
	}
	return nil
}

// targetOf is the target of an ALIAS, if it is there.
func targetOf(v store.View, k Key) (dnsname.Name, bool, error) {
	set, err := v.RecordSet(k.Zone, k.Name, rr.TypeALIAS)
	if errors.Is(err, store.ErrNotFound) {
		return dnsname.Name{}, false, nil
	}
	if err != nil {
		return dnsname.Name{}, false, err
	}
	target, ok := rr.Target(rr.TypeALIAS, firstOf(set.Data))
	return target, ok, nil
}

// settleOne settles an entry that no edit has touched in the meantime; else it comes again. Without a way it is gone.
func (s *Service) settleOne(k Key, turn uint64, w *way, rec Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.entries[k]
	switch {
	case e == nil:
	case e.turn != turn:
		s.index.changed[k] = true
		s.nudge()
	case w == nil:
		s.settledLocked(e, Record{})
		s.followLocked(e, dnsname.Name{})
		s.index.drop(e)
	default:
		s.settledLocked(e, rec)
		e.gone, e.stored = false, true
		s.index.only(e, w.names())
		s.followLocked(e, w.outside)
		s.pursueLocked(e, rec)
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

// pursueLocked has the target looked up of an ALIAS that waits for that, though it was looked up before: for another. When that
// was asked for just now, what is known must do.
func (s *Service) pursueLocked(e *entry, rec Record) {
	if rec.Status != Pending || e.outside.IsZero() || !doubted(s.tracker, e.outside) {
		return
	}
	if s.refreshLocked(e.outside, time.Now()) > 0 {
		s.dirty[e.key] = true
		s.nudge()
	}
}

// doubted reports whether a target was looked up and has no addresses, or the last lookup failed. Who comes new to it does not
// take that for granted.
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
