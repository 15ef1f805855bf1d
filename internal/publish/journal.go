package publish

import (
	"context"
	"math"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
)

// commitNumber returns the number of this edit in the commit log of the store. All zones of the edit share the number.
func (tx *Tx) commitNumber() (uint64, error) {
	if tx.commit == 0 {
		n, err := tx.edit.Next(store.KeyCommit, 1)
		if err != nil {
			return 0, err
		}
		tx.commit = n
	}
	return tx.commit, nil
}

// maxJournalBytes is the largest size of a zone's journal. All zones share the disk, and one change can take megabytes.
const maxJournalBytes = 64 << 20

// journal writes a change to the journal of its zone and deletes the oldest changes when the journal is too long. The
// row of the zone has the length of the journal, so that no edit reads the journal to find it out. An older version did
// not write the length: then the changes are counted once, by their keys.
func (tx *Tx) journal(e *zoneEdit, c store.Change) error {
	if e.zone.Changes < 0 {
		e.zone.Changes, e.zone.ChangeBytes = tx.CountChanges(c.Zone)
	}
	size, err := tx.edit.PutChange(c)
	if err != nil {
		return err
	}
	if e.row == 0 { // otherwise the change replaces one that this edit wrote
		e.zone.Changes++
	}
	e.zone.ChangeBytes += size - e.row
	e.row = size
	// A cut writes two pages that hold no other row of the change, so one cut should serve a hundred changes: a journal is
	// cut only when it is a hundredth longer than its limit.
	rows, bytes := e.zone.Changes-tx.p.opts.JournalLimit, e.zone.ChangeBytes-maxJournalBytes
	if rows <= tx.p.opts.JournalLimit/100 && bytes <= maxJournalBytes/100 {
		return nil
	}
	rows, bytes, err = tx.edit.DropChanges(c.Zone, rows, bytes)
	e.zone.Changes -= rows
	e.zone.ChangeBytes -= bytes
	return err
}

// dropJournal deletes the journal of a zone that is deleted. Of a long journal it deletes only a part and leaves a row:
// commitLeftover deletes the rest, also after a crash.
func (tx *Tx) dropJournal(id uuid.UUID) error {
	if _, _, err := tx.edit.DropChanges(id, math.MaxInt, math.MaxInt); err != nil {
		return err
	}
	if !tx.HasChanges(id) {
		return nil
	}
	tx.p.leftovers = true
	return tx.PutObject(store.KindLeftJournal, id.String(), struct{}{})
}

// commitLeftover commits an edit that deletes a part of the journal of a deleted zone. Run calls it when no edit waits,
// until no such journal is left. When it fails, the next start or the next long journal tries again.
func (p *Publisher) commitLeftover(ctx context.Context) {
	r := &request{ctx: ctx, actor: store.Actor{Who: "nameplane"}, fn: p.dropLeftover, done: make(chan struct{})}
	p.commit(r)
	if r.err != nil {
		p.leftovers = false
		p.opts.Log.Error("the history of a deleted zone cannot be deleted", "error", r.err)
	}
}

// dropLeftover is the edit of commitLeftover.
func (p *Publisher) dropLeftover(tx *Tx) error {
	var id uuid.UUID
	err := tx.EachObject(store.KindLeftJournal, func(zone string, _ []byte) (_ bool, err error) {
		id, err = uuid.Parse(zone)
		return false, err
	})
	if p.leftovers = id != uuid.Nil; err != nil || !p.leftovers {
		return err
	}
	if _, _, err := tx.edit.DropChanges(id, math.MaxInt, math.MaxInt); err != nil {
		return err
	}
	if tx.HasChanges(id) {
		tx.wrote(store.KindLeftJournal)
		return nil
	}
	return tx.DeleteObject(store.KindLeftJournal, id.String())
}
