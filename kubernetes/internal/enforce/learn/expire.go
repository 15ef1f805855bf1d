package learn

import (
	"slices"
	"time"
)

// Expire takes out the addresses whose lifetime and grace are over. Their entries stay, so that somebody goes on asking for the
// names. next is when there will be more to take out; zero: never, unless something changes. The entries that were given are
// not changed.
func Expire(entries []Entry, now time.Time) (out []Entry, changed bool, next time.Time) {
	out = slices.Clone(entries)
	for i, e := range out {
		over := func(h Held) bool { return !now.Before(h.Until().Add(Grace)) }
		if slices.ContainsFunc(e.Addrs, over) {
			e.Addrs = slices.DeleteFunc(slices.Clone(e.Addrs), over)
			out[i], changed = e, true
		}
		for _, h := range e.Addrs {
			next = earlier(next, h.Until().Add(Grace))
		}
	}
	return out, changed, next
}
