package alias

import (
	"fmt"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/wire"
)

// bounded withdraws addresses for which nothing newer came for too long. The next success brings them back. It is counted from
// the first lookup that failed, which is about when the TTL was over, as RFC 8767 §5 does, and not from the last success: that is
// written to the store only when something changes, and a restart must not make it older than it was.
func (f Family) bounded(was Family, w *way, limit time.Duration, now time.Time) Family {
	if f.Cause == "" && w.cause == "" {
		f.StaleSince = time.Time{}
		return f
	}
	if f.StaleSince.IsZero() {
		f.StaleSince = now
	}
	struck := was.Cause == causeStaleLimit // what the tracker has forgotten by a restart does not make it less so
	if limit <= 0 || now.Before(f.StaleSince.Add(limit)) || len(f.Addrs) == 0 && !struck || f.Cause == causeStaleLimit {
		return f
	}
	f = f.without()
	f.Detail = fmt.Sprintf("withdrawn: no lookup has succeeded since %s, for longer than the limit of %v", f.StaleSince.Format(time.RFC3339), limit)
	f.Asked = strings.TrimSuffix(string(f.Cause)+": "+f.Asked, ": ")
	f.Cause, f.Since = causeStaleLimit, now
	if struck {
		f.Since = was.Since
	}
	return f
}

// without is a family without its addresses.
func (f Family) without() Family {
	f.Addrs, f.Answer, f.TTL, f.Found = nil, "", 0, 0
	return f
}

// plain says why lookups fail without saying who was asked: the resolvers of an operator are not everybody's business.
func plain(c follow.Cause) string {
	switch c {
	case follow.Timeout:
		return "no resolver answers in time"
	case follow.Network:
		return "no resolver can be reached"
	case follow.ServFail:
		return "the resolvers cannot look the target up"
	case follow.Refused:
		return "the resolvers refuse to look the target up"
	case follow.Loop:
		return "the CNAMEs lead back to one before"
	case follow.ChainTooLong:
		return fmt.Sprintf("more than %d names lead on to another", wire.MaxChain)
	}
	return "what the resolvers answer cannot be used"
}

// asked says who was asked, and what came of it.
func asked(e *follow.Error) string {
	if strings.Contains(e.Detail, e.Server) {
		return e.Detail
	}
	return strings.TrimSuffix(e.Server+": "+e.Detail, ": ")
}

// strikeEvery is how often addresses are withdrawn: in an outage many are due in one moment, and share a commit.
const strikeEvery = time.Second

// strikes are the aliases whose addresses will be withdrawn, if nothing newer comes.
type strikes struct {
	since map[*entry]time.Time // they are what they are; few, but for an outage
	next  time.Time            // when the first of them is due, or before; zero: never
	last  time.Time            // when some were due
}

// failing takes in that the record of an ALIAS is another. s.mu is held.
func (s *Service) failing(e *entry) {
	var first time.Time
	for _, f := range e.rec.Families {
		if len(f.Addrs) > 0 && !f.StaleSince.IsZero() && (first.IsZero() || f.StaleSince.Before(first)) {
			first = f.StaleSince
		}
	}
	if first.IsZero() {
		delete(s.strikes.since, e)
		return
	}
	s.strikes.since[e] = first
	s.aimLocked(first)
}

// aimLocked has Run look when what is so since then is due.
func (s *Service) aimLocked(since time.Time) {
	if s.policy.StaleLimit <= 0 {
		return
	}
	if at := since.Add(s.policy.StaleLimit); s.strikes.next.IsZero() || at.Before(s.strikes.next) {
		s.strikes.next = at
		s.nudge()
	}
}

// aimStrikesLocked has Run look when the first of all is due.
func (s *Service) aimStrikesLocked() {
	s.strikes.next = time.Time{}
	for _, since := range s.strikes.since {
		s.aimLocked(since)
	}
}

// nextStrike is told when addresses are to be withdrawn; nil: never.
func (s *Service) nextStrike() <-chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strikes.next.IsZero() {
		return nil
	}
	wait := max(time.Until(s.strikes.next), time.Until(s.strikes.last.Add(strikeEvery)))
	return time.After(wait)
}

// strike has those aliases flattened again whose time is over.
func (s *Service) strike(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strikes.next, s.strikes.last = time.Time{}, now
	for e, since := range s.strikes.since {
		if now.Before(since.Add(s.policy.StaleLimit)) {
			s.aimLocked(since)
		} else {
			s.dirty[e.key] = true
		}
	}
}

// staleUntil is when the addresses of a family are, or were, withdrawn; zero: never.
func (f Family) staleUntil(limit time.Duration) time.Time {
	if limit <= 0 || f.StaleSince.IsZero() || len(f.Addrs) == 0 && f.Cause != causeStaleLimit {
		return time.Time{}
	}
	return f.StaleSince.Add(limit)
}
