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

	// together is how long a change waits for the other family of its name, which is asked for at the same time: a target
	// that moves with both is one change to its followers. One that does not answer holds up the other no longer.
	together = 500 * time.Millisecond

	// apart is how much longer the family of a name waits that ends sooner in a cache. Two that were fetched at once, in two
	// seconds of its clock, end a second apart; asked for when the later one is over, they are together again.
	apart = ttlUnit + late/2

	// A name that failed is asked again after firstRetry, and after twice as long each time it fails again, up to
	// lastRetry. RFC 9520 §3.2 wants failures kept for 1 second at least and 5 minutes at most.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// span is a wait that chance chose, and the bounds that it chose within.
type span struct{ from, wait, until time.Duration }

// timing decides when a name is asked again. It is pure but for its source of chance.
type timing struct {
	floor, ceiling time.Duration
	chance         func() float64 // in [0, 1)
}

// some is a random part of d.
func (t timing) some(d time.Duration) time.Duration { return time.Duration(t.chance() * float64(d)) }

// after is a wait of at least from, and before one of at most until.
func (t timing) after(from, spread time.Duration) span {
	return span{from, from + t.some(spread), from + spread}
}

func (t timing) before(until, spread time.Duration) span {
	return span{until - spread, until - t.some(spread), until}
}

// longer allows a wait more than chance may choose.
func (s span) longer(by time.Duration) span {
	s.until += by
	return s
}

// part is the share of a wait that is left to chance.
func part(d time.Duration) time.Duration { return time.Duration(jitter * float64(d)) }

// fresh is how long to wait after an answer with addresses. A cache has nothing new before the TTL is over.
func (t timing) fresh(ttl time.Duration, cached bool) span {
	if cached {
		return t.bound(t.after(ttl+late, late).longer(apart))
	}
	wait := time.Duration(prefetch * float64(ttl))
	return t.bound(t.before(wait, part(wait)))
}

// rest is how long to wait after a cache gave the rest of an answer that we had: a second more than is left, because caches
// count whole seconds. The floor does not count, because the name is asked once more than its TTL wants, and not more
// often: who is asked after that long cannot give the same rest again.
func (t timing) rest(ttl time.Duration) span {
	s := t.after(ttl+ttlUnit, late/2).longer(apart)
	return span{min(s.from, t.ceiling), min(s.wait, t.ceiling), min(s.until, t.ceiling)}
}

// negative is how long to wait after an answer without addresses: to its end, because nobody waits for what is not there.
func (t timing) negative(ttl time.Duration) span { return t.bound(t.after(ttl, late)) }

// bound keeps a wait between floor and ceiling, with jitter where they decide, away from the forbidden side.
func (t timing) bound(s span) span {
	if s.wait < t.floor {
		return t.after(t.floor, part(t.floor))
	}
	if s.wait > t.ceiling {
		return t.before(t.ceiling, part(t.ceiling))
	}
	return span{max(s.from, t.floor), s.wait, min(s.until, t.ceiling)}
}

// retry is how long to wait after n failures in a row.
func (t timing) retry(n int) span {
	wait := lastRetry
	if n < 8 { // before the shift could overflow
		wait = min(firstRetry<<(n-1), lastRetry)
	}
	wait = min(wait, t.ceiling)
	return t.after(wait, 2*part(wait))
}

// seeded is how long to wait with a name whose state is known from before: some time within what is left of it, or within
// its TTL when nothing is left. So a restart asks no more in a second than any other time.
func (t timing) seeded(s State, now time.Time) span {
	left := s.ValidUntil.Sub(now)
	if left <= 0 || left > s.TTL {
		left = s.TTL
	}
	return t.after(0, min(max(left, t.floor), t.ceiling))
}
