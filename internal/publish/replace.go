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

// ReplaceSorted makes at most count sets the whole content of a zone: absent ones are deleted, equal ones stay as they
// are, with their ids. They come in canonical order of names, then by type, with their data as in rr.Set, and none of
// them is kept: a million take 600 MB. It is for CommitAlone. Ids, versions and times are set here.
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
	m := merger{tx: tx, e: e, num: first}
	err = m.merge(sets)
	e.reload = e.reload || len(e.sets)+e.count > before
	return err
}

// merger walks what there is and what there shall be side by side.
type merger struct {
	tx   *Tx
	e    *zoneEdit
	have []keyed         // the next sets that there are
	last *zone.RecordSet // the last of them; nil: none was read yet
	end  bool            // there are none behind last
	num  uint64          // of the next new set
	name []zone.RecordSet
	apex bool // was seen
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

// check is zone.Check of one name. What was written of it by then is taken back with the whole step.
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

// put writes a set that there shall be, and deletes those before it that there shall not.
func (m *merger) put(s *zone.RecordSet) error {
	if len(m.have) > 0 || !m.end {
		key := store.SetKey(s.Zone, s.Name, s.Type)
		if err := m.deleteBefore(key); err != nil {
			return err
		}
		if len(m.have) > 0 && bytes.Equal(m.have[0].key, key) {
			was := m.have[0].set
			m.have = m.have[1:]
			return m.tx.replaceSet(m.e, was, s)
		}
	}
	m.num++
	return m.tx.addNumbered(m.e, s, m.num-1)
}

// deleteBefore deletes what there is before a key; nil is the end.
func (m *merger) deleteBefore(key []byte) error {
	for {
		if err := m.read(); err != nil {
			return err
		}
		if len(m.have) == 0 || key != nil && bytes.Compare(m.have[0].key, key) >= 0 {
			return nil
		}
		s := m.have[0].set
		m.have = m.have[1:]
		m.e.bulkChange(s, nil, m.tx.p.opts.JournalSets)
		if err := m.tx.edit.DeleteSet(*s); err != nil {
			return err
		}
	}
}

// chunk is how many of the sets that there are a merger has in memory.
const chunk = 1000

// read reads the next sets that there are, when there is none left of those before. No set that was put is among them:
// one that is behind last is put after this.
func (m *merger) read() error {
	if len(m.have) > 0 || m.end {
		return nil
	}
	m.have = nil // the journal may keep sets of the last chunk
	err := m.tx.ZoneSetsByName(m.e.zone.ID, m.last, false, func(s zone.RecordSet) (bool, error) {
		m.have = append(m.have, keyed{store.SetKey(s.Zone, s.Name, s.Type), &s})
		m.last = &s
		return len(m.have) < chunk, nil
	})
	m.end = len(m.have) < chunk
	return err
}

func (tx *Tx) addNumbered(e *zoneEdit, s *zone.RecordSet, num uint64) error {
	s.Created, s.Updated, s.Version = tx.now, time.Time{}, 1
	added := s
	if e.count+len(e.sets) < tx.p.opts.JournalSets {
		s.ID = tx.edit.SetID(num) // the journal wants it; it costs too much to make a million for nobody
		added = new(*s)           // and keeps it, while s is used again
	}
	e.bulkChange(nil, added, tx.p.opts.JournalSets)
	return tx.edit.PutNumbered(*s, num)
}

func (tx *Tx) replaceSet(e *zoneEdit, was, s *zone.RecordSet) error {
	if s.Type == rr.TypeSOA && len(s.Data) == 1 && len(was.Data) == 1 && e.zone.Kind != zone.Secondary {
		s.Data[0] = zone.WithSerial(s.Data[0], e.before.Serial) // the serial is ours to step
	}
	if equalPtr(was.TTL, s.TTL) && slices.Equal(was.Data, s.Data) && was.Hidden == s.Hidden {
		return nil
	}
	next := *was
	next.TTL, next.Data = s.TTL, s.Data
	if next.Hidden = s.Hidden; was.Hidden != s.Hidden { // from now on its owner's, or no longer
		next.Managed = s.Managed
	}
	next.Version++
	next.Updated = tx.now
	e.bulkChange(was, &next, tx.p.opts.JournalSets)
	return tx.edit.PutSet(next)
}

// bulkChange is changeSet without the search for earlier changes of the same set, and keeps no more than the journal
// takes.
func (e *zoneEdit) bulkChange(before, after *zone.RecordSet, limit int) {
	e.tally(before, -1)
	e.tally(after, +1)
	e.widen(before, after)
	e.freshWhole = e.derives
	if e.count+len(e.sets) < limit {
		e.note(store.SetChange{Before: before, After: after})
		return
	}
	e.count++
}
