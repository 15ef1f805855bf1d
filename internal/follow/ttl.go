package follow

import (
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// A resolver's cache counts down the TTL of each record set. Followers must not mistake that for a change by the zone
// owner: a zone that publishes the TTL would change with every refresh.

// cachedSet is a record set on the path to the addresses, as a cache returned it: a CNAME, or the addresses.
type cachedSet struct {
	owner, target dnsname.Name  // no target: address records
	ttl           time.Duration // TTL as its owner set it, as far as known
	until         time.Time     // when it expires in the cache
}

// restoreTTLs returns an outcome with the TTLs that the owners set, as far as earlier answers show them.
func (e *entry) restoreTTLs(o outcome, now time.Time) outcome {
	if o.err != nil {
		return o
	}
	known := e.knownSets()
	var sets []cachedSet
	owner := e.node.name
	o.chain = slices.Clone(o.chain)
	for i, l := range o.chain {
		p := withOriginalTTL(known, cachedSet{l.Name, l.Target, l.TTL, now.Add(l.TTL)}, now, true)
		o.chain[i].TTL, owner = p.ttl, l.Target
		sets = append(sets, p)
	}
	if o.answer == Found {
		same := slices.Equal(e.state.Addrs, o.addrs)
		addrs := cachedSet{owner: owner, ttl: o.addrTTL, until: now.Add(o.addrTTL)}
		sets = append(sets, withOriginalTTL(known, addrs, now, same))
		o.originalTTL = slices.MinFunc(sets, func(a, b cachedSet) int { return int(a.ttl - b.ttl) }).ttl
	}
	e.cachedSets = nil
	if len(o.chain) > 0 {
		e.cachedSets = sets
	}
	return o
}

// knownSets returns the record sets of the last answer. If that had no chain, or is older than the program, they are
// built from the state.
func (e *entry) knownSets() []cachedSet {
	if e.cachedSets != nil {
		return e.cachedSets
	}
	var out []cachedSet
	owner := e.node.name
	for _, l := range e.state.AnswerChain {
		out = append(out, cachedSet{l.Name, l.Target, l.TTL, e.state.ValidUntil})
		owner = l.Target
	}
	return append(out, cachedSet{owner: owner, ttl: e.state.TTL, until: e.state.ValidUntil})
}

// withOriginalTTL returns a record set with the TTL that its owner set, if p has less of it.
//
// While the last known set is valid, a smaller TTL may always be its remainder, if the set is the same. Caches count
// whole seconds, so they may return the set for most of a second longer, with a TTL of 0. After it has expired, the
// resolver fetched the set again, perhaps for another client. Then at most the time since the expiry can be missing; if
// more is missing, the owner has shortened the TTL.
func withOriginalTTL(known []cachedSet, p cachedSet, now time.Time, same bool) cachedSet {
	for _, k := range known {
		if k.owner != p.owner || k.target != p.target {
			continue
		}
		missing, over := k.ttl-p.ttl, now.Sub(k.until)
		remainder := same && over < ttlUnit
		again := over >= 0 && missing <= over+ttlUnit
		if missing > 0 && (remainder || again) {
			p.ttl = k.ttl
		}
	}
	return p
}
