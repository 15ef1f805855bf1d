package follow

import "time"

const (
	// ttlUnit is the resolution of TTLs.
	ttlUnit = time.Second

	// prefetch is the part of a TTL after which a name is queried again. So the new answer is there before the old one
	// expires, even if the first attempt fails.
	prefetch = 0.9

	// jitter is the random part of a wait. It spreads the queries of names that were first queried together. A larger part
	// would cost queries for no benefit.
	jitter = 0.05

	// afterExpiry is how long after the end of a TTL a caching resolver is queried. Caches count whole seconds, so at the
	// exact end the cache may still have the old answer.
	afterExpiry = 500 * time.Millisecond

	// familyWait is how long a change waits for the other family of its name, which is queried at the same time. So a
	// target that changes both families is one change for its followers. A family without a reply delays the other no
	// longer.
	familyWait = 500 * time.Millisecond

	// cacheSkew is how much longer a family may wait that expires earlier in a cache. Two families that a cache fetched
	// together, in two seconds of its clock, expire one second apart. Queried when the later one has expired, they are
	// aligned again.
	cacheSkew = ttlUnit + afterExpiry/2

	// A name that failed is queried again after firstRetry. The wait doubles with each further failure, up to lastRetry.
	// RFC 9520 §3.2 requires failures to be cached for at least 1 second and at most 5 minutes.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// span is a random wait with its bounds.
type span struct{ from, wait, until time.Duration }

// timing computes when a name is queried again. It is a pure function of its inputs and of chance.
type timing struct {
	floor, ceiling time.Duration
	chance         func() float64 // in [0, 1)
}

// randomPart returns a random part of d.
func (t timing) randomPart(d time.Duration) time.Duration {
	return time.Duration(t.chance() * float64(d))
}

// after returns a random wait of at least from; before returns one of at most until.
func (t timing) after(from, spread time.Duration) span {
	return span{from, from + t.randomPart(spread), from + spread}
}

func (t timing) before(until, spread time.Duration) span {
	return span{until - spread, until - t.randomPart(spread), until}
}

// extend moves the upper bound of a wait beyond the random choice.
func (s span) extend(by time.Duration) span {
	s.until += by
	return s
}

// jitterOf returns the random part of a wait.
func jitterOf(d time.Duration) time.Duration { return time.Duration(jitter * float64(d)) }

// fresh returns the wait after an answer with addresses. A cache has nothing new before the TTL expires.
func (t timing) fresh(ttl time.Duration, cached bool) span {
	if cached {
		return t.bound(t.after(ttl+afterExpiry, afterExpiry).extend(cacheSkew))
	}
	wait := time.Duration(prefetch * float64(ttl))
	return t.bound(t.before(wait, jitterOf(wait)))
}

// remainder returns the wait after a cache returned the remainder of a known answer. It is one second longer than the
// remaining TTL, because caches count whole seconds. The floor does not apply: the name is queried once more than its
// TTL requires, and a resolver that is queried that late cannot return the same remainder again.
func (t timing) remainder(ttl time.Duration) span {
	s := t.after(ttl+ttlUnit, afterExpiry/2).extend(cacheSkew)
	return span{min(s.from, t.ceiling), min(s.wait, t.ceiling), min(s.until, t.ceiling)}
}

// negative returns the wait after an answer without addresses: until the negative TTL expires, without prefetching.
func (t timing) negative(ttl time.Duration) span { return t.bound(t.after(ttl, afterExpiry)) }

// bound keeps a wait between floor and ceiling. Where one of them applies, the jitter stays on the allowed side.
func (t timing) bound(s span) span {
	if s.wait < t.floor {
		return t.after(t.floor, jitterOf(t.floor))
	}
	if s.wait > t.ceiling {
		return t.before(t.ceiling, jitterOf(t.ceiling))
	}
	return span{max(s.from, t.floor), s.wait, min(s.until, t.ceiling)}
}

// retry returns the wait after n failures in a row.
func (t timing) retry(n int) span {
	wait := lastRetry
	if n < 8 { // the shift cannot overflow
		wait = min(firstRetry<<(n-1), lastRetry)
	}
	wait = min(wait, t.ceiling)
	return t.after(wait, 2*jitterOf(wait))
}

// seeded returns the first wait of a name with a known state: a random time within its remaining TTL, or within its
// whole TTL if that has expired. So a restart sends queries at the same rate as normal operation.
func (t timing) seeded(s State, now time.Time) span {
	left := s.ValidUntil.Sub(now)
	if left <= 0 || left > s.TTL {
		left = s.TTL
	}
	return t.after(0, min(max(left, t.floor), t.ceiling))
}
