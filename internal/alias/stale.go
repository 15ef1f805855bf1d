package alias

import (
	"sync"
	"sync/atomic"
)

// staleNames are the names whose addresses are the last good ones. Nearly always there are none, and to find that out is one
// load.
type staleNames struct {
	count atomic.Int64

	mu    sync.RWMutex // guards names
	names map[string]struct{}
}

func (s *staleNames) set(name string, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stale {
		if s.names == nil {
			s.names = map[string]struct{}{}
		}
		s.names[name] = struct{}{}
	} else {
		delete(s.names, name)
	}
	s.count.Store(int64(len(s.names)))
}

// Stale reports whether the addresses of a name, in lower-case wire form, are those of an ALIAS whose target cannot be looked up
// now: answers say so to those who understand (RFC 8914 §4.4). A wildcard's names are not told apart.
func (s *Service) Stale(name []byte) bool {
	if s.stale.count.Load() == 0 {
		return false
	}
	s.stale.mu.RLock()
	defer s.stale.mu.RUnlock()
	_, ok := s.stale.names[string(name)]
	return ok
}

// setRecord is what is known of an ALIAS from now on. s.mu is held.
func (s *Service) setRecord(e *entry, rec Record) {
	if is := rec.Status == Stale; is != (e.rec.Status == Stale) {
		s.stale.set(e.key.Name.Wire(), is)
	}
	e.rec = rec
	s.failing(e)
}
