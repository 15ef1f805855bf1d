package alias

import (
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/zone"
)

// shownLocked is what may be told of an ALIAS now. What an edit made of it is told once its addresses are served, and not while
// the edit is on its way to the disk: who reads ACTIVE may ask for the addresses at once.
func (s *Service) shownLocked(e *entry) Record {
	if e.next == nil {
		return e.rec
	}
	if snap := s.publisher.Snapshot(); snap != e.during && e.next.served(snap, e) {
		s.setRecord(e, *e.next)
		e.next, e.during = nil, nil
	}
	return e.rec
}

// newest is what the last edit made of an ALIAS, served or not.
func (e *entry) newest() Record {
	if e.next != nil {
		return *e.next
	}
	return e.rec
}

// settledLocked takes in what the store has of an ALIAS, which is served.
func (s *Service) settledLocked(e *entry, rec Record) {
	s.setRecord(e, rec)
	e.next, e.during = nil, nil
}

// served reports whether the addresses of a record are those in a snapshot. An edit that failed may have another one after it
// that did not, so that the snapshot alone does not tell.
func (r *Record) served(snap *zone.Snapshot, e *entry) bool {
	z := snap.ZoneOf(e.apex)
	if z == nil || z.ID() != e.key.Zone {
		return false
	}
	node := z.Find([]byte(e.key.Name.In(e.apex)))
	for i, f := range r.Families {
		if !node.Found() {
			if len(f.Addrs) > 0 {
				return false
			}
			continue
		}
		if set, _ := node.Find(typeOf(i)); !sameAddrs(set.Wire, set.Count, f.Addrs) {
			return false
		}
	}
	return true
}

// sameAddrs reports whether so many records, which are of one length, have these addresses in any order. An address stands at
// the end of its record.
func sameAddrs(wire string, count int, addrs []netip.Addr) bool {
	if count != len(addrs) {
		return false
	}
	for i := range count {
		end := (i + 1) * len(wire) / count
		if !slices.ContainsFunc(addrs, func(a netip.Addr) bool {
			b := a.AsSlice()
			return string(b) == wire[end-len(b):end]
		}) {
			return false
		}
	}
	return true
}
