package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// spareThread lets Go run one thread more than there are processors while changes come. A thread that waits for the disk
// keeps its place for a while; on a small machine that place would be one of those that answer queries, and queries
// would wait for the disk too: 1,000 changes a second left 6 % of the answers on one processor. Without changes a thread
// more only looks for work that is not there: it took a third of the answers over TCP.
type spareThread struct {
	processors int
	last       atomic.Int64 // when the last change came, unix nanoseconds

	mu sync.Mutex // guards on
	on bool
}

// spareTime is how long the thread stays after a change.
const spareTime = 2 * time.Second

func newSpareThread() *spareThread { return &spareThread{processors: runtime.GOMAXPROCS(0)} }

// changed is told of every commit.
func (s *spareThread) changed([]store.Change) {
	if now := time.Now().UnixNano(); now-s.last.Swap(now) > int64(spareTime)/2 {
		s.set(true)
	}
}

func (s *spareThread) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on == on {
		return
	}
	s.on = on
	n := s.processors
	if on {
		n++
	}
	runtime.GOMAXPROCS(n) // stops everything for some ten microseconds, so not with every change
}

// run takes the thread back when changes stay away.
func (s *spareThread) run(ctx context.Context) error {
	tick := time.NewTicker(spareTime / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if time.Now().UnixNano()-s.last.Load() > int64(spareTime) {
				s.set(false)
			}
		case <-ctx.Done():
			return nil
		}
	}
}
