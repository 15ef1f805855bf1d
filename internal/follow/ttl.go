package follow

import (
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// A resolver's cache counts TTLs down, each record set by itself, and followers must not take that for the owners' doing: a
// zone that publishes the TTL would change with every refresh.

// piece is a CNAME on the way to addresses, or these, as a cache had it.
type piece struct {
	owner, target dnsname.Name  // no target: addresses
	ttl           time.Duration // as its owner set it, as far as that is known
	until         time.Time     // when the cache's is over
}

// uncounted is an outcome with the TTLs that the owners set, as far as they are known from answers before.
func (e *entry) uncounted(o outcome, now time.Time) outcome {
	if o.err != nil {
		return o
	}
	known := e.known()
	var pieces []piece
	owner := e.node.name
	o.chain = slices.Clone(o.chain)
	for i, l := range o.chain {
		p := recall(known, piece{l.Name, l.Target, l.TTL, now.Add(l.TTL)}, now, true)
		o.chain[i].TTL, owner = p.ttl, l.Target
		pieces = append(pieces, p)
	}
	if o.answer == Found {
		same := slices.Equal(e.state.Addrs, o.addrs)
		pieces = append(pieces, recall(known, piece{owner: owner, ttl: o.own, until: now.Add(o.own)}, now, same))
		o.whole = slices.MinFunc(pieces, func(a, b piece) int { return int(a.ttl - b.ttl) }).ttl
	}
	e.pieces = nil
	if len(o.chain) > 0 {
		e.pieces = pieces
	}
	return o
}

// known are the pieces of the last answer. Of one without a chain, or from before the program started, the state has what is
// needed.
func (e *entry) known() []piece {
	if e.pieces != nil {
		return e.pieces
	}
	var out []piece
	owner := e.node.name
	for _, l := range e.state.Way {
		out = append(out, piece{l.Name, l.Target, l.TTL, e.state.ValidUntil})
		owner = l.Target
	}
	return append(out, piece{owner: owner, ttl: e.state.TTL, until: e.state.ValidUntil})
}

// recall is a piece with the TTL that its owner set, given one with less of it.
//
// While the last one is valid, less may always be the rest of it, if it is the same. Caches count whole seconds, so it may be given
// out for most of a second more, with nothing left. Once it is over, the resolver asked again in the meantime, perhaps for
// somebody else, and only what has passed since can be missing; if more is, the owner has shortened the TTL.
func recall(known []piece, p piece, now time.Time, same bool) piece {
	for _, k := range known {
		if k.owner != p.owner || k.target != p.target {
			continue
		}
		missing, over := k.ttl-p.ttl, now.Sub(k.until)
		rest := same && over < ttlUnit
		again := over >= 0 && missing <= over+ttlUnit
		if missing > 0 && (rest || again) {
			p.ttl = k.ttl
		}
	}
	return p
}
