package alias

import (
	"maps"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
)

// State is the current state of an ALIAS: its Record, and the times of the next lookups and expiries.
type State struct {
	Record
	NextAttempt [2]time.Time // next lookup of each family; zero: the target is in our zones and needs none
	StaleUntil  [2]time.Time // when the addresses of each family are or were withdrawn as stale; zero: never
}

// State returns the state of an ALIAS, or false if there is none.
func (s *Service) State(k Key) (State, bool) {
	s.mu.Lock()
	e := s.committedEntryLocked(k)
	if e == nil {
		s.mu.Unlock()
		return State{}, false
	}
	st, outside, tracker := State{Record: e.rec}, e.outside, s.tracker
	for i, f := range e.rec.Families {
		st.StaleUntil[i] = f.staleUntil(s.policy.StaleLimit)
	}
	s.mu.Unlock()
	if outside.IsZero() || tracker == nil {
		return st, true
	}
	for i, f := range families {
		if known, ok := tracker.State(outside, f); ok {
			st.NextAttempt[i] = known.NextAttempt
			if fam := &st.Families[i]; fam.Answer == follow.Found && known.LastSuccess.After(fam.LastSuccess) {
				fam.LastSuccess = known.LastSuccess
			}
		}
	}
	return st, true
}

// Progress is the status of an ALIAS, and the action that led to it. The zero Progress is that of no ALIAS.
type Progress struct {
	Status Status
	Action string
}

// Progress returns the progress of each of some ALIAS.
func (s *Service) Progress(keys ...Key) []Progress {
	out := make([]Progress, len(keys))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range keys {
		if e := s.committedEntryLocked(k); e != nil {
			out[i] = Progress{e.rec.Status, e.rec.Action}
		}
	}
	return out
}

// committedEntryLocked returns the entry of a committed ALIAS, or nil.
func (s *Service) committedEntryLocked(k Key) *entry {
	if e := s.index.entries[k]; e != nil && e.rec.Status != "" {
		return e
	}
	return nil
}

// Refresh looks up the target of an ALIAS now. If the target was refreshed less than refreshEvery ago, Refresh only
// returns how long to wait. All requests for one target share one lookup.
func (s *Service) Refresh(k Key) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.committedEntryLocked(k)
	if e == nil {
		return 0, false
	}
	target := e.outside
	if target.IsZero() {
		target = k.Name
	}
	if wait := s.refreshLocked(target, time.Now()); wait > 0 {
		return wait, true
	}
	s.dirty[k] = true
	s.nudge()
	return 0, true
}

// refreshLocked looks up a target, unless that happened less than refreshEvery ago. Then it returns how long to wait.
func (s *Service) refreshLocked(target dnsname.Name, now time.Time) (wait time.Duration) {
	if wait := s.asked[target].Add(refreshEvery).Sub(now); wait > 0 {
		return wait
	}
	if now.Sub(s.swept) > refreshEvery {
		s.swept = now
		maps.DeleteFunc(s.asked, func(_ dnsname.Name, at time.Time) bool { return now.Sub(at) > refreshEvery })
	}
	s.asked[target] = now
	if s.tracker != nil {
		s.tracker.Refresh(target)
	}
	return 0
}
