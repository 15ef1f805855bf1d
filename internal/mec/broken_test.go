package mec_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// breakable is a store whose disk can be full or slow.
type breakable struct {
	store.Store
	full    atomic.Bool
	slow    atomic.Int64 // the duration of an update in nanoseconds
	onWrite func()       // called before each row is written and after the commit
}

func (b *breakable) Update(fn func(store.Writer) error) error {
	if b.full.Load() {
		return store.ErrUnavailable
	}
	time.Sleep(time.Duration(b.slow.Load()))
	if b.onWrite == nil {
		return b.Store.Update(fn)
	}
	err := b.Store.Update(func(w store.Writer) error { return fn(watched{w, b.onWrite}) })
	b.onWrite()
	return err
}

// watched is a writer that calls onWrite before each row.
type watched struct {
	store.Writer
	onWrite func()
}

func (w watched) Put(t store.Table, key, value []byte) error {
	w.onWrite()
	return w.Writer.Put(t, key, value)
}

// TestStoreUnavailable checks that answers stay while the store accepts no changes, and that expiries, tasks and
// deliveries are made up for later.
func TestStoreUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &breakable{}
		var box inbox
		opts := mec.Options{Deliver: box.deliver}
		g := openOn(t, t.TempDir()+"/db", opts, true, disk)
		if err := g.createUntil("app1", "r www.example.com 192.0.2.1", time.Minute); err != nil {
			t.Fatal(err)
		}
		task, err := g.configure("app2", mec.TaskCreate, "demo", "a a.example.com 192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		disk.full.Store(true)
		wantIs(t, g.tryCreate("app1", "s s.example.com 192.0.2.1"), store.ErrUnavailable)
		wantIs(t, g.setState("app1", "r", mec.Inactive), store.ErrUnavailable)
		time.Sleep(2 * time.Minute)
		g.wantAnswer("www.example.com.", rr.TypeA, "30 192.0.2.1")
		g.wantAnswer("s.example.com.", rr.TypeA, "refused")
		disk.full.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.wantAnswer("www.example.com.", rr.TypeA, "refused")
		if end, err := g.Task(task.ID); err != nil || end.State != "SUCCESS" {
			t.Errorf("the task is %+v, %v", end, err)
		}
		g.stop()
	})
}

// TestOpenUnavailable checks that a start with a full disk serves the stored rules, and removes expired ones later.
func TestOpenUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, t.TempDir()+"/db", mec.Options{}, false)
		task, err := g.configure("app1", mec.TaskCreate, "demo")
		if err != nil {
			t.Fatal(err)
		}
		if err := g.createUntil("app1", "r www.example.com 192.0.2.1", time.Minute); err != nil {
			t.Fatal(err)
		}
		g.stop()
		time.Sleep(time.Hour)
		disk := &breakable{}
		disk.full.Store(true)
		g = openOn(t, g.path, mec.Options{}, true, disk)
		if now, err := g.Task(task.ID); err != nil || now.State != "PROCESSING" {
			t.Errorf("the task is %+v, %v", now, err)
		}
		disk.full.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.wantAnswer("www.example.com.", rr.TypeA, "refused")
		if end, err := g.Task(task.ID); err != nil || end.State != "FAILURE" {
			t.Errorf("the task is %+v, %v", end, err)
		}
		g.stop()
	})
}
