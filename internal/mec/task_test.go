package mec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

func (g *rig) configure(app string, kind mec.TaskKind, name string, words ...string) (mec.Task, error) {
	g.t.Helper()
	cfg := mec.Config{Name: name, Extra: json.RawMessage(`{"appSupportMp1":true}`)}
	for _, w := range words {
		cfg.Rules = append(cfg.Rules, rule(g.t, "", w))
	}
	task, err := g.Configure(g.t.Context(), actor, app, kind, cfg)
	if err == nil && (task.State != "PROCESSING" || task.Progress != 0) {
		g.t.Errorf("begins as %+v", task)
	}
	return task, err
}

// settle waits for the end of a task and returns it.
func (g *rig) settle(task mec.Task, err error) mec.Task {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
	synctest.Wait()
	end, err := g.Task(task.ID)
	if err != nil {
		g.t.Fatal(err)
	}
	return end
}

func TestConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, mec.Options{})
		_, err := g.configure("app1", mec.TaskUpdate, "demo")
		wantIs(t, err, store.ErrNotFound)
		end := g.settle(g.configure("app1", mec.TaskCreate, "demo", "a a.example.com 192.0.2.1", "b b.example.com 192.0.2.2"))
		if end.State != "SUCCESS" || end.Progress != 100 || end.Ended.IsZero() {
			t.Errorf("ends as %+v", end)
		}
		g.wantAnswer("a.example.com.", rr.TypeA, "30 192.0.2.1")
		cfg, err := g.Configuration("app1")
		if err != nil || cfg.Name != "demo" || len(cfg.Rules) != 2 || string(cfg.Extra) != `{"appSupportMp1":true}` {
			t.Errorf("Configuration = %+v, %v", cfg, err)
		}
		if a, _ := g.app("app1"); a.Name != "demo" || a.Rules != 2 {
			t.Errorf("the list has the application as %+v", a)
		}
		_, err = g.configure("app1", mec.TaskCreate, "demo")
		wantIs(t, err, store.ErrExists)
		_, err = g.configure("app2", mec.TaskCreate, "demo")
		wantIs(t, err, store.ErrExists)

		// A refused rule undoes the whole task, and the task says why.
		g.create("app2", "x x.example.com 192.0.2.9")
		end = g.settle(g.configure("app1", mec.TaskUpdate, "other", "a a.example.com 192.0.2.7", "c x.example.com 192.0.2.1"))
		if end.State != "FAILURE" || !strings.Contains(end.Detail, "app2") || end.Progress == 100 {
			t.Errorf("ends as %+v, want a failure that names app2", end)
		}
		g.wantAnswer("a.example.com.", rr.TypeA, "30 192.0.2.1")
		if cfg, _ := g.Configuration("app1"); cfg.Name != "demo" {
			t.Errorf("the failed task renamed the application to %q", cfg.Name)
		}
		end = g.settle(g.configure("app1", mec.TaskUpdate, "demo2", "a a.example.com 192.0.2.1"))
		if end.State != "SUCCESS" {
			t.Errorf("ends as %+v", end)
		}
		g.wantAnswer("b.example.com.", rr.TypeA, "refused")
		g.settle(g.configure("app3", mec.TaskCreate, "demo")) // the name can be used again
		end = g.settle(g.configure("app1", mec.TaskDelete, ""))
		if end.State != "SUCCESS" || end.Kind != mec.TaskDelete {
			t.Errorf("ends as %+v", end)
		}
		g.wantAnswer("a.example.com.", rr.TypeA, "refused")
		_, err = g.Configuration("app1")
		wantIs(t, err, store.ErrNotFound)
		if n, err := g.Terminate(t.Context(), actor, "app1"); err != nil || n.Tasks != 4 {
			t.Errorf("Terminate = %+v, %v; want 4 tasks", n, err)
		}
		g.stop()
	})
}

func TestConfigureNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, mec.Options{})
		first, err := g.configure("app1", mec.TaskCreate, "")
		if end := g.settle(first, err); end.State != "SUCCESS" || end.Progress != 100 {
			t.Errorf("without rules it ends as %+v", end)
		}
		for range 16 {
			g.settle(g.configure("app1", mec.TaskUpdate, ""))
		}
		_, err = g.Task(first.ID) // only sixteen are kept
		wantIs(t, err, store.ErrNotFound)
		if n, err := g.Terminate(t.Context(), actor, "app1"); err != nil || n.Tasks != 16 {
			t.Errorf("Terminate = %+v, %v", n, err)
		}
		if left := g.rows(); left != "" {
			t.Errorf("left:\n%s", left)
		}
		g.stop()
	})
}

func TestTaskInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, t.TempDir()+"/db", mec.Options{}, false) // without Run no task is executed
		task, err := g.configure("app1", mec.TaskCreate, "demo", "a a.example.com 192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.configure("app1", mec.TaskCreate, "demo")
		wantIs(t, err, mec.ErrTaskRunning)
		g.stop()
		g = open(t, g.path, mec.Options{}, true)
		end, err := g.Task(task.ID)
		if err != nil || end.State != "FAILURE" || !strings.Contains(end.Detail, "restart") {
			t.Errorf("after a restart the task is %+v, %v", end, err)
		}
		g.wantAnswer("a.example.com.", rr.TypeA, "refused")
		if end := g.settle(g.configure("app1", mec.TaskCreate, "demo")); end.State != "SUCCESS" {
			t.Errorf("the next task ends as %+v", end)
		}
		g.stop()
	})
}

// TestTaskTerminated checks that terminating an application deletes its running task.
func TestTaskTerminated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, t.TempDir()+"/db", mec.Options{}, false)
		if _, err := g.configure("app1", mec.TaskCreate, "demo", "a a.example.com 192.0.2.1"); err != nil {
			t.Fatal(err)
		}
		if n, err := g.Terminate(t.Context(), actor, "app1"); err != nil || n.Tasks != 1 {
			t.Fatalf("Terminate = %+v, %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- g.Run(ctx) }()
		synctest.Wait()
		g.wantAnswer("a.example.com.", rr.TypeA, "refused")
		if left := g.rows(); left != "" {
			t.Errorf("left:\n%s", left)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		g.stop()
	})
}

func TestManyTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, mec.Options{})
		for i := range 40 {
			_, err := g.configure(fmt.Sprintf("app%d", i), mec.TaskCreate, "", fmt.Sprintf("r n%d.example.com 192.0.2.1", i))
			if err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for i := range 40 {
			g.wantAnswer(fmt.Sprintf("n%d.example.com.", i), rr.TypeA, "30 192.0.2.1")
		}
		g.stop()
	})
}

// TestTaskExpires checks that a task is deleted a week after its end, and that its rules stay.
func TestTaskExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, mec.Options{})
		end := g.settle(g.configure("app1", mec.TaskCreate, "demo", "a a.example.com 192.0.2.1"))
		time.Sleep(7*24*time.Hour - time.Minute)
		if _, err := g.Task(end.ID); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		_, err := g.Task(end.ID)
		wantIs(t, err, store.ErrNotFound)
		g.wantAnswer("a.example.com.", rr.TypeA, "30 192.0.2.1")
		if _, err := g.Terminate(t.Context(), actor, "app1"); err != nil {
			t.Error(err)
		}
		if left := g.rows(); left != "" {
			t.Errorf("left:\n%s", left)
		}
		g.stop()
	})
}
