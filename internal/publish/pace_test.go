package publish_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// TestLongEditsArePaced has a project send many edits at a time that take a second each. The changes of another project
// must wait for at most one of them, and more than half of them for none. A project that works alone must never wait.
func TestLongEditsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, publish.Options{})
		write := func(project string, takes time.Duration) {
			err := p.Commit(context.Background(), store.Actor{Project: project}, func(tx *publish.Tx) error {
				time.Sleep(takes)
				return tx.PutObject(store.KindQuota, project, takes)
			})
			if err != nil {
				t.Error(err)
			}
		}
		begin := time.Now()
		for range 4 {
			write("hostile", time.Second)
		}
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("four edits of a second took %v while no other project made edits", took)
		}
		write("victim", 0)
		var hostile sync.WaitGroup
		for range 50 {
			hostile.Go(func() { write("hostile", time.Second) })
		}
		var waited []time.Duration
		for range 100 {
			time.Sleep(170 * time.Millisecond)
			begin := time.Now()
			write("victim", 0)
			waited = append(waited, time.Since(begin))
		}
		slices.Sort(waited)
		if p50, most := waited[50], waited[99]; p50 > 0 || most > time.Second {
			t.Errorf("the changes of another project waited %v (median) and %v (longest)", p50, most)
		}
		hostile.Wait()
	})
}

// TestVeryLongEditIsPaced checks that a project waits three times as long as its edit took, also after a minute.
func TestVeryLongEditIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, publish.Options{})
		write := func(project string, takes time.Duration) {
			err := p.Commit(context.Background(), store.Actor{Project: project}, func(tx *publish.Tx) error {
				time.Sleep(takes)
				return tx.PutObject(store.KindQuota, project, takes)
			})
			if err != nil {
				t.Error(err)
			}
		}
		write("victim", 0)
		write("hostile", 20*time.Second)
		begin := time.Now()
		write("hostile", 0)
		if waited := time.Since(begin); waited < time.Minute {
			t.Errorf("the project waited %v after an edit of 20 s", waited)
		}
	})
}

// TestHeldEditsAreCommitted checks that edits that wait for their project are committed before the server stops.
func TestHeldEditsAreCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := start(t, t.TempDir()+"/db", publish.Options{})
		begin := time.Now()
		var all sync.WaitGroup
		for _, project := range []string{"victim", "hostile", "hostile", "hostile"} {
			all.Go(func() {
				err := p.Commit(context.Background(), store.Actor{Project: project}, func(tx *publish.Tx) error {
					if project == "hostile" {
						time.Sleep(time.Second)
					}
					return tx.PutObject(store.KindQuota, project, 1)
				})
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond)
		stop()
		all.Wait()
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("stopping took %v", took)
		}
	})
}
