package transfer

import (
	"context"
	"sync"
	"time"
)

// workers run the steps of a loop, a limited number at once, and wake the loop when one has ended.
type workers struct {
	sync.WaitGroup
	wake chan struct{}
	room chan struct{}
}

func newWorkers(parallel int) *workers {
	return &workers{wake: make(chan struct{}, 1), room: make(chan struct{}, parallel)}
}

// poke ends wait.
func (w *workers) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// start runs step when there is room. It does not run it when ctx ends first.
func (w *workers) start(ctx context.Context, step func()) {
	select {
	case w.room <- struct{}{}:
	case <-ctx.Done():
		return
	}
	w.Go(func() {
		defer func() { <-w.room; w.poke() }()
		step()
	})
}

// wait blocks for d, until poke is called, or until ctx ends.
func (w *workers) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.wake:
	case <-ctx.Done():
	}
}
