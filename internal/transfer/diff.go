// Package transfer carries zones between servers: what changed between two serials (IXFR), who may have it, and which
// secondaries have it already.
package transfer

import (
	"slices"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Difference is what one group of edits changed of a zone on the wire. Each part begins with its SOA (RFC 1995 §4).
type Difference struct {
	Removed []rr.Set
	Added   []rr.Set
}

// Since returns how a zone came from a serial to the one it has now, oldest difference first: none when they are the
// same. The edits of a group are one difference, because a serial between them was never served. Since reports false
// when the journal does not go back to the serial, or the differences take more than limit bytes: then the whole zone
// must be sent.
func Since(v store.View, z zone.Zone, serial uint32, limit int) ([]Difference, bool) {
	if serial == z.Serial {
		return nil, true
	}
	var out []Difference
	at, size, found := z.Serial, 0, false
	err := v.Steps(z.ID, func(c store.Change) (bool, error) {
		if c.To == c.From && !c.Whole && len(c.Sets) == 0 {
			return true, nil
		}
		if c.Whole || c.Retimed || c.To != at || c.From == 0 {
			return false, nil
		}
		d, n := difference(c)
		if c.To == c.From { // nothing of it was on the wire, unless a master has changed a zone and not its serial
			return n == 0, nil
		}
		if int32(c.To-c.From) < 0 { // RFC 1982: it was taken anew from a master that had begun again
			return false, nil
		}
		size += n
		if size > limit || len(d.Removed) == 0 || d.Removed[0].Type != rr.TypeSOA {
			return false, nil
		}
		out = append(out, d)
		at = c.From
		found = at == serial
		return !found, nil
	})
	if err != nil || !found {
		return nil, false
	}
	slices.Reverse(out)
	return out, true
}

// difference takes a commit apart, and tells how many octets of records it is.
func difference(c store.Change) (d Difference, size int) {
	for _, s := range c.Sets {
		var before, after rr.Set
		if s.Before != nil {
			before = s.Before.Served(c.ZoneTTL)
		}
		if s.After != nil {
			after = s.After.Served(c.ZoneTTL)
		}
		if gone := without(before, after); len(gone.Data) > 0 {
			d.Removed = append(d.Removed, gone)
			size += octets(gone)
		}
		if come := without(after, before); len(come.Data) > 0 {
			d.Added = append(d.Added, come)
			size += octets(come)
		}
	}
	soaFirst(d.Removed)
	soaFirst(d.Added)
	return d, size
}

// without is the records of a that are not in b with the same TTL.
func without(a, b rr.Set) rr.Set {
	if a.TTL == b.TTL {
		a.Data = slices.DeleteFunc(slices.Clone(a.Data), func(d string) bool { return slices.Contains(b.Data, d) })
	}
	return a
}

func soaFirst(sets []rr.Set) {
	if i := slices.IndexFunc(sets, func(s rr.Set) bool { return s.Type == rr.TypeSOA }); i > 0 {
		soa := sets[i]
		copy(sets[1:i+1], sets[:i])
		sets[0] = soa
	}
}

// octets is about what a set takes in a message.
func octets(s rr.Set) (n int) {
	for _, d := range s.Data {
		n += 12 + len(d)
	}
	return n
}
