package publish

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// changeSet records the change of a record set. Several changes of one set in an edit become one.
func (e *zoneEdit) changeSet(before, after *zone.RecordSet) {
	// A deletion breaks no rule about the sets of one name, except at the apex, which must keep its NS records. Names of
	// deleted sets are not read again, because bbolt keeps emptied pages until the commit and each seek passes them: the
	// deletion of 60,000 sets took 0.9 s longer.
	if after != nil || before.Name == e.zone.Name {
		e.names[cmp.Or(after, before).Name] = true
	}
	e.tally(before, -1)
	e.tally(after, +1)
	e.noteLargest(e.hadRecords(before, after), after)
	if e.derives {
		e.unseen = append(e.unseen, store.SetChange{Before: before, After: after})
	}
	if before != nil {
		if i := e.find(before.ID); i >= 0 {
			e.sets[i].After = after
			return
		}
	}
	e.note(store.SetChange{Before: before, After: after})
}

// fewSets is the length up to which a linear search is cheaper than an index.
const fewSets = 16

// find returns the index in e.sets of the change whose result is the set with this ID, or -1.
func (e *zoneEdit) find(id uuid.UUID) int {
	if e.changed == nil {
		return slices.IndexFunc(e.sets, func(c store.SetChange) bool { return c.After != nil && c.After.ID == id })
	}
	if i, ok := e.changed[id]; ok {
		return i
	}
	return -1
}

// note appends a change to e.sets.
func (e *zoneEdit) note(c store.SetChange) {
	e.sets = append(e.sets, c)
	switch {
	case e.changed != nil:
		e.index(len(e.sets) - 1)
	case len(e.sets) > fewSets:
		e.changed = make(map[uuid.UUID]int, 2*len(e.sets))
		for i := range e.sets {
			e.index(i)
		}
	}
}

func (e *zoneEdit) index(i int) {
	if after := e.sets[i].After; after != nil {
		e.changed[after.ID] = i
	}
}

// tally adds a set to the counts of the zone, or removes it (by is +1 or -1). Derived sets are hidden from users and
// are not counted.
func (e *zoneEdit) tally(s *zone.RecordSet, by int) {
	if s == nil || s.Hidden {
		return
	}
	e.zone.Sets += by
	e.zone.Records += by * len(s.Data)
	n := len(s.Name.Wire()) + s.Weight()
	e.zone.Bytes = max(0, e.zone.Bytes+by*n) // older versions did not count the bytes, so the sum can be too small
}

// finish checks the state that an edit leaves, steps the serials and writes the journal.
func (tx *Tx) finish() error {
	if err := tx.derive(); err != nil {
		return err
	}
	for _, e := range tx.order {
		if e.deleted {
			continue
		}
		if err := tx.finishZone(e); err != nil {
			return err
		}
	}
	tx.order = slices.DeleteFunc(tx.order, func(e *zoneEdit) bool {
		return !e.deleted && !e.created && !e.touched && !e.reload && len(e.sets) == 0
	})
	return nil
}

// finishZone completes the edit of one zone. It may be called again after further changes.
func (tx *Tx) finishZone(e *zoneEdit) error {
	if err := tx.check(e); err != nil {
		return err
	}
	if err := tx.checkQuotas(e); err != nil {
		return err
	}
	gone := func(c store.SetChange) bool { return c.Before == nil && c.After == nil }
	if slices.ContainsFunc(e.sets, gone) {
		e.sets, e.changed = slices.DeleteFunc(e.sets, gone), nil
	}
	e.served = e.served[:0]
	for _, c := range e.sets {
		if s, ok := servedChange(c, e.before.TTL, e.zone.TTL); ok {
			e.served = append(e.served, s)
		}
	}
	if e.zone.Kind == zone.Secondary && len(e.sets) > 0 {
		copied, err := SecondaryOf(tx.View, e.zone.ID)
		if err != nil {
			return err
		}
		e.reload = e.reload || copied.Expired // an expired copy stays unserved, whatever changes in it
	}
	if len(e.served) > 0 || e.reload {
		if err := tx.stepSerial(e); err != nil {
			return err
		}
	}
	if len(e.sets) == 0 && !e.reload && !e.touched {
		return nil
	}
	if err := tx.record(e); err != nil {
		return err
	}
	return tx.edit.PutZone(e.zone) // after record, which counts the change
}

