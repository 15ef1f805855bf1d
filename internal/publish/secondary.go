package publish

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
)

// Secondary is the state of the local copy of a SECONDARY zone.
type Secondary struct {
	Checked     time.Time `json:"checked"`     // when a master last confirmed that the copy is up to date
	Transferred time.Time `json:"transferred"` // when the copy last changed
	Masters     string    `json:"masters"`     // masters of the zone at the last transfer; empty when not known
	// no master confirmed the copy for the expire time of the SOA: it is kept, but not served
	Expired bool `json:"expired"`
}

// SecondaryOf returns the state of a zone's copy. It returns the zero Secondary when there never was a copy.
func SecondaryOf(v store.View, id uuid.UUID) (s Secondary, err error) {
	if err = v.Object(store.KindSecondary, id.String(), &s); errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return s, err
}

// SetSecondary stores the state of a zone's copy. An expired copy is not served; it is served again when a later state
// is not expired.
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
