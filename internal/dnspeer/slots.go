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

// pacer keeps all transfers together to a rate.
type pacer struct {
	rate int // octets a second; 0: any

	mu   sync.Mutex
	next time.Time // when what was sent so far is paid for
}

// wait returns when n octets may be sent, or with the reason why they are not to be sent any more.
func (p *pacer) wait(ctx context.Context, n int) error {
	if p.rate == 0 {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	at := p.next
	p.next = at.Add(time.Duration(n) * time.Second / time.Duration(p.rate))
	p.mu.Unlock()
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
