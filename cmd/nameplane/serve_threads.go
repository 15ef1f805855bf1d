package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// spareThread lets Go run one thread more than there are processors while changes need it:
//
//   - A change may hold a thread while it waits for the disk. Such a thread keeps its place for a while; on a small machine
//     that place would be one of those that answer queries, and queries would wait for the disk too: 1,000 changes a
//     second left 6 % of the answers on one processor.
//   - When there are always queries to be answered on every processor, Go looks only every 10 ms whether the disk or a client
//     has anything to say, and changes take five times as long as they could.
//
// Otherwise a thread more only looks for work that is not there: it took a third of the answers over TCP, and a quarter of
// those over UDP while changes came.
type spareThread struct {
	processors int
	held       func() bool  // whether changes hold a thread
	last       atomic.Int64 // when the last change came, unix nanoseconds
	late       int          // changes in a row that took long; only the committer touches it

	mu    sync.Mutex // guards what follows
	on    bool
	since time.Time
}

const (
	// spareTime is how long the thread stays after a change.
	spareTime = 2 * time.Second
	// spareRetry is how long it stays while changes come, before it is tried without.
	spareRetry = 10 * time.Second
	// lateTime is longer than a good disk takes, and shorter than Go takes to look.
	lateTime = 5 * time.Millisecond
	lateRow  = 8
)

func newSpareThread(held func() bool) *spareThread {
	return &spareThread{processors: runtime.GOMAXPROCS(0), held: held}
}

// changed is told of every commit.
func (s *spareThread) changed(changes []store.Change) {
	now := time.Now()
	if len(changes) > 0 && now.Sub(changes[0].Time) > lateTime {
		s.late++
	} else {
		s.late = 0
	}
	first := now.UnixNano()-s.last.Swap(now.UnixNano()) > int64(spareTime)/2
	if s.late >= lateRow || first && s.held() {
		s.late = 0
		s.set(true, now)
	}
}

func (s *spareThread) set(on bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.since = now
	}
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

// run takes the thread back when changes stay away, and tries without it now and then when they do not.
func (s *spareThread) run(ctx context.Context) error {
	tick := time.NewTicker(spareTime / 2)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			if now.UnixNano()-s.last.Load() > int64(spareTime) || s.tired(now) {
				s.set(false, now)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *spareThread) tired(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on && now.Sub(s.since) > spareRetry && !s.held()
}
