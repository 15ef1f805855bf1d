package update

import (
	"maps"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// pendingUpdate holds the record sets that an update touches, and writes each of them once, at the end. A message can
// have thousands of records of one set, a set is written as a whole, and all other edits wait for this one.
type pendingUpdate struct {
	tx     *publish.Tx
	z      zone.Zone
	may    func(dnsname.Name, rr.Type) bool // nil: the client may change all records
	serial uint32                           // serial of the SOA with the changes so far
	rname  dnsname.Name                     // mailbox of a new SOA
	names  map[dnsname.Name][]*pendingSet
	// room is the number of record sets that the zone may get. An update that only adds is refused at the first one above
	// it, because all other edits wait while a large update runs.
	room, created int
	full          *publish.QuotaError
	order         []*pendingSet // sets that may have changed, in order
}

// pendingSet is a record set with the changes that the update has made so far.
type pendingSet struct {
	set     zone.RecordSet    // the set in the zone; only the TTL is already changed
	data    map[string]string // records by rr.DataKey
	stored  bool              // the set is in the zone
	present bool              // the set is in the zone after the update
	changed bool
}

// at returns the sets of a name.
func (d *pendingUpdate) at(n dnsname.Name) ([]*pendingSet, error) {
	if sets, ok := d.names[n]; ok {
		return sets, nil
	}
	sets, err := d.tx.RecordSetsAt(d.z.ID, n)
	if err != nil {
		return nil, err
	}
	d.names[n] = nil
	for _, s := range sets {
		d.put(s, true)
	}
	return d.names[n], nil
}

// put adds a set to those that the update may change. It indexes the records, because an update can have thousands.
func (d *pendingUpdate) put(s zone.RecordSet, stored bool) *pendingSet {
	p := &pendingSet{set: s, data: make(map[string]string, len(s.Data)), stored: stored, present: stored}
	for _, v := range s.Data {
		p.data[rr.DataKey(s.Type, v)] = v
	}
	d.names[s.Name] = append(d.names[s.Name], p)
	d.order = append(d.order, p)
	return p
}

// find returns the set of a type, or nil. A name has few types, so a scan is faster than an index.
func find(sets []*pendingSet, t rr.Type) *pendingSet {
	if i := slices.IndexFunc(sets, func(s *pendingSet) bool { return s.set.Type == t }); i >= 0 {
		return sets[i]
	}
	return nil
}

// finish writes the sets that have changed.
func (d *pendingUpdate) finish() error {
	for _, s := range d.order {
		if err := d.write(s); err != nil {
			return err
		}
	}
	if d.serial == d.z.Serial {
		return nil
	}
	if err := d.tx.SetSerial(d.z.ID, d.serial); err != nil {
		return err
	}
	z := d.z
	z.Email = zone.Mailbox(d.rname)
	_, err := d.tx.UpdateZone(z)
	return err
}

// write writes a set once, according to its state before and after the update.
func (d *pendingUpdate) write(s *pendingSet) (err error) {
	set := s.set
	set.Data = slices.Collect(maps.Values(s.data)) // in random order, which the edit sorts
	switch {
	case !s.changed || !s.stored && !s.present:
	case !s.present:
		err = d.tx.DeleteSet(d.z.ID, set.Name, set.Type)
	case s.stored:
		_, err = d.tx.UpdateSet(set)
	default:
		_, err = d.tx.CreateSet(set)
	}
	return err
}
