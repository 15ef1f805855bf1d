package budget

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// withLive returns a budget of 800 MiB for the process, and so 600 MiB for work, with a heap size that the test sets.
func withLive(live *atomic.Int64) *Budget {
	b := New(800 << 20)
	b.live = live.Load
	return b
}

// taken is a call of Take in a goroutine of its own.
type taken struct {
	cancel  context.CancelFunc
	ended   chan struct{} // closed when err and release are set
	err     error
	release func()
}

func (x *taken) done() bool {
	select {
	case <-x.ended:
		return true
	default:
		return false
	}
}

func start(b *Budget, owner string, n int64) *taken {
	ctx, cancel := context.WithCancel(context.Background())
	x := &taken{cancel: cancel, ended: make(chan struct{})}
	go func() {
		x.release, x.err = b.Take(ctx, owner, n)
		close(x.ended)
	}()
	synctest.Wait()
	return x
}

func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live atomic.Int64
		b := withLive(&live)
		big := start(b, "p1", 450<<20)
		other := start(b, "p2", 100<<20) // 550 MiB would leave too little for small work
		request := start(b, "p3", 10<<10)
		if !big.done() || other.done() || !request.done() {
			t.Fatalf("450 MiB taken: %v; 100 MiB more: %v; a request: %v", big.done(), other.done(), request.done())
		}
		big.release()
		big.release() // a second call has no effect
		synctest.Wait()
		if !other.done() || b.used != 100<<20+10<<10 {
			t.Fatalf("the next in line waits, with %d bytes in use", b.used)
		}
		other.release()
		request.release()
		if b.used != 0 || len(b.owners) != 0 {
			t.Errorf("%d bytes of %v are in use at the end", b.used, b.owners)
		}
	})
}

// TestTakeSmall checks that small work can use an eighth of the budget, and not more, even when nothing else fits.
func TestTakeSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live atomic.Int64
		live.Store(750 << 20)
		b := withLive(&live)
		var all []*taken
		n := 0
		for i := range 30 {
			x := start(b, strconv.Itoa(i), 4<<20)
			if all = append(all, x); x.done() {
				n++
			}
		}
		if n != 18 { // 72 MiB of 75
			t.Errorf("%d pieces of 4 MiB beside 750 MiB of 800", n)
		}
		for _, x := range all {
			x.cancel()
		}
		synctest.Wait()
		for _, x := range all[:18] {
			x.release()
		}
		if b.used != 0 || b.usedSmall != 0 {
			t.Errorf("%d bytes in use at the end, %d by small work", b.used, b.usedSmall)
		}
	})
}

// TestTakeShare checks that an owner with a quarter of the budget waits, and that other owners are served before it.
func TestTakeShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live atomic.Int64
		b := withLive(&live)
		var mine []*taken
		for range 20 {
			mine = append(mine, start(b, "hostile", 16<<20))
		}
		n := 0
		for _, x := range mine {
			if x.done() {
				n++
			}
		}
		if n != 9 { // 144 MiB of 150
			t.Errorf("one owner has %d shares of 16 MiB", n)
		}
		if victim := start(b, "victim", 16<<20); !victim.done() {
			t.Error("another owner waits behind it")
		} else {
			victim.release()
		}
		for _, x := range mine {
			x.cancel()
		}
		synctest.Wait()
		for _, x := range mine {
			<-x.ended
			if x.err == nil {
				x.release()
			} else if !errors.Is(x.err, context.Canceled) {
				t.Error(x.err)
			}
		}
		if b.used != 0 || len(b.queue) != 0 {
			t.Errorf("%d bytes in use, %d in line", b.used, len(b.queue))
		}
	})
}

// TestTakeLive checks that served zones leave less for work, and that work continues when a collection frees memory.
func TestTakeLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live atomic.Int64
		live.Store(650 << 20)
		b := withLive(&live)
		if b.Full() != true {
			t.Error("650 of 800 MiB are not full")
		}
		x := start(b, "p", 100<<20)
		if x.done() {
			t.Fatal("100 MiB beside 650 MiB of 800 MiB")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		<-x.ended
		if e, ok := errors.AsType[*TooLargeError](x.err); !ok || e.Most != 50<<20 {
			t.Errorf("100 MiB where what is served leaves 50 MiB: %v", x.err)
		}
		live.Store(600 << 20)
		x = start(b, "p", 100<<20)
		if !x.done() {
			t.Error("100 MiB do not fit where 100 MiB are left")
		}
		other := start(b, "q", 50<<20)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if other.done() {
			t.Error("50 MiB more")
		}
		x.release()
		other.cancel()
		synctest.Wait()
		live.Store(650 << 20)
		x = start(b, "p", 100<<20)
		live.Store(500 << 20)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !x.done() || x.err != nil || b.Full() {
			t.Errorf("after a collection: %v, %v, full %v", x.done(), x.err, b.Full())
		}
		x.release()
	})
}

// TestTakeCollects checks that there is one collection a second, however many calls wait.
func TestTakeCollects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live atomic.Int64
		b := withLive(&live)
		first := start(b, "p", 150<<20)
		var all []*taken
		for range 50 {
			all = append(all, start(b, "p", 1<<20)) // the owner has its share already
			time.Sleep(20 * time.Millisecond)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		time.Sleep(3 * time.Second)
		runtime.ReadMemStats(&after)
		if n := after.NumForcedGC - before.NumForcedGC; n < 1 || n > 4 {
			t.Errorf("%d collections in 3 s for 50 waiting calls", n)
		}
		for _, x := range all {
			x.cancel()
		}
		synctest.Wait()
		first.release()
	})
}

func TestTooLarge(t *testing.T) {
	b := New(800 << 20)
	_, err := b.Take(t.Context(), "p", 526<<20)
	e, ok := errors.AsType[*TooLargeError](err)
	if !ok || !strings.Contains(err.Error(), "raise the memory limit of the server, which is 800 MiB, to 891 MiB") {
		t.Fatalf("Take = %v", err)
	}
	if err := New(e.wants()*9/10 + 1<<20).Fits(e.Need); err != nil {
		t.Errorf("with the limit that the error asks for: %v", err)
	}
	var none *Budget
	if release, err := none.Take(t.Context(), "p", 1<<40); err != nil || none.Full() {
		t.Errorf("without a limit: %v", err)
	} else {
		release()
	}
}

func TestGroupLimit(t *testing.T) {
	const unlimited = "9223372036854771712\n"
	tests := []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"another system", nil, 0},
		{"no group", map[string]string{"proc/meminfo": "MemTotal:       2048 kB\nMemFree: 1 kB\n"}, 2 << 20},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/kube/pod/box\n",
			"sys/fs/cgroup/kube/pod/box/memory.max": "max\n",
			"sys/fs/cgroup/kube/pod/memory.max":     "1073741824\n", "sys/fs/cgroup/kube/memory.max": "max\n"}, 1 << 30},
		{"version 2 in a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n",
			"proc/meminfo": "MemTotal: 2048 kB\n"}, 1000},
		{"version 1", map[string]string{"proc/self/cgroup": "5:cpu:/x\n4:memory:/a/b\n0::/\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "3000\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   unlimited,
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     unlimited}, 3000},
		{"version 1 in a container", map[string]string{"proc/self/cgroup": "4:memory:/docker/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "3000\n"}, 3000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for path, text := range tt.files {
				root[path] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := groupLimit(root); got != tt.want {
				t.Errorf("limit %d, want %d", got, tt.want)
			}
		})
	}
}
