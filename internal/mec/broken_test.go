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

// breakable is a store whose disk can be full, or slow.
type breakable struct {
	store.Store
	full atomic.Bool
	slow atomic.Int64 // nanoseconds of an update
	look func()       // called with each row that is written, and when all are on the disk; set before the store is used
}

func (b *breakable) Update(fn func(store.Writer) error) error {
	if b.full.Load() {
		return store.ErrUnavailable
	}
	time.Sleep(time.Duration(b.slow.Load()))
	if b.look == nil {
		return b.Store.Update(fn)
	}
	err := b.Store.Update(func(w store.Writer) error { return fn(watched{w, b.look}) })
	b.look()
	return err
}

// watched is a writer that somebody looks at.
type watched struct {
	store.Writer
	look func()
}

func (w watched) Put(t store.Table, key, value []byte) error {
	w.look()
	return w.Writer.Put(t, key, value)
}

// While the store takes no changes, answers stay; what has to be done by itself is done when it takes them again.
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

// A start with a full disk serves what there is, and ends what has to end later.
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
