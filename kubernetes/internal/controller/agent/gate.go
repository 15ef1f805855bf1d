package agent

import (
	"context"
	"sync"
	"time"
)

// maxGateWait is the maximum time for which a pass waits for requests. Nearly all holds end earlier.
const maxGateWait = 50 * time.Millisecond

// gate lets requests that block a DNS reply go before passes. A pass compares everything, and on a busy machine the
// requests would wait for it.
type gate struct {
	mu    sync.Mutex    // guards the fields below
	going int           // number of requests in progress
	clear chan struct{} // closed when going becomes zero; nil if nothing waits for that
}

func (w *gate) enter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.going++
}

func (w *gate) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.going--; w.going == 0 && w.clear != nil {
		close(w.clear)
		w.clear = nil
	}
}

// give blocks until no request is in progress, for at most maxGateWait.
func (w *gate) give(ctx context.Context) {
	w.mu.Lock()
	if w.going == 0 {
		w.mu.Unlock()
		return
	}
	if w.clear == nil {
		w.clear = make(chan struct{})
	}
	clear := w.clear
	w.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-clear:
	case <-time.After(maxGateWait):
	}
}
