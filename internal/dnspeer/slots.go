package dnspeer

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// slots are the transfers that may run at once. Who finds none waits in line, past those whose own share is used up.
type slots struct {
	most, perClient int

	mu      sync.Mutex // guards the rest
	running int
	clients map[netip.Addr]int
	line    []*inLine
}

type inLine struct {
	client netip.Addr
	turn   chan struct{} // closed when it has a slot
}

func newSlots(most, perClient int) *slots {
	return &slots{most: most, perClient: perClient, clients: map[netip.Addr]int{}}
}

// take waits for a slot, but no longer than patience.
func (s *slots) take(ctx context.Context, client netip.Addr, patience time.Duration) bool {
	s.mu.Lock()
	w := &inLine{client, make(chan struct{})}
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
func (s *slots) give(client netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.clients[client]--; s.clients[client] == 0 {
		delete(s.clients, client)
	}
	s.admitLocked()
}

func (s *slots) admitLocked() {
	s.line = slices.DeleteFunc(s.line, func(w *inLine) bool {
		if s.running >= s.most || s.clients[w.client] >= s.perClient {
			return false
		}
		s.running++
		s.clients[w.client]++
		close(w.turn)
		return true
	})
}
