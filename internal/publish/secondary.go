package publish

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
)

// Secondary is what is known of our copy of a SECONDARY zone.
type Secondary struct {
	Checked     time.Time `json:"checked"`     // when a master last said that the copy is the newest
	Transferred time.Time `json:"transferred"` // when it last changed
	Masters     string    `json:"masters"`     // those of the zone when it was transferred; empty: not known
	Expired     bool      `json:"expired"`     // no master was heard of for so long that it is kept, and not served
}

// SecondaryOf is what is known of a copy; the zero Secondary when there never was one.
func SecondaryOf(v store.View, id uuid.UUID) (s Secondary, err error) {
	if err = v.Object(store.KindSecondary, id.String(), &s); errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return s, err
}

// SetSecondary notes what is known of a copy. One that has expired is not served from then on, and one that is not any more is
// served again.
func (tx *Tx) SetSecondary(id uuid.UUID, s Secondary) error {
	was, err := SecondaryOf(tx.View, id)
	if err != nil {
		return err
	}
	if s.Expired != was.Expired {
		e, err := tx.zone(id)
		if err != nil {
			return err
		}
		e.reload = true
	}
	return tx.PutObject(store.KindSecondary, id.String(), s)
}
