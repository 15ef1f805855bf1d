package publish

import (
	"fmt"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Changed describes what an edit has changed in one zone since the last call of Derive.
type Changed struct {
	Zone    zone.Zone
	Deleted bool              // the zone was deleted with all its record sets
	Whole   bool              // too many sets changed to list them: read all sets of the zone
	Sets    []store.SetChange // the changed sets, unless Deleted or Whole is set
}

// maxDerive bounds how many times Derive is called for one edit. Derived changes can lead to more derived changes, and
// two rules could lead to each other forever.
const maxDerive = 32

// derive calls Options.Derive until it makes no further changes.
func (tx *Tx) derive() error {
	if tx.p.opts.Derive == nil {
		return nil
	}
	for range maxDerive {
		changed := tx.takeChanged()
		if len(changed) == 0 {
			return nil
		}
		if err := tx.p.opts.Derive(tx, changed); err != nil {
			return err
		}
	}
	return fmt.Errorf("derived changes do not come to an end after %d steps", maxDerive)
}

// takeChanged returns the changes since its last call.
func (tx *Tx) takeChanged() []Changed {
	var out []Changed
	for _, e := range tx.order {
		switch {
		case e.deleted && !e.deletionSeen:
			out = append(out, Changed{Zone: e.zone, Deleted: true})
			e.deletionSeen = true
		case e.deleted:
		case e.unseenWhole:
			out = append(out, Changed{Zone: e.zone, Whole: true})
		case len(e.unseen) > 0:
			out = append(out, Changed{Zone: e.zone, Sets: e.unseen})
		}
		e.unseen, e.unseenWhole = nil, false
	}
	return out
}
