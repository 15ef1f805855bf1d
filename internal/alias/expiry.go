package alias

import (
	"fmt"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/wire"
)

// applyStaleLimit withdraws addresses when lookups have failed for longer than limit. The next success restores them.
// As in RFC 8767 §5, the time is counted from the first failed lookup, which is about when the TTL expired. It is not
// counted from the last success: that time is stored only when something changes, and a restart must not make it older.
func (f Family) applyStaleLimit(was Family, p *path, limit time.Duration, now time.Time) Family {
	if f.Cause == "" && p.cause == "" {
		f.StaleSince = time.Time{}
		return f
	}
	if f.StaleSince.IsZero() {
		f.StaleSince = now
	}
	expired := was.Cause == causeStaleLimit // still true after a restart, when the tracker no longer knows it
	if limit <= 0 || now.Before(f.StaleSince.Add(limit)) || len(f.Addrs) == 0 && !expired || f.Cause == causeStaleLimit {
		return f
	}
	f = f.withoutAddrs()
	f.Detail = fmt.Sprintf("withdrawn: no lookup has succeeded since %s, for longer than the limit of %v",
		f.StaleSince.Format(time.RFC3339), limit)
	f.Asked = strings.TrimSuffix(string(f.Cause)+": "+f.Asked, ": ")
	f.Cause, f.Since = causeStaleLimit, now
	if expired {
		f.Since = was.Since
	}
	return f
}

// withoutAddrs returns the family without its addresses.
func (f Family) withoutAddrs() Family {
	f.Addrs, f.Answer, f.TTL, f.Found = nil, "", 0, 0
	return f
}

// causeText says why lookups fail, without naming the resolvers: they are internal to the operator.
func causeText(c follow.Cause) string {
	switch c {
	case follow.Timeout:
		return "no resolver answers in time"
	case follow.Network:
		return "no resolver can be reached"
	case follow.ServFail:
		return "the resolvers cannot look up the target"
	case follow.Refused:
		return "the resolvers refuse to look up the target"
	case follow.Loop:
		return "the CNAME chain is a loop"
	case follow.ChainTooLong:
		return fmt.Sprintf("the chain has more than %d links", wire.MaxChain)
	}
	return "the answer of the resolvers cannot be used"
}

// resolverText names the resolver that was queried, and the result.
func resolverText(e *follow.Error) string {
	if strings.Contains(e.Detail, e.Server) {
		return e.Detail
	}
	return strings.TrimSuffix(e.Server+": "+e.Detail, ": ")
}

// expireEvery is the minimum time between two withdrawals. In an outage many addresses expire in one moment and share a
// commit.
const expireEvery = time.Second

// expiries holds the aliases whose addresses will be withdrawn unless a lookup succeeds.
type expiries struct {
	since map[*entry]time.Time // time of the first failed lookup; few entries, except in an outage
	next  time.Time            // time of the first expiry, or earlier; zero: none
	last  time.Time            // time of the last withdrawal
}

// updateExpiryLocked schedules or cancels the expiry of an ALIAS whose record changed. Callers hold s.mu.
func (s *Service) updateExpiryLocked(e *entry) {
	var first time.Time
	for _, f := range e.rec.Families {
		if len(f.Addrs) > 0 && !f.StaleSince.IsZero() && (first.IsZero() || f.StaleSince.Before(first)) {
			first = f.StaleSince
		}
	}
	if first.IsZero() {
		delete(s.expiries.since, e)
		return
	}
	s.expiries.since[e] = first
	s.scheduleLocked(first)
}

// scheduleLocked wakes Run at the expiry of addresses that are stale since the given time. Callers hold s.mu.
func (s *Service) scheduleLocked(since time.Time) {
	if s.policy.StaleLimit <= 0 {
		return
	}
	if at := since.Add(s.policy.StaleLimit); s.expiries.next.IsZero() || at.Before(s.expiries.next) {
		s.expiries.next = at
		s.nudge()
	}
}

// rescheduleLocked recomputes the time of the first expiry. Callers hold s.mu.
func (s *Service) rescheduleLocked() {
	s.expiries.next = time.Time{}
	for _, since := range s.expiries.since {
		s.scheduleLocked(since)
	}
}

// nextExpiry returns a channel that fires at the next expiry, or nil.
func (s *Service) nextExpiry() <-chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiries.next.IsZero() {
		return nil
	}
	wait := max(time.Until(s.expiries.next), time.Until(s.expiries.last.Add(expireEvery)))
	return time.After(wait)
}

// expire marks the aliases whose stale addresses have reached the limit.
func (s *Service) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiries.next, s.expiries.last = time.Time{}, now
	for e, since := range s.expiries.since {
		if now.Before(since.Add(s.policy.StaleLimit)) {
			s.scheduleLocked(since)
		} else {
			s.dirty[e.key] = true
		}
	}
}

// staleUntil returns when the addresses of a family are or were withdrawn; zero: never.
func (f Family) staleUntil(limit time.Duration) time.Time {
	if limit <= 0 || f.StaleSince.IsZero() || len(f.Addrs) == 0 && f.Cause != causeStaleLimit {
		return time.Time{}
	}
	return f.StaleSince.Add(limit)
}