// check runs zone.Check for each name that the edit touched, and checks that the zone can still be served.
func (tx *Tx) check(e *zoneEdit) error {
	for n := range e.names {
		sets, err := tx.RecordSetsAt(e.zone.ID, n)
		if err != nil {
			return err
		}
		if err := zone.Check(e.zone.Name, n, sets); err != nil {
			return err
		}
		if e.zone.Kind == zone.Overlay {
			if err := zone.CheckOverlay(n, sets); err != nil {
				return err
			}
		}
		if n == e.zone.Name && (e.zone.Kind == zone.Primary || e.zone.Kind == zone.Secondary) {
			if err := zone.CheckApex(n, sets); err != nil {
				return err
			}
		}
	}
	return nil
}

// servedChange returns the set to serve after a change, and whether it differs from the set served before. It ignores
// the SOA: stepSerial writes the SOA, and a new serial alone is not a change.
func servedChange(c store.SetChange, ttlBefore, ttlAfter uint32) (rr.Set, bool) {
	var before, after rr.Set
	if c.Before != nil {
		before = c.Before.Served(ttlBefore)
	}
	if c.After != nil {
		after = c.After.Served(ttlAfter)
	} else {
		after = rr.Set{Name: before.Name, Type: before.Type}
	}
	if len(before.Data) == 0 && len(after.Data) == 0 || c.Before != nil && before.Equal(after) {
		return rr.Set{}, false
	}
	return after, true
}

// stepSerial gives the zone and its SOA record the serial of this commit, once.
func (tx *Tx) stepSerial(e *zoneEdit) error {
	if e.zone.Kind == zone.Overlay { // an overlay has no SOA, but its history needs the serial to distinguish states
		if e.zone.Serial == e.before.Serial {
			e.zone.Serial = zone.NextSerial(e.before.Serial, tx.now)
		}
		return nil
	}
	soa, err := tx.RecordSet(e.zone.ID, e.zone.Name, rr.TypeSOA)
	if err != nil {
		if e.zone.Kind != zone.Primary {
			return nil
		}
		return err
	}
	if len(soa.Data) != 1 {
		return &zone.PlacementError{Reason: "zone " + e.zone.Name.String() + " must have exactly one SOA record"}
	}
	if e.zone.Kind == zone.Secondary { // the master sets the serial
		given, _ := zone.ParseSOA(soa.Data[0])
		e.zone.Serial = given.Serial
		return nil
	}
	if e.zone.Serial == e.before.Serial {
		old := e.before.Serial
		if given, ok := zone.ParseSOA(soa.Data[0]); ok && e.created && int32(given.Serial-old) > 0 {
			old = given.Serial - 1 // an imported zone continues from the serial in its SOA
		}
		e.zone.Serial = zone.NextSerial(old, tx.now)
		if e.serial != nil {
			e.zone.Serial = *e.serial
		}
	}
	was := soa
	soa.Data = []string{zone.WithSerial(soa.Data[0], e.zone.Serial)}
	if slices.Equal(was.Data, soa.Data) {
		return nil
	}
	soa.Version++
	if !e.created {
		soa.Updated = tx.now
	}
	e.changeSet(&was, &soa)
	e.served = slices.DeleteFunc(e.served, func(s rr.Set) bool { return s.Type == rr.TypeSOA })
	e.served = append(e.served, soa.Served(e.zone.TTL))
	return tx.edit.PutSet(soa)
}

// maxChange is how many bytes of record data the journal keeps for one change. The body of a batch cannot be larger,
// but a batch can delete ten thousand sets of 64 KiB.
const maxChange = 4 << 20

func dataBytes(sets []store.SetChange) (n int) {
	for _, s := range sets {
		for _, side := range []*zone.RecordSet{s.Before, s.After} {
			if side != nil {
				n += side.Weight()
			}
		}
	}
	return n
}

// record writes the zone's change to the journal.
func (tx *Tx) record(e *zoneEdit) error {
	commit, err := tx.commitNumber()
	if err != nil {
		return err
	}
	c := store.Change{Zone: e.zone.ID, Commit: commit, Group: tx.group, Time: tx.now, Actor: tx.actor, Note: tx.note,
		From: e.before.Serial, To: e.zone.Serial, ZoneTTL: e.zone.TTL, Sets: e.sets}
	if e.reload && !e.created && e.zone.TTL != e.before.TTL {
		c.Retimed, c.TTLFrom = true, e.before.TTL
	}
	if n := len(e.sets) + e.count; n > tx.p.opts.JournalSets || dataBytes(e.sets) > maxChange {
		c.Sets, c.Whole, c.Retimed, c.TTLFrom = nil, true, false, 0
	}
	tx.changes = append(slices.DeleteFunc(tx.changes, func(o store.Change) bool { return o.Zone == c.Zone }), c)
	return tx.journal(e, c)
}
