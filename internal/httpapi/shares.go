package httpapi

import "sync"

// Shares counts what owners have in use, so that one of them cannot take everything.
type Shares[K comparable] struct {
	Max int // of all owners together

	mu  sync.Mutex // guards all, by
	all int
	by  map[K]int
}

// Take takes one for an owner, unless the owner has most or all owners have Max. The caller returns it with Return.
func (s *Shares[K]) Take(owner K, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.Max || s.by[owner] >= most {
		return false
	}
	if s.by == nil {
		s.by = map[K]int{}
	}
	s.all++
	s.by[owner]++
	return true
}

// Return ends what Take began.
func (s *Shares[K]) Return(owner K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.by[owner]--; s.by[owner] == 0 {
		delete(s.by, owner)
	}
}
