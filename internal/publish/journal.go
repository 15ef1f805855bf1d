package publish

import "github.com/nameplane/nameplane/internal/store"

// commitNumber returns the number of this edit in the commit log of the whole store: one for all its zones.
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

// trimJournal cuts a zone's journal to its bound.
func (tx *Tx) trimJournal(e *zoneEdit) error {
	id := e.zone.ID
	have, ok := tx.p.journal[id]
	if !ok {
		have = tx.CountChanges(id) - 1 // without the one just written
		tx.p.journal[id] = have
	}
	if over := have + 1 - tx.p.kept(have+1); over > 0 {
		return tx.edit.DropChanges(id, over)
	}
	return nil
}

// kept returns how many of n changes a journal keeps. It grows by a hundredth over its bound before it is cut: a cut
// writes two pages that no other row of a change is on, and this way they serve a hundred changes.
func (p *Publisher) kept(n int) int {
	if limit := p.opts.JournalLimit; n > limit+limit/100 {
		return limit
	}
	return n
}

// countJournal counts the changes of an edit. When the group fails, everything is counted again.
func (p *Publisher) countJournal(changes []store.Change) {
	for _, c := range changes {
		if n, ok := p.journal[c.Zone]; ok {
			p.journal[c.Zone] = p.kept(n + 1)
		}
	}
}
