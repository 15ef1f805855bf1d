package update

import (
	"maps"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// desk has the sets that an update is about, and writes each of them once, at the end: a message has room for thousands of records
// of one set, all other changes wait for this one, and a set is written whole.
type desk struct {
	tx    *publish.Tx
	z     zone.Zone
	names map[dnsname.Name][]*sheet
	order []*sheet // those that may have changed
}

// sheet is a set as far as the update has come.
type sheet struct {
	set     zone.RecordSet    // as it is in the zone, but for the TTL
	data    map[string]string // its records by rr.DataKey
	stored  bool              // it is in the zone
	there   bool              // and shall be
	changed bool
}

// at are the sets of a name.
func (d *desk) at(n dnsname.Name) ([]*sheet, error) {
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

func (d *desk) put(s zone.RecordSet, stored bool) *sheet {
	p := &sheet{set: s, data: make(map[string]string, len(s.Data)), stored: stored, there: stored}
	for _, v := range s.Data {
		p.data[rr.DataKey(s.Type, v)] = v
	}
	d.names[s.Name] = append(d.names[s.Name], p)
	d.order = append(d.order, p)
	return p
}

func find(sets []*sheet, t rr.Type) *sheet {
	if i := slices.IndexFunc(sets, func(s *sheet) bool { return s.set.Type == t }); i >= 0 {
		return sets[i]
	}
	return nil
}

// finish writes what has changed.
func (d *desk) finish() error {
	for _, s := range d.order {
		if err := d.write(s); err != nil {
			return err
		}
	}
	return nil
}

func (d *desk) write(s *sheet) (err error) {
	set := s.set
	set.Data = slices.Collect(maps.Values(s.data)) // in no order, which the edit puts right
	switch {
	case !s.changed || !s.stored && !s.there:
	case !s.there:
		err = d.tx.DeleteSet(d.z.ID, set.Name, set.Type)
	case s.stored:
		_, err = d.tx.UpdateSet(set)
	default:
		_, err = d.tx.CreateSet(set)
	}
	return err
}
