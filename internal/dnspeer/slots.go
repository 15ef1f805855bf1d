package dnspeer

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// slots are the transfers that may run at once. No client has more than a quarter of them, and no project with its
// keys, from however many addresses. Transfers that find none wait in line, past those whose own share is used up.
type slots struct {
	most int

	mu       sync.Mutex // guards the rest
	running  int
	clients  map[netip.Addr]int
	projects map[string]int
	line     []*inLine
}

// inLine is a transfer that waits.
type inLine struct {
	by   parties
	turn chan struct{} // closed when it has a slot
}

// parties are those whose shares a transfer counts for.
type parties struct {
	client  netip.Addr
	project string // empty: the operator's own secondaries, which have the zones of all projects
}

func newSlots(most int) *slots {
	return &slots{most: most, clients: map[netip.Addr]int{}, projects: map[string]int{}}
}

// take waits for a slot, but no longer than patience.
func (s *slots) take(ctx context.Context, by parties, patience time.Duration) bool {
	s.mu.Lock()
	w := &inLine{by, make(chan struct{})}
	s.line = append(s.line, w)
	s.admitLocked()
	s.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.turn:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.line, w)
	if i < 0 {
		return true // its turn came at the last moment
	}
	s.line = slices.Delete(s.line, i, i+1)
	return false
}

// give frees a slot.
func (s *slots) give(by parties) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(by, -1)
	s.admitLocked()
}

func (s *slots) countLocked(by parties, n int) {
	s.running += n
	if s.clients[by.client] += n; s.clients[by.client] == 0 {
		delete(s.clients, by.client)
	}
	if by.project == "" {
		return
	}
	if s.projects[by.project] += n; s.projects[by.project] == 0 {
		delete(s.projects, by.project)
	}
}

func (s *slots) admitLocked() {
	s.line = slices.DeleteFunc(s.line, func(w *inLine) bool {
		if s.running >= s.most || max(s.clients[w.by.client], s.projects[w.by.project]) >= s.most/4 {
			return false
		}
		s.countLocked(w.by, +1)
		close(w.turn)
		return true
	})
}
