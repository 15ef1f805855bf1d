package transfer

import (
	"context"
	"sync"
	"time"
)

// workers runs the steps of a loop, a limited number at once, and wakes the loop when one has ended.
type workers struct {
	sync.WaitGroup
	wake  chan struct{}
	slots chan struct{}
}

func newWorkers(parallel int) *workers {
	return &workers{wake: make(chan struct{}, 1), slots: make(chan struct{}, parallel)}
}

// signal ends wait.
func (w *workers) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// start runs step as soon as a slot is free. It does not run step if ctx is done first.
func (w *workers) start(ctx context.Context, step func()) {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	w.Go(func() {
		defer func() { <-w.slots; w.signal() }()
		step()
	})
}

// wait blocks for d, until signal is called, or until ctx is done.
func (w *workers) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.wake:
	case <-ctx.Done():
	}
}
