package crash

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nameplane/nameplane/test/server"
)

// TestKill kills servers under load and at their start, and checks what the next server has. It runs two cycles at a
// time, because a cycle mostly waits for the disk.
func TestKill(t *testing.T) {
	const lanes, cycles = 2, 105
	var mu sync.Mutex
	var starts []time.Duration
	t.Run("lanes", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				took := killCycles(t, uint64(lane), cycles)
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, took...)
			})
		}
	})
	slices.Sort(starts)
	if len(starts) > 0 {
		t.Logf("from exec to the first correct DNS answer: median %v, longest %v of %d starts", starts[len(starts)/2],
			starts[len(starts)-1], len(starts))
	}
}

// killCycles kills and starts servers, and returns how long each start took.
func killCycles(t *testing.T, seed uint64, cycles int) []time.Duration {
	rnd := rand.New(rand.NewPCG(seed, 1))
	data := filepath.Join(server.Dir(t), "data")
	// A server that is killed during its first start has nothing to lose, but must not keep the next one from starting.
	for range 5 {
		killAtStart(t, data, rnd)
	}
	first := start(t, data)
	l := newLoad(first.createZone(t, "example.org."), seed)
	l.raise(l.zone.Serial)
	first.End(syscall.SIGKILL)

	var took []time.Duration
	var acknowledged, unknown, made int
	for n := 5; n < cycles && !t.Failed(); n++ {
		if n%8 == 0 {
			killAtStart(t, data, rnd)
		}
		s := start(t, data)
		if _, err := newAsker(t, s.DNS[0]).serial(l.zone.Name); err != nil {
			t.Fatalf("%v\n%s", err, s.Log())
		}
		took = append(took, time.Since(s.Began()))
		u, m := l.settle(t, s)
		unknown, made = unknown+u, made+m
		if n%10 == 0 {
			l.export(t, s)
		}
		killUnderLoad(t, l, s, time.Duration(rnd.IntN(int(250*time.Millisecond))))
		for _, w := range l.writers {
			acknowledged += int(w.done.Load())
		}
	}
	t.Logf("%d changes acknowledged, %d of them asked for at once; %d cut off, of which %d were made", acknowledged,
		l.checked.Load(), unknown, made)
	if acknowledged < cycles || unknown == 0 {
		t.Error("the kills did not hit a server under load")
	}
	return took
}

func killAtStart(t *testing.T, data string, rnd *rand.Rand) {
	t.Helper()
	s := launch(t, data)
	time.Sleep(time.Duration(rnd.IntN(int(40 * time.Millisecond)))) // kill at a random moment
	s.End(syscall.SIGKILL)
}

func killUnderLoad(t *testing.T, l *load, s *node, after time.Duration) {
	t.Helper()
	kill := time.AfterFunc(after, func() { _ = s.Signal(syscall.SIGKILL) })
	defer kill.Stop()
	l.run(t, s, nil)
	s.Wait()
}

func decode[T any](t *testing.T, b []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Errorf("%v in %s", err, b)
	}
	return v
}
