package agent

import (
	"context"
	"sync"
	"time"
)

// patience is how long a pass lets others go first, at most. Nearly all holds are over by then.
const patience = 50 * time.Millisecond

// way is given to those whom an answer waits for: a pass compares everything, and on a busy machine they would wait for it.
type way struct {
	mu    sync.Mutex // guards all below
	going int
	clear chan struct{} // closed when nobody is going; nil while nobody waits for that
}

func (w *way) enter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.going++
}

func (w *way) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.going--; w.going == 0 && w.clear != nil {
		close(w.clear)
		w.clear = nil
	}
}

// give waits until nobody is going, for as long as patience lasts.
func (w *way) give(ctx context.Context) {
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
	case <-time.After(patience):
	}
}
