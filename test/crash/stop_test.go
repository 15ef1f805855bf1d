package crash

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nameplane/nameplane/test/server"
)

// TestTerminate ends a server under load with SIGTERM, a few times at different moments.
func TestTerminate(t *testing.T) {
	data := filepath.Join(server.Dir(t), "data")
	s := start(t, data)
	l := newLoad(s.createZone(t, "example.org."), 7)
	for n := range 10 {
		time.AfterFunc(time.Duration(10+n*10)*time.Millisecond, func() { _ = s.Signal(syscall.SIGTERM) })
		l.run(t, s, nil)
		if status := s.Wait(); status != 0 {
			t.Fatalf("exit status %d:\n%s", status, s.Log())
		}
		s = start(t, data)
		l.settle(t, s)
	}
	l.export(t, s)
}

// TestBackup copies a store during writes, and serves the copy.
func TestBackup(t *testing.T) {
	data := filepath.Join(server.Dir(t), "data")
	s := start(t, data)
	l := newLoad(s.createZone(t, "example.org."), 11)
	stop, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		l.run(t, s, stop)
	}()
	for _, w := range l.writers {
		server.Eventually(t, "20 more changes", func() bool { return w.done.Load() >= 20 })
	}
	copied := filepath.Join(server.Dir(t), "data")
	if err := os.Mkdir(copied, 0o700); err != nil {
		t.Fatal(err)
	}
	var before []int64
	for _, w := range l.writers {
		before = append(before, w.done.Load())
	}
	cmd := exec.Command(s.Command[0], "backup", storePath(copied), "--server", s.HTTP, "--data", data)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("backup: %v\n%s", err, out)
	}
	for i, w := range l.writers {
		server.Eventually(t, "20 more changes", func() bool { return w.done.Load() >= before[i]+20 })
	}
	close(stop)
	<-finished

	c := serveCopy(t, copied, data)
	have := c.setsOf(t, l.zone, "TXT")
	for i, w := range l.writers {
		at := w.replay(have, int(before[i]))
		if at < 0 {
			t.Errorf("writer %d: the copy matches none of its %d steps from %d on, the last before the backup", i,
				len(w.sent), before[i])
		}
		t.Logf("writer %d: %d steps before the backup, %d in the copy, %d in all", i, before[i], at, len(w.sent))
	}
	c.createZone(t, "example.net.")
	l.settle(t, s) // the first server still has everything
}

// serveCopy starts a server on a copied store with the token of the first server, which the copy contains.
func serveCopy(t *testing.T, copied, data string) *node {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(copied, "admin.token"), token, 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, copied)
}

// replay makes the steps of the writer one after another. It returns the first number of steps, at least from, after
// which its units match the record sets, or -1. A copy that has a later step without an earlier one never matches.
func (w *writer) replay(have map[string]recordSet, from int) int {
	state := make([][]string, len(w.units))
	for i, u := range w.units {
		state[i] = make([]string, len(u.names))
	}
	same := func() bool {
		for i, u := range w.units {
			if !slices.Equal(u.observe(have), state[i]) {
				return false
			}
		}
		return true
	}
	for n := 0; ; n++ {
		if n >= from && same() {
			return n
		}
		if n == len(w.sent) {
			return -1
		}
		state[w.sent[n].unit] = w.sent[n].values
	}
}
