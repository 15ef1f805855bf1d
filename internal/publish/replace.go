package publish

import (
	"bytes"
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// CommitAlone is Commit for edits of very many record sets: it shares its step with no other edit, needs no memory for
// taking rows back, and gives the memory it did need back to the system.
func (p *Publisher) CommitAlone(ctx context.Context, actor store.Actor, fn func(*Tx) error) error {
	err := p.submit(&request{ctx: ctx, actor: actor, fn: fn, alone: true, done: make(chan struct{})})
	debug.FreeOSMemory()
	return err
}

// keyed is a record set of a replacement under its key in the store.
type keyed struct {
	key []byte
	set *zone.RecordSet
}

// ReplaceSets makes sets the whole content of a zone: absent ones are deleted, equal ones stay as they are, with their
// ids. It is for CommitAlone. Ids, versions and times are set here. The sets are changed in place: copies of a million
// of them are not to be had for nothing.
func (tx *Tx) ReplaceSets(zoneID uuid.UUID, sets []zone.RecordSet) error {
	e, err := tx.zone(zoneID)
	if err != nil {
		return err
	}
	want := make([]keyed, len(sets))
	for i := range sets {
		s := &sets[i]
		s.Zone = zoneID
		if len(s.Data) > 1 {
			s.Data = rr.Normal(s.Type, s.Data)
		}
		want[i] = keyed{store.SetKey(zoneID, s.Name, s.Type), s}
	}
	slices.SortFunc(want, func(a, b keyed) int { return bytes.Compare(a.key, b.key) })
	if err := checkAll(e.zone, want); err != nil {
		return err
	}
	have, err := tx.keyedSets(zoneID)
	if err != nil {
		return err
	}
	first, err := tx.Next(store.KeySetNum, uint64(len(want)))
	if err != nil {
		return err
	}
	before := len(e.sets) + e.count
	err = tx.merge(e, have, want, first)
	e.reload = e.reload || len(e.sets)+e.count > before
	return err
}

func (tx *Tx) keyedSets(zoneID uuid.UUID) ([]keyed, error) {
	var have []keyed
	err := tx.RecordSets(zoneID, func(s zone.RecordSet) (bool, error) {
		have = append(have, keyed{store.SetKey(zoneID, s.Name, s.Type), &s})
		return true, nil
	})
	return have, err
}

// merge walks what there is and what there shall be side by side. New sets take numbers from num on.
func (tx *Tx) merge(e *zoneEdit, have, want []keyed, num uint64) error {
	for len(have)+len(want) > 0 {
		order := 0
		switch {
		case len(have) == 0:
			order = 1
		case len(want) == 0:
			order = -1
		default:
			order = bytes.Compare(have[0].key, want[0].key)
		}
		var err error
		switch {
		case order < 0:
			e.bulkChange(have[0].set, nil, tx.p.opts.JournalSets)
			err = tx.Edit.DeleteSet(*have[0].set)
			have = have[1:]
		case order > 0:
			err = tx.addNumbered(e, want[0].set, num)
			num++
			want = want[1:]
		default:
			err = tx.replaceSet(e, have[0].set, want[0].set)
			have, want = have[1:], want[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) addNumbered(e *zoneEdit, s *zone.RecordSet, num uint64) error {
	s.Created, s.Updated, s.Version = tx.now, time.Time{}, 1
	if e.count+len(e.sets) < tx.p.opts.JournalSets {
		s.ID = tx.SetID(num) // the journal wants it; it costs too much to make a million for nobody
	}
	e.bulkChange(nil, s, tx.p.opts.JournalSets)
	return tx.PutNumbered(*s, num)
}

func (tx *Tx) replaceSet(e *zoneEdit, was, s *zone.RecordSet) error {
	if s.Type == rr.TypeSOA && len(s.Data) == 1 && len(was.Data) == 1 {
		s.Data[0] = zone.WithSerial(s.Data[0], e.before.Serial) // the serial is ours to step
	}
	if equalPtr(was.TTL, s.TTL) && slices.Equal(was.Data, s.Data) {
		return nil
	}
	next := *was
	next.TTL, next.Data = s.TTL, s.Data
	next.Version++
	next.Updated = tx.now
	e.bulkChange(was, &next, tx.p.opts.JournalSets)
	return tx.PutSet(next)
}

// bulkChange is changeSet without the search for earlier changes of the same set, and keeps no more than the journal
// takes.
func (e *zoneEdit) bulkChange(before, after *zone.RecordSet, limit int) {
	e.tally(before, -1)
	e.tally(after, +1)
	e.freshWhole = e.derives
	if e.count+len(e.sets) < limit {
		e.sets = append(e.sets, store.SetChange{Before: before, After: after})
		return
	}
	e.count++
}

// checkAll is zone.Check for each name of a whole zone in order.
func checkAll(z zone.Zone, sets []keyed) error {
	var group []zone.RecordSet
	for i := range sets {
		group = append(group, *sets[i].set)
		if i+1 < len(sets) && sets[i+1].set.Name == sets[i].set.Name {
			continue
		}
		if err := zone.Check(z.Name, sets[i].set.Name, group); err != nil {
			return err
		}
		if sets[i].set.Name == z.Name {
			if err := zone.NeedsApex(z.Name, group); err != nil {
				return err
			}
		}
		group = group[:0]
	}
	if len(sets) == 0 || sets[0].set.Name != z.Name {
		return zone.NeedsApex(z.Name, nil)
	}
	return nil
}
