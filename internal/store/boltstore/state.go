package boltstore

import (
	"sync"

	"github.com/nameplane/nameplane/internal/store"
)

// state is what an operator must know about the store: why it refuses changes, and what is damaged.
type state struct {
	mu      sync.Mutex // guards the fields below
	refusal error
	damage  error
}

// Refusal returns the reason why the store refuses changes: the error of the last Update that the medium refused. It
// returns nil when an Update has succeeded since then.
func (s *Store) Refusal() error {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return s.state.refusal
}

// Damage returns the first damage found since the store was opened, or nil.
func (s *Store) Damage() error {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return s.state.damage
}

// noteRefusal stores the result of an Update, and logs when the store begins or stops refusing changes.
func (s *Store) noteRefusal(err error) {
	s.state.mu.Lock()
	was := s.state.refusal
	s.state.refusal = err
	s.state.mu.Unlock()
	switch {
	case err == nil && was != nil:
		s.opts.Log.Info("the store takes changes again", "file", s.path)
	case err != nil && was == nil:
		s.opts.Log.Error("the store takes no changes; what it has is served", "error", err)
	}
}

// noteDamage stores and logs the first damage.
func (s *Store) noteDamage(d *store.DamagedError) {
	s.state.mu.Lock()
	first := s.state.damage == nil
	if first {
		s.state.damage = d
	}
	s.state.mu.Unlock()
	if first {
		s.opts.Log.Error("the store is damaged", "error", d)
	}
}
