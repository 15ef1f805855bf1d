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

// marks are the marks in a data directory.
func marks(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, markPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestCrash: a zone whose transfer was running when the program ended waits before it is tried again, longer each time,
// and no NOTIFY and no wish of its owner is faster.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1, a("www", "192.0.2.1"))
		g := newRig(t, m)
		time.Sleep(time.Second)
		g.wants(m, 1)
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
			wait := firstRest << (crashes - 1)
			for range 5 {
				g.Refresh(g.zone.ID, true)
				time.Sleep((wait - time.Second) / 5)
			}
			synctest.Wait()
			if looks, _ := m.seen(); looks != before {
				t.Errorf("after %d crashes: asked %d times before %v were over", crashes, looks-before, wait)
			}
			if s := g.State(g.zone.ID); !strings.Contains(s.Reason, "ended while it transferred") {
				t.Errorf("the owner reads %q", s.Reason)
			}
			if list := marks(t, dir); len(list) != 1 || list[0] != left {
				t.Errorf("marks %v, want %s", list, left)
			}
			time.Sleep(20 * time.Second)
			g.wants(m, m.serial)
			if list := marks(t, dir); len(list) != 0 || g.State(g.zone.ID).Problem != "" {
				t.Errorf("after a transfer: %v, %+v", list, g.State(g.zone.ID))
			}
		}
	})
}

// TestCrashAfterCommit: a zone that is up to date after the crash needs no transfer, and the next start does not wait.
func TestCrashAfterCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1, a("www", "192.0.2.1"))
		g := newRig(t, m)
		time.Sleep(time.Second)
		g.wants(m, 1)
		g.stop()
		dir := filepath.Dir(g.path)
		if err := os.WriteFile(filepath.Join(dir, markName(g.zone.ID, 1)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		g.start(m, false)
		time.Sleep(firstRest + time.Second)
		synctest.Wait()
		if left := marks(t, dir); len(left) != 0 {
			t.Errorf("left after a look at the master: %v", left)
		}
	})
}

// TestSpoolOfFullDisk: what a project holds is 0 again after a transfer that the disk did not take.
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

// TestMark: the mark is there while a transfer runs, and tells how often the program did not survive it.
func TestMark(t *testing.T) {
	dir := t.TempDir()
	for n := 1; n <= 3; n++ {
		s := newSpools(testRoot(t, dir), 1000)
		if err := s.recover(); err != nil || s.crashes[dnsID(1)] != n-1 {
			t.Fatalf("start %d: %d crashes, %v", n, s.crashes[dnsID(1)], err)
		}
		if _, err := s.begin(dnsID(1), "p"); err != nil {
			t.Fatal(err)
		} // and the program ends
	}
	s := newSpools(testRoot(t, dir), 1000)
	if err := s.recover(); err != nil {
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
