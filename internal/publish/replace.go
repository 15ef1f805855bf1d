package publish

import (
	"bytes"
	"context"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// CommitAlone is Commit for an edit of very many record sets. The edit shares its group with no other edit, keeps
// nothing in memory to undo single rows, and returns its memory to the operating system.
func (p *Publisher) CommitAlone(ctx context.Context, actor store.Actor, fn func(*Tx) error) error {
	err := p.submit(&request{ctx: ctx, actor: actor, fn: fn, alone: true, done: make(chan struct{})})
	debug.FreeOSMemory()
	return err
}

// keyed is a stored record set with its row key.
type keyed struct {
	key []byte
	set *zone.RecordSet
}

// ReplaceSorted replaces the whole content of a zone with at most count record sets. It deletes sets that are not among
// them, and leaves equal sets unchanged, with their IDs. The sets must be in canonical order of names, then ordered by
// type, with their data as in rr.Set. ReplaceSorted does not keep them, because a million sets take 600 MB. It sets
// IDs, versions and times. Call it inside CommitAlone.
func (tx *Tx) ReplaceSorted(zoneID uuid.UUID, count int, sets iter.Seq[zone.RecordSet]) error {
	e, err := tx.zone(zoneID)
	if err != nil {
		return err
	}
	first, err := tx.edit.Next(store.KeySetNum, uint64(count))
	if err != nil {
		return err
	}
	before := len(e.sets) + e.count
	m := merger{tx: tx, e: e, nextNum: first}
	err = m.merge(sets)
	e.reload = e.reload || len(e.sets)+e.count > before
	return err
}

// merger merges the existing sets of a zone with the new ones: it reads both in the same order, side by side.
type merger struct {
	tx       *Tx
	e        *zoneEdit
	existing []keyed          // the next existing sets
	last     *zone.RecordSet  // the last existing set that was read; nil before the first read
	eof      bool             // there are no existing sets after last
	nextNum  uint64           // number of the next new set
	name     []zone.RecordSet // new sets of the current name
	apex     bool             // the new sets include the apex
}

func (m *merger) merge(sets iter.Seq[zone.RecordSet]) error {
	for s := range sets {
		s.Zone = m.e.zone.ID
		if len(m.name) > 0 && m.name[0].Name != s.Name {
			if err := m.check(); err != nil {
				return err
			}
		}
		m.name = append(m.name, s)
		if err := m.put(&m.name[len(m.name)-1]); err != nil {
			return err
		}
	}
	if len(m.name) > 0 {
		if err := m.check(); err != nil {
			return err
		}
	}
	if !m.apex {
		return zone.CheckApex(m.e.zone.Name, nil)
	}
	return m.deleteBefore(nil)
}

// check checks the new sets of one name. When it fails, CommitAlone undoes the rows already written together with the
// group.
func (m *merger) check() error {
	apex, name := m.e.zone.Name, m.name[0].Name
	if err := zone.Check(apex, name, m.name); err != nil {
		return err
	}
	if name == apex {
		m.apex = true
		if err := zone.CheckApex(apex, m.name); err != nil {
			return err
		}
	}
	m.name = m.name[:0]
	return nil
}

// put writes a new set, and deletes the existing sets before it that are not among the new ones.
func (m *merger) put(s *zone.RecordSet) error {
	if len(m.existing) > 0 || !m.eof {
		key := store.SetKey(s.Zone, s.Name, s.Type)
		if err := m.deleteBefore(key); err != nil {
			return err
		}
		if len(m.existing) > 0 && bytes.Equal(m.existing[0].key, key) {
			was := m.existing[0].set
			m.existing = m.existing[1:]
			return m.tx.replaceSet(m.e, was, s)
		}
	}
	m.nextNum++
	return m.tx.addNumbered(m.e, s, m.nextNum-1)
}

// deleteBefore deletes the existing sets before a key; nil stands for the end of the zone.
func (m *merger) deleteBefore(key []byte) error {
	for {
		if err := m.read(); err != nil {
			return err
		}
		if len(m.existing) == 0 || key != nil && bytes.Compare(m.existing[0].key, key) >= 0 {
			return nil
		}
		s := m.existing[0].set
		m.existing = m.existing[1:]
		m.e.bulkChange(s, nil, m.tx.p.opts.JournalSets)
		if err := m.tx.edit.DeleteSet(*s); err != nil {
			return err
		}
	}
}

// mergeChunk is how many existing sets a merger holds in memory.
const mergeChunk = 1000

// read reads the next existing sets when none is left in memory. It never returns a set that this merge has put: sets
// after m.last are put only after read has passed them.
func (m *merger) read() error {
	if len(m.existing) > 0 || m.eof {
		return nil
	}
	m.existing = nil // a new slice, because the journal may keep sets of the last chunk
	err := m.tx.ZoneSetsByName(m.e.zone.ID, m.last, false, func(s zone.RecordSet) (bool, error) {
		m.existing = append(m.existing, keyed{store.SetKey(s.Zone, s.Name, s.Type), &s})
		m.last = &s
		return len(m.existing) < mergeChunk, nil
	})
	m.eof = len(m.existing) < mergeChunk
	return err
}

func (tx *Tx) addNumbered(e *zoneEdit, s *zone.RecordSet, num uint64) error {
	s.Created, s.Updated, s.Version = tx.now, time.Time{}, 1
	added := s
	if e.count+len(e.sets) < tx.p.opts.JournalSets {
		s.ID = tx.edit.SetID(num) // only for the journal: computing a million IDs costs too much
		added = new(*s)           // a copy, because the journal keeps it and the caller uses s again
	}
	e.bulkChange(nil, added, tx.p.opts.JournalSets)
	return tx.edit.PutNumbered(*s, num)
}

func (tx *Tx) replaceSet(e *zoneEdit, was, s *zone.RecordSet) error {
	if s.Type == rr.TypeSOA && len(s.Data) == 1 && len(was.Data) == 1 && e.zone.Kind != zone.Secondary {
		s.Data[0] = zone.WithSerial(s.Data[0], e.before.Serial) // the publisher sets the serial, not the caller
	}
	if equalPtr(was.TTL, s.TTL) && slices.Equal(was.Data, s.Data) && was.Hidden == s.Hidden {
		return nil
	}
	next := *was
	next.TTL, next.Data, next.Sent = s.TTL, s.Data, zone.MatchSent(s.Data, was.Sent)
	if next.Hidden = s.Hidden; was.Hidden != s.Hidden { // the set changes between derived and owned by the user
		next.Managed = s.Managed
	}
	next.Version++
	next.Updated = tx.now
	e.bulkChange(was, &next, tx.p.opts.JournalSets)
	return tx.edit.PutSet(next)
}

// bulkChange is changeSet without the search for an earlier change of the same set. It keeps at most limit changes for
// the journal.
func (e *zoneEdit) bulkChange(before, after *zone.RecordSet, limit int) {
	e.tally(before, -1)
	e.tally(after, +1)
	had := 0
	if before != nil {
		had = len(before.Data)
	}
	e.noteLargest(had, after)
	e.unseenWhole = e.derives
	if e.count+len(e.sets) < limit {
		e.note(store.SetChange{Before: before, After: after})
		return
	}
	e.count++
}
