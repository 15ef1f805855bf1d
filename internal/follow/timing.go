package follow

import "time"

const (
	// ttlUnit is how exactly TTLs are told.
	ttlUnit = time.Second

	// prefetch is the part of a TTL after which a name is asked again, so that the new answer is there before the old one
	// ends even if the first attempt fails.
	prefetch = 0.9

	// jitter is the part of a wait that is left to chance. It keeps names that were learned together from being asked
	// together for ever; more would cost queries for nothing.
	jitter = 0.05

	// late is how long after the end of a TTL a caching resolver is asked. Caches count whole seconds, so at the exact
	// end it may still have the old answer.
	late = 500 * time.Millisecond

	// A name that failed is asked again after firstRetry, and after twice as long each time it fails again, up to
	// lastRetry. RFC 9520 §3.2 wants failures kept for 1 second at least and 5 minutes at most.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// timing decides when a name is asked again. It is pure but for its source of chance.
type timing struct {
	floor, ceiling time.Duration
	chance         func() float64 // in [0, 1)
}

// some is a random part of d.
func (t timing) some(d time.Duration) time.Duration { return time.Duration(t.chance() * float64(d)) }

// fresh is how long to wait after an answer with addresses. A cache has nothing new before the TTL is over.
func (t timing) fresh(ttl time.Duration, cached bool) time.Duration {
	wait := time.Duration(prefetch * float64(ttl))
	wait -= t.some(time.Duration(jitter * float64(wait)))
	if cached {
		wait = ttl + late + t.some(late)
	}
	return t.bound(wait)
}

// rest is how long to wait after a cache gave the rest of an answer that we had: a second more than is left, because caches
// count whole seconds. The floor does not count, because the name is asked once more than its TTL wants, and not more
// often: who is asked after that long cannot give the same rest again.
func (t timing) rest(ttl time.Duration) time.Duration {
	return min(ttl+ttlUnit+t.some(late/2), t.ceiling)
}

// negative is how long to wait after an answer without addresses: to its end, because nobody waits for what is not there.
func (t timing) negative(ttl time.Duration) time.Duration { return t.bound(ttl + t.some(late)) }

// bound keeps a wait between floor and ceiling, with jitter where they decide, away from the forbidden side.
func (t timing) bound(wait time.Duration) time.Duration {
	if wait < t.floor {
		return t.floor + t.some(time.Duration(jitter*float64(t.floor)))
	}
	if wait > t.ceiling {
		return t.ceiling - t.some(time.Duration(jitter*float64(t.ceiling)))
	}
	return wait
}

// retry is how long to wait after n failures in a row.
func (t timing) retry(n int) time.Duration {
	wait := lastRetry
	if n < 8 { // before the shift could overflow
		wait = min(firstRetry<<(n-1), lastRetry)
	}
	wait = min(wait, t.ceiling)
	return wait + t.some(time.Duration(2*jitter*float64(wait)))
}

// seeded is how long to wait with a name whose state is known from before: some time within what is left of it, or within
// its TTL when nothing is left. So a restart asks no more in a second than any other time.
func (t timing) seeded(s State, now time.Time) time.Duration {
	left := s.ValidUntil.Sub(now)
	if left <= 0 || left > s.TTL {
		left = s.TTL
	}
	return t.some(min(max(left, t.floor), t.ceiling))
}
