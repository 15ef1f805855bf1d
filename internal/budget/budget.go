// Package budget divides the memory of the process among the work that clients can make large: imports, transfers,
// updates and the bodies of requests.
//
// Start with Budget.Take in budget.go. Limit in limit.go finds the memory limit of the process.
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

// Budget divides three quarters of the memory limit of the process, or less when the served zones leave less. A nil
// *Budget has no limit.
type Budget struct {
	limit int64        // memory limit of the process
	total int64        // budget of all work together
	live  func() int64 // returns the bytes of the heap that are in use

	mu        sync.Mutex // guards the fields below
	used      int64
	usedSmall int64 // part of used that is used by small work
	owners    map[string]int64
	queue     []*waiter // in the order of arrival

	collected time.Time // when collect last ran
}

// waiter is a call of Take.
type waiter struct {
	owner   string
	n       int64
	decided chan struct{} // closed when the waiter has its bytes, or err
	err     error
}

// New returns the budget of a process with a memory limit, or nil when the limit is 0.
func New(limit int64) *Budget {
	if limit <= 0 {
		return nil
	}
	return &Budget{limit: limit, total: limit / 4 * 3, live: liveHeap, owners: map[string]int64{}}
}

// TooLargeError reports that work needs more memory than the budget has, or than the served zones leave. Waiting does
// not help.
type TooLargeError struct {
	Need, Most, Limit int64
	share             bool // Most is the share of one owner
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("this needs %s of memory, and the server can give %s to one piece of work: divide it, or raise "+
		"the memory limit of the server, which is %s, to %s", mib(e.Need), mib(e.Most), mib(e.Limit), mib(e.wants()))
}

// wants returns the limit of the control group with which the work could run. Limit takes nine tenths of it.
func (e *TooLargeError) wants() int64 {
	if e.share {
		return e.Need * 16 / 3 * 10 / 9
	}
	return max(e.Need*32/21, e.Limit+(e.Need-e.Most)*8/7) * 10 / 9
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// small is the largest size of ordinary work, such as a request of 128 KiB or an update of 32 KiB. An eighth of the
// budget is reserved for such work, so that it does not wait for imports.
const small = 4 << 20

// maxLarge returns the limit of all larger work together, 21/32 of the memory limit. One piece of work cannot take more
// either.
func (b *Budget) maxLarge() int64 { return b.total - b.total/8 }

// Fits returns a *TooLargeError when work of n bytes could never run.
func (b *Budget) Fits(n int64) error {
	if b == nil || n <= b.maxLarge() {
		return nil
	}
	return &TooLargeError{Need: n, Most: b.maxLarge(), Limit: b.limit}
}

// FitsBeside is Fits for work whose owner already holds bytes of the budget for the same work. Such work can have only
// the share of its owner: Take would wait until the owner returns the bytes.
func (b *Budget) FitsBeside(held, n int64) error {
	if b == nil || held == 0 || held+n <= b.total/4 {
		return b.Fits(n)
	}
	return &TooLargeError{Need: held + n, Most: b.total / 4, Limit: b.limit, share: true}
}

// Take reserves n bytes for work of an owner, which is a project or a client. It blocks until they are free, or returns
// the error of ctx when that ends first. For work that could never run, it returns a *TooLargeError. The caller must
// call release when the work is done, and must not call Take again for the same work before that.
func (b *Budget) Take(ctx context.Context, owner string, n int64) (release func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	if err := b.Fits(n); err != nil {
		return nil, err
	}
	w := &waiter{owner: owner, n: n, decided: make(chan struct{})}
	b.mu.Lock()
	b.queue = append(b.queue, w)
	b.admitLocked()
	b.mu.Unlock()
	if err := b.wait(ctx, w); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { b.release(w) }), nil
}

// wait blocks until w has its bytes, has an error, or ctx ends.
func (b *Budget) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.decided:
		return w.err
	default:
	}
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-w.decided:
			return w.err
		case <-again.C:
			b.collect()
		case <-ctx.Done():
			return b.cancel(w, fmt.Errorf("wait for %s of memory: %w", mib(w.n), ctx.Err()))
		}
	}
}

// collect runs the garbage collector: the size of the live heap comes from the last collection, and an idle server does
// not run one. Then it admits waiters, and fails those that would not fit even if all current work had ended. All
// waiters share one collection a second: otherwise a client with many waiters would keep the processors busy.
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
	left := b.maxInUse() - max(0, b.live()-b.used)
	b.queue = slices.DeleteFunc(b.queue, func(w *waiter) bool {
		if w.n <= small || w.n <= left {
			return false
		}
		w.err = &TooLargeError{Need: w.n, Most: max(0, left), Limit: b.limit}
		close(w.decided)
		return true
	})
}

// maxInUse returns how much memory may be in use in total.
func (b *Budget) maxInUse() int64 { return b.limit - b.limit/8 }

// cancel removes w from the queue and returns err, unless w was decided in the meantime.
func (b *Budget) cancel(w *waiter, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, w)
	if i < 0 {
		return w.err
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	return err
}

func (b *Budget) release(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= w.n
	if w.n <= small {
		b.usedSmall -= w.n
	}
	if b.owners[w.owner] -= w.n; b.owners[w.owner] == 0 {
		delete(b.owners, w.owner)
	}
	b.admitLocked()
}

// admitLocked gives waiters their bytes, in order. It skips waiters whose owner already has its share. When the first
// of the larger waiters does not fit, the other larger ones wait behind it, so that it does not wait forever. The
// caller holds mu.
func (b *Budget) admitLocked() {
	blocked := false
	b.queue = slices.DeleteFunc(b.queue, func(w *waiter) bool {
		if held := b.owners[w.owner]; held > 0 && held+w.n > b.total/4 {
			return false
		}
		fits := b.used+w.n <= b.maxLarge() && b.live()+b.used+w.n <= b.maxInUse()
		switch {
		case w.n > small && (blocked || !fits):
			blocked = true
			return false
		case w.n <= small && !fits && b.usedSmall+w.n > b.total/8:
			return false
		case w.n <= small:
			b.usedSmall += w.n
		}
		b.used += w.n
		b.owners[w.owner] += w.n
		close(w.decided)
		return true
	})
}

// Full reports whether the memory in use, without current work, leaves no space for zones to grow.
func (b *Budget) Full() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live()-b.used > b.limit-b.limit/4
}

// liveHeap returns the bytes that the last garbage collection found in use.
func liveHeap() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// These constants describe the memory that the commit of a whole zone takes: rows, pages of the store, and the nodes
// that are served afterwards. They were measured by imports under decreasing limits: a million addresses need 560 MB,
// 200,000 TXT records of 250 bytes 320 MB.
const (
	perRecord = 380
	perByte   = 5
)

// ZoneBytes returns the memory that the commit of a whole zone takes, for a zone with the given number of records and
// of bytes in their names and data.
func ZoneBytes(records int, bytes int64) int64 { return int64(records)*perRecord + bytes*perByte }
