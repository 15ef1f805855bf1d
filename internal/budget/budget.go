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

// Budget is three quarters of the memory limit of the process, or less where what is served leaves less. A nil *Budget
// has no limit.
type Budget struct {
	limit int64        // of the process
	total int64        // of all work together
	live  func() int64 // bytes of the heap that are in use

	mu     sync.Mutex // guards the rest
	used   int64
	little int64 // of used, by small work
	owners map[string]int64
	line   []*waiter

	collected time.Time // when collect last ran
}

type waiter struct {
	owner string
	n     int64
	turn  chan struct{} // closed when the waiter has its bytes, or err
	err   error
}

// New returns the budget of a process with a memory limit, or nil when the limit is 0.
func New(limit int64) *Budget {
	if limit <= 0 {
		return nil
	}
	return &Budget{limit: limit, total: limit / 4 * 3, live: liveHeap, owners: map[string]int64{}}
}

// TooLargeError says that work needs more memory than the budget has, or than what is served leaves, however long it
// waits.
type TooLargeError struct{ Need, Most, Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("this needs %s of memory, and the server can give %s to one piece of work: divide it, or raise the "+
		"memory limit of the server, which is %s, to %s", mib(e.Need), mib(e.Most), mib(e.Limit), mib(e.wants()))
}

// wants is the limit with which the work could run, of a control group: Limit takes nine tenths of it.
func (e *TooLargeError) wants() int64 {
	return max(e.Need*32/21, e.Limit+(e.Need-e.Most)*8/7) * 10 / 9
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// small is the size of ordinary work: a request of 128 KiB, or an update of 32 KiB. An eighth of the budget is kept for
// it, so that it does not wait for imports.
const small = 4 << 20

// most is what larger work may take together, 21/32 of the limit, and so the most that one piece of it can take.
func (b *Budget) most() int64 { return b.total - b.total/8 }

// Fits returns a *TooLargeError when work of n bytes could never run.
func (b *Budget) Fits(n int64) error {
	if b == nil || n <= b.most() {
		return nil
	}
	return &TooLargeError{Need: n, Most: b.most(), Limit: b.limit}
}

// Take reserves n bytes for work of an owner, which is a project or a client. It blocks until they are free, or returns
// the error of ctx when that ends first. Work that could never run is a *TooLargeError. The caller must call
// release when the work is done, and must not call Take for the same work again before.
func (b *Budget) Take(ctx context.Context, owner string, n int64) (release func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	if err := b.Fits(n); err != nil {
		return nil, err
	}
	w := &waiter{owner: owner, n: n, turn: make(chan struct{})}
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
		return w.err
	default:
	}
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-w.turn:
			return w.err
		case <-again.C:
			b.collect()
		case <-ctx.Done():
			return b.leave(w, fmt.Errorf("wait for %s of memory: %w", mib(w.n), ctx.Err()))
		}
	}
}

// collect makes a collection: the live heap is that of the last one, which an idle server does not repeat. Then the line
// goes on, and work leaves it that would not fit if all that runs had ended. One collection a second is for all who wait:
// otherwise a client that waits many times would keep the processors busy.
func (b *Budget) collect() {
	b.mu.Lock()
	early := time.Since(b.collected) < time.Second
	if !early {
		b.collected = time.Now()
	}
	b.mu.Unlock()
	if early {
		return
	}
	runtime.GC()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.admitLocked()
	left := b.room() - max(0, b.live()-b.used)
	b.line = slices.DeleteFunc(b.line, func(w *waiter) bool {
		if w.n <= small || w.n <= left {
			return false
		}
		w.err = &TooLargeError{Need: w.n, Most: max(0, left), Limit: b.limit}
		close(w.turn)
		return true
	})
}

// room is what may be in use by all together.
func (b *Budget) room() int64 { return b.limit - b.limit/8 }

// leave takes w out of the line and returns err, unless its outcome came at the last moment.
func (b *Budget) leave(w *waiter, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.line, w)
	if i < 0 {
		return w.err
	}
	b.line = slices.Delete(b.line, i, i+1)
	return err
}

func (b *Budget) give(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= w.n
	if w.n <= small {
		b.little -= w.n
	}
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
		fits := b.used+w.n <= b.most() && b.live()+b.used+w.n <= b.room()
		switch {
		case w.n > small && (blocked || !fits):
			blocked = true
			return false
		case w.n <= small && !fits && b.little+w.n > b.total/8:
			return false
		case w.n <= small:
			b.little += w.n
		}
		b.used += w.n
		b.owners[w.owner] += w.n
		close(w.turn)
		return true
	})
}

// Full reports whether what is in use besides work leaves no room for zones to grow.
func (b *Budget) Full() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live()-b.used > b.limit-b.limit/4
}

// liveHeap returns the bytes that the last collection found in use.
func liveHeap() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// What the commit of a whole zone takes: rows, pages of the store, and the nodes that are served afterwards. Measured by
// imports under ever smaller limits: a million addresses need 560 MB, 200,000 TXT records of 250 bytes 320 MB.
const (
	perRecord = 380
	perByte   = 5
)

// ZoneBytes returns the memory that the commit of a whole zone takes: one of some records, whose names and data have
// some bytes.
func ZoneBytes(records int, bytes int64) int64 { return int64(records)*perRecord + bytes*perByte }
