package publish

import "github.com/nameplane/nameplane/internal/store"

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

// trimJournal deletes the oldest entries of a zone's journal when it is longer than its limit.
func (tx *Tx) trimJournal(e *zoneEdit) error {
	id := e.zone.ID
	have, ok := tx.p.journal[id]
	if !ok {
		have = tx.CountChanges(id) - 1 // without the entry just written
		tx.p.journal[id] = have
	}
	if over := have + 1 - tx.p.journalKeep(have+1); over > 0 {
		return tx.edit.DropChanges(id, over)
	}
	return nil
}

// journalKeep returns how many of n entries a journal keeps. A journal is cut only when it is a hundredth longer than
// its limit: a cut writes two pages that hold no other row of the change, so one cut should serve a hundred changes.
func (p *Publisher) journalKeep(n int) int {
	if limit := p.opts.JournalLimit; n > limit+limit/100 {
		return limit
	}
	return n
}

// countJournal adds the changes of an edit to the journal lengths. When the group fails, fail drops all lengths, and
// they are counted again.
func (p *Publisher) countJournal(changes []store.Change) {
	for _, c := range changes {
		if n, ok := p.journal[c.Zone]; ok {
			p.journal[c.Zone] = p.journalKeep(n + 1)
		}
	}
}
