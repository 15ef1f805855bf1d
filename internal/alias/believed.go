package alias

import (
	"context"
	"errors"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// believedID is the id of the one row of store.KindAllZones. When a start brings another value, all aliases are flattened
// again.
const believedID = "all"

func (s *Service) readBelieved(v store.View) error {
	err := v.Object(store.KindAllZones, believedID, &s.believed)
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
	err := s.publisher.Commit(ctx, actor, func(tx *publish.Tx) error { return tx.PutObject(store.KindAllZones, believedID, all) })
	if err == nil {
		s.mu.Lock()
		s.believed = all
		s.mu.Unlock()
	}
	return err
}
