package alias

import (
	"maps"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
)

// State is what is known of an ALIAS now: its Record, and when its target was and will be looked up.
type State struct {
	Record
	NextAttempt [2]time.Time // of each family; zero: the target is ours and needs none
	StaleUntil  [2]time.Time // when its addresses are, or were, withdrawn for want of newer ones; zero: never
}

// State of an ALIAS; not ok, if there is none.
func (s *Service) State(k Key) (State, bool) {
	s.mu.Lock()
	e := s.knownLocked(k)
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

// Status of an ALIAS, and its action; not ok, if there is none.
func (s *Service) Status(k Key) (status Status, action string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.knownLocked(k)
	if e == nil {
		return "", "", false
	}
	return e.rec.Status, e.rec.Action, true
}

// knownLocked returns the entry of an ALIAS that is committed, or nil.
func (s *Service) knownLocked(k Key) *entry {
	if e := s.index.entries[k]; e != nil && e.rec.Status != "" {
		return e
	}
	return nil
}

// Refresh looks the target of an ALIAS up now. wait is not zero when that was asked for too often: it is how long to wait
// before asking again. Of however many who ask for one target, one lookup is under way.
func (s *Service) Refresh(k Key) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.knownLocked(k)
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

// refreshLocked has a target looked up, unless that was asked for a moment ago: then it tells how long to wait.
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
