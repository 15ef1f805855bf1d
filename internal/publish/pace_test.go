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

// A tenant sends edits that take a second each, many at a time. The changes of another tenant wait for one of them at
// most, and more than half of them for none. A tenant that works alone never waits.
func TestLongEditsLeaveTime(t *testing.T) {
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
			t.Errorf("four edits of a second took %v where nobody else made any", took)
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
			t.Errorf("another tenant's changes waited %v (median) and %v (longest)", p50, most)
		}
		hostile.Wait()
	})
}

// Edits that are held back when the server ends are committed before it does.
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
			t.Errorf("the end took %v", took)
		}
	})
}
