package dnspeer

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// slots limits the transfers that run at once. A client address gets at most a quarter of the slots. So do all clients
// together that use the keys of one project. Other transfers wait in a queue. A transfer whose client or project has no
// share left does not block the transfers behind it.
type slots struct {
	most int

	mu       sync.Mutex // guards the rest
	running  int
	clients  map[netip.Addr]int
	projects map[string]int
	queue    []*waiting
}

// waiting is a transfer that waits for a slot.
type waiting struct {
	by    parties
	ready chan struct{} // closed when the transfer has a slot
}

// parties has the client and the project whose shares a transfer uses.
type parties struct {
	client  netip.Addr
	project string // empty: a secondary of the operator, which has the zones of all projects
}

func newSlots(most int) *slots {
	return &slots{most: most, clients: map[netip.Addr]int{}, projects: map[string]int{}}
}

// acquire waits for a slot for at most maxWait, and reports whether it got one.
func (s *slots) acquire(ctx context.Context, by parties, maxWait time.Duration) bool {
	s.mu.Lock()
	w := &waiting{by, make(chan struct{})}
	s.queue = append(s.queue, w)
	s.admitLocked()
	s.mu.Unlock()
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-w.ready:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, w)
	if i < 0 {
		return true // got a slot in the last moment
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return false
}

// release frees a slot.
func (s *slots) release(by parties) {
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
	s.queue = slices.DeleteFunc(s.queue, func(w *waiting) bool {
		if s.running >= s.most || max(s.clients[w.by.client], s.projects[w.by.project]) >= s.most/4 {
			return false
		}
		s.countLocked(w.by, +1)
		close(w.ready)
		return true
	})
}
