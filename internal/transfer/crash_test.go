package transfer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// marks returns the marks in a data directory.
func marks(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, markPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestCrash checks that a zone whose transfer was running during a crash waits before the next attempt, longer each
// time. Neither NOTIFY nor a request of its owner shortens the wait.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1, a("www", "192.0.2.1"))
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		g.wantState(m, 1)
		dir := filepath.Dir(g.path)
		for _, crashes := range []int{1, 3} {
			g.stop()
			if left := marks(t, dir); len(left) != 0 {
				t.Fatalf("left after a stop: %v", left)
			}
			left := filepath.Join(dir, markName(g.zone.ID, crashes)) // as a killed process leaves it
			gone := filepath.Join(dir, markName(dnsID(9), crashes))
			for _, path := range []string{left, gone} {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before, _ := m.seen()
			m.set(m.serial+1, a("www", fmt.Sprintf("192.0.2.%d", m.serial)))
			g.start(m, false)
			wait := firstBackoff << (crashes - 1)
			for range 5 {
				g.Refresh(g.zone.ID, true)
				time.Sleep((wait - time.Second) / 5)
			}
			synctest.Wait()
			if queries, _ := m.seen(); queries != before {
				t.Errorf("after %d crashes: %d queries within %v", crashes, queries-before, wait)
			}
			if s := g.State(g.zone.ID); !strings.Contains(s.Reason, "ended while it transferred") {
				t.Errorf("the owner reads %q", s.Reason)
			}
			if list := marks(t, dir); len(list) != 1 || list[0] != left {
				t.Errorf("marks %v, want %s", list, left)
			}
			time.Sleep(20 * time.Second)
			g.wantState(m, m.serial)
			if list := marks(t, dir); len(list) != 0 || g.State(g.zone.ID).Problem != "" {
				t.Errorf("after a transfer: %v, %+v", list, g.State(g.zone.ID))
			}
		}
	})
}

// TestCrashAfterCommit checks that a zone that is up to date after the crash needs no transfer, and that the next start
// does not wait.
func TestCrashAfterCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1, a("www", "192.0.2.1"))
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		g.wantState(m, 1)
		g.stop()
		dir := filepath.Dir(g.path)
		if err := os.WriteFile(filepath.Join(dir, markName(g.zone.ID, 1)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		g.start(m, false)
		time.Sleep(firstBackoff + time.Second)
		synctest.Wait()
		if left := marks(t, dir); len(left) != 0 {
			t.Errorf("left after a query to the master: %v", left)
		}
	})
}

// TestSpoolOfFullDisk checks that a project holds 0 bytes again after a transfer that the disk refused.
func TestSpoolOfFullDisk(t *testing.T) {
	s := newSpools(testRoot(t, t.TempDir()), 10<<20)
	to, err := s.begin(dnsID(1), "p")
	if err != nil {
		t.Fatal(err)
	}
	to.Close() // writes fail from now on
	r := zonefile.Record{Name: dnsname.MustParse(apexName), Type: rr.TypeTXT, Data: strings.Repeat("x", 60_000)}
	for err == nil {
		err = to.put(r)
	}
	to.end()
	if len(s.held) != 0 {
		t.Errorf("after %v: %v bytes are held", err, s.held)
	}
}

// TestMark checks that the mark exists while a transfer runs, and counts the crashes.
func TestMark(t *testing.T) {
	dir := t.TempDir()
	for n := 1; n <= 3; n++ {
		s := newSpools(testRoot(t, dir), 1000)
		if err := s.recoverMarks(); err != nil || s.crashes[dnsID(1)] != n-1 {
			t.Fatalf("start %d: %d crashes, %v", n, s.crashes[dnsID(1)], err)
		}
		if _, err := s.begin(dnsID(1), "p"); err != nil {
			t.Fatal(err)
		} // and the program crashes
	}
	s := newSpools(testRoot(t, dir), 1000)
	if err := s.recoverMarks(); err != nil {
		t.Fatal(err)
	}
	to, err := s.begin(dnsID(1), "p")
	if err != nil {
		t.Fatal(err)
	}
	to.end()
	if left := marks(t, dir); len(left) != 0 {
		t.Errorf("left after a transfer that ended: %v", left)
	}
}
