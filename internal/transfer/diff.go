// Package transfer moves zones between this server and its masters and secondaries.
//
// Start with Refresher in refresh.go: it keeps our copies of SECONDARY zones, and attempt.go, fetch.go and incoming.go
// are one refresh of one zone. Notifier in notify.go sends NOTIFY to secondaries and checks their serials. Since in
// this file returns the differences for IXFR replies, and Keyring in keyring.go finds TSIG keys.
package transfer

import (
	"slices"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Difference is the change of a zone by one group of edits, as secondaries see it. Each part begins with its SOA (RFC
// 1995 §4).
type Difference struct {
	Removed []rr.Set
	Added   []rr.Set
}

// Since returns the differences between a serial and the current one, oldest first; none if they are the same. The
// edits of a group are one difference, because a serial between them was never served. Since returns false when the
// journal does not go back to the serial, or the differences have more than limit bytes: then the whole zone must be
// sent.
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
		if c.To == c.From { // not visible in DNS, unless a master changed a zone without its serial
			return n == 0, nil
		}
		if int32(c.To-c.From) < 0 { // RFC 1982: the zone was transferred again from a master that restarted its serials
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

// difference converts a commit, and returns the size of its records in bytes.
func difference(c store.Change) (d Difference, size int) {
	for _, s := range c.Sets {
		var before, after rr.Set
		if s.Before != nil {
			before = s.Before.Served(c.ZoneTTL)
		}
		if s.After != nil {
			after = s.After.Served(c.ZoneTTL)
		}
		if gone := minus(before, after); len(gone.Data) > 0 {
			d.Removed = append(d.Removed, gone)
			size += wireSize(gone)
		}
		if come := minus(after, before); len(come.Data) > 0 {
			d.Added = append(d.Added, come)
			size += wireSize(come)
		}
	}
	soaFirst(d.Removed)
	soaFirst(d.Added)
	return d, size
}

// minus returns the records of a that are not in b with the same TTL.
func minus(a, b rr.Set) rr.Set {
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

// wireSize returns the approximate size of a set in a message.
func wireSize(s rr.Set) (n int) {
	for _, d := range s.Data {
		n += 12 + len(d)
	}
	return n
}
