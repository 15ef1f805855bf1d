package alias

import (
	"context"
	"errors"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// kindBelieved is a row that says by which Policy.AllZones aliases were flattened: when a start brings another, all are again.
const (
	kindBelieved = "aliaszones"
	believedID   = "all"
)

func (s *Service) readBelieved(v store.View) error {
	err := v.Object(kindBelieved, believedID, &s.believed)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	s.policy.AllZones = s.believed
	return err
}

// keepBelieved writes that row, when all has been flattened.
func (s *Service) keepBelieved(ctx context.Context, all bool) error {
	s.mu.Lock()
	same := s.believed == all
	s.mu.Unlock()
	if same {
		return nil
	}
	err := s.publisher.Commit(ctx, actor, func(tx *publish.Tx) error { return tx.PutObject(kindBelieved, believedID, all) })
	if err == nil {
		s.mu.Lock()
		s.believed = all
		s.mu.Unlock()
	}
	return err
}
