package publish

import (
	"fmt"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Changed is what an edit has done to one zone since Derive was last asked about it.
type Changed struct {
	Zone    zone.Zone
	Deleted bool              // the zone is gone, with all that was in it
	Whole   bool              // too much to tell set by set: look at all of them
	Sets    []store.SetChange // otherwise
}

// maxDerive bounds how often what is derived may have something derived from it in one edit.
const maxDerive = 32

// derive asks Options.Derive what follows from the edit, until nothing more does.
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
	return fmt.Errorf("what follows from this change has no end after %d steps", maxDerive)
}

// takeChanged is what happened since it was last called.
func (tx *Tx) takeChanged() []Changed {
	var out []Changed
	for _, e := range tx.order {
		switch {
		case e.deleted && !e.told:
			out = append(out, Changed{Zone: e.zone, Deleted: true})
			e.told = true
		case e.deleted:
		case e.freshWhole:
			out = append(out, Changed{Zone: e.zone, Whole: true})
		case len(e.fresh) > 0:
			out = append(out, Changed{Zone: e.zone, Sets: e.fresh})
		}
		e.fresh, e.freshWhole = nil, false
	}
	return out
}
