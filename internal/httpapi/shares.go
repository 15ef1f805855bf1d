package httpapi

import "sync"

// Shares is a semaphore with a limit for each owner, so that one owner cannot use all units.
type Shares[K comparable] struct {
	Max int // the units of all owners together

	mu  sync.Mutex // guards all, by
	all int
	by  map[K]int
}

// Take takes one unit for an owner, and reports whether it could: it cannot when the owner has most units, or all
// owners have Max. Call Return afterwards.
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

// Return returns a unit that Take took.
func (s *Shares[K]) Return(owner K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.by[owner]--; s.by[owner] == 0 {
		delete(s.by, owner)
	}
}
