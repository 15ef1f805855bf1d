package main

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// spareThread lets Go run one thread more than there are processors while a change may hold one for the disk. Such a thread
// keeps its place for a while; on a small machine that place would be one of those that answer queries, and queries would wait
// for the disk too.
//
// Otherwise a thread more only looks for work that is not there: it took a third of the answers over TCP, and four tenths of
// those over UDP while changes came one by one.
type spareThread struct {
	processors int
	held       func() bool  // whether changes hold a thread
	last       atomic.Int64 // when the last change came, unix nanoseconds

	mu sync.Mutex // guards on
	on bool
}

// spareTime is how long the thread stays after a change.
const spareTime = 2 * time.Second

func newSpareThread(held func() bool) *spareThread {
	return &spareThread{processors: runtime.GOMAXPROCS(0), held: held}
}

// changed is told of every commit.
func (s *spareThread) changed([]store.Change) {
	now := time.Now().UnixNano()
	if now-s.last.Swap(now) > int64(spareTime)/2 && s.held() {
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
		case now := <-tick.C:
			if now.UnixNano()-s.last.Load() > int64(spareTime) {
				s.set(false)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// lookTime is how long queries may keep everything else waiting. What comes meanwhile is done together and shares the steps
// that all changes need, so a shorter time takes more from queries.
const lookTime = 5 * time.Millisecond

// looker has Go look at the network and the disk in the middle of queries. It does so by itself when no goroutine has anything
// to do, and else every 10 ms; with one processor that always has queries, a change, which waits for its request and
// then for the disk, would take 40 ms.
type looker struct {
	in, out *os.File // a pipe
	last    atomic.Int64
}

// between is a function for servers to get what they answer from, once for each batch of queries: it looks when it is time.
func (s *spareThread) between(snapshot func() *zone.Snapshot) func() *zone.Snapshot {
	if s.processors > 1 || runtime.GOOS != "linux" { // another processor looks; elsewhere a pipe may hold a thread
		return snapshot
	}
	in, out, err := os.Pipe()
	if err != nil {
		return snapshot
	}
	l := &looker{in: in, out: out}
	return func() *zone.Snapshot {
		now := time.Now().UnixNano()
		if last := l.last.Load(); now-last > int64(lookTime) && l.last.CompareAndSwap(last, now) {
			l.look()
		}
		return snapshot()
	}
}

// look waits for an octet of its own: by the time it is there, everybody has been found whom the network or the disk had
// something for. Then these go first, and those whom they wake.
func (l *looker) look() {
	go func() { _, _ = l.out.Write([]byte{0}) }()
	_, _ = l.in.Read(make([]byte, 1))
	for range 3 { // the request, the committer, who answers
		runtime.Gosched()
	}
}
