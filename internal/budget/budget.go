// Package budget shares the memory of the process among the work that clients can make large: imports, transfers,
// updates and the bodies of requests.
package budget

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"
)

// Budget is half of the memory limit of the process. The other half is for what is served, and for garbage. A nil
// *Budget has no limit.
type Budget struct {
	limit int64        // of the process
	total int64        // of all work together
	live  func() int64 // bytes of the heap that are in use

	mu     sync.Mutex // guards the rest
	used   int64
	owners map[string]int64
	line   []*waiter
}

type waiter struct {
	owner string
	n     int64
	turn  chan struct{} // closed when the waiter has its bytes
}

// New returns the budget of a process with a memory limit, or nil when the limit is 0.
func New(limit int64) *Budget {
	if limit <= 0 {
		return nil
	}
	return &Budget{limit: limit, total: limit / 2, live: liveHeap, owners: map[string]int64{}}
}

// TooLargeError says that work needs more memory than the budget has, however long it waits.
type TooLargeError struct{ Need, Most, Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("this needs %s of memory, and the server can give %s to one piece of work: divide it, or raise the "+
		"memory limit of the server, which is %s, to %s", mib(e.Need), mib(e.Most), mib(e.Limit), mib(limitFor(e.Need)))
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// small is how large work may be to get the last eighth of the budget, which is kept for it: ordinary requests do not
// wait for imports.
const small = 256 << 10

// most is what larger work may take together, and so the most that one piece of it can take.
func (b *Budget) most() int64 { return b.total - b.total/8 }

// limitFor is the memory limit that a piece of work of n bytes needs.
func limitFor(n int64) int64 { return n * 16 / 7 }

// Fits returns a *TooLargeError when work of n bytes could never run.
func (b *Budget) Fits(n int64) error {
	if b == nil || n <= b.most() {
		return nil
	}
	return &TooLargeError{Need: n, Most: b.most(), Limit: b.limit}
}

// Take reserves n bytes for work of an owner, which is a project or a client. It blocks until they are free, or returns
// the error of ctx when that ends first. Work that could never run is a *TooLargeError at once. The caller must call
// release when the work is done, and must not call Take for the same work again before.
func (b *Budget) Take(ctx context.Context, owner string, n int64) (release func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	if err := b.Fits(n); err != nil {
		return nil, err
	}
	w := &waiter{owner, n, make(chan struct{})}
	b.mu.Lock()
	b.line = append(b.line, w)
	b.admitLocked()
	b.mu.Unlock()
	if err := b.wait(ctx, w); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { b.give(w) }), nil
}

func (b *Budget) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.turn:
		return nil
	default:
	}
	// The live heap shrinks only with a collection, which nobody reports and an idle server does not make.
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-w.turn:
			return nil
		case <-again.C:
			b.collect()
		case <-ctx.Done():
			return b.leave(ctx, w)
		}
	}
}

// collect makes the live heap known, when nothing but that can be what the line waits for.
func (b *Budget) collect() {
	b.mu.Lock()
	idle := b.used == 0
	b.mu.Unlock()
	if idle {
		runtime.GC()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.admitLocked()
}

// leave takes w out of the line, unless its turn came at the last moment.
func (b *Budget) leave(ctx context.Context, w *waiter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.line, w)
	if i < 0 {
		return nil
	}
	b.line = slices.Delete(b.line, i, i+1)
	return fmt.Errorf("wait for %s of memory: %w", mib(w.n), ctx.Err())
}

func (b *Budget) give(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= w.n
	if b.owners[w.owner] -= w.n; b.owners[w.owner] == 0 {
		delete(b.owners, w.owner)
	}
	b.admitLocked()
}

// admitLocked gives those in the line their bytes, in order. Those whose owner has its share already are passed. When the
// first of the larger ones must wait, the other larger ones wait behind it, so that it is not passed for ever.
func (b *Budget) admitLocked() {
	blocked := false
	b.line = slices.DeleteFunc(b.line, func(w *waiter) bool {
		if held := b.owners[w.owner]; held > 0 && held+w.n > b.total/4 {
			return false
		}
		if w.n > small {
			blocked = blocked || b.used+w.n > b.most() || b.live()+b.used+w.n > b.limit-b.limit/8
			if blocked {
				return false
			}
		} else if b.used+w.n > b.total {
			return false
		}
		b.used += w.n
		b.owners[w.owner] += w.n
		close(w.turn)
		return true
	})
}

// Full reports whether what is in use leaves no room for zones to grow.
func (b *Budget) Full() bool { return b != nil && b.live() > b.limit-b.limit/4 }

// liveHeap returns the bytes that the last collection found in use.
func liveHeap() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// What the commit of a whole zone takes: rows, pages of the store, and the nodes that are served afterwards. Measured by
// imports under a limit; test/hostile.TestMemory commits zones of this size under the limit that the server is shipped with.
const (
	perRecord = 1100
	perByte   = 6
)

// ZoneBytes returns the memory that the commit of a whole zone takes: one of some records, whose names and data have
// some bytes.
func ZoneBytes(records int, bytes int64) int64 { return int64(records)*perRecord + bytes*perByte }
