package mec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/nameplane/nameplane/internal/store"
)

// TaskState is EdgeGallery's word for how a task goes.
type TaskState string

// The states of a task.
const (
	processing TaskState = "PROCESSING"
	success    TaskState = "SUCCESS"
	failure    TaskState = "FAILURE"
)

// TaskKind is what a task does to the configuration of an application.
type TaskKind string

// The kinds of tasks.
const (
	TaskCreate TaskKind = "create" // the application must have no configuration
	TaskUpdate TaskKind = "update" // it must have one
	TaskDelete TaskKind = "delete" // it must have one
)

// Task is a configuration of an application in progress, or its outcome. The outcome is written in the same commit as the
// rules. The store keeps it under the names of these fields.
type Task struct {
	ID       string
	App      string
	Kind     TaskKind
	State    TaskState
	Progress int    // percent
	Detail   string // what went wrong, or is being done
	Created  time.Time
	Ended    time.Time // zero while it is processed
}

// Config is the configuration of an application, the whole of its descriptor that is of use here.
type Config struct {
	Name  string          // of the application; no two may have the same, unless it is empty
	Rules []Rule          // all of them; App is set here
	Extra json.RawMessage // what the door keeps for its own replies; not looked at
}

// configRow is a configuration without its rules, which can change on other ways.
type configRow struct {
	Name  string          `json:"n,omitempty"`
	Extra json.RawMessage `json:"x,omitempty"`
}

// maxJobs is how many tasks may wait: their configurations are in memory until they have ended.
const maxJobs = 1024

// jobs are the tasks that Run has still to work on.
type jobs struct {
	mu      sync.Mutex // guards waiting
	waiting []job
	added   signal

	interrupted []string // tasks of an earlier run; only Open and then Run touch it
}

type job struct {
	task  Task
	actor store.Actor
	cfg   Config
}

func (j *jobs) full() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.waiting) >= maxJobs
}

func (j *jobs) add(b job) {
	j.mu.Lock()
	j.waiting = append(j.waiting, b)
	j.mu.Unlock()
	j.added.send()
}

func (j *jobs) take() []job {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.waiting
	j.waiting = nil
	return all
}

// Configure begins a task that makes cfg the configuration of an application, all or nothing, and returns it before it
// ends: Run works on it. It returns store.ErrExists or store.ErrNotFound as the kind says, and ErrTaskRunning.
func (s *Service) Configure(ctx context.Context, actor store.Actor, app string, kind TaskKind, cfg Config) (Task, error) {
	if err := CheckApp(app); err != nil {
		return Task{}, err
	}
	if s.jobs.full() {
		return Task{}, &LimitError{"waiting tasks", maxJobs}
	}
	var t Task
	err := s.commit(ctx, actor, func(e *edit) error {
		a, err := e.app(app)
		if err != nil {
			return err
		}
		if a.Running != "" {
			return ErrTaskRunning
		}
		if err := e.checkConfig(app, a, kind, cfg.Name); err != nil {
			return err
		}
		t = Task{ID: uuid.NewString(), App: app, Kind: kind, State: processing, Created: e.tx.Now()}
		return e.beginTask(a, t)
	})
	if err == nil {
		s.jobs.add(job{t, actor, cfg})
	}
	return t, err
}

// checkConfig says whether a configuration can be made, changed or deleted.
func (e *edit) checkConfig(app string, a *appEdit, kind TaskKind, name string) error {
	switch {
	case kind == TaskCreate && a.Configured:
		return fmt.Errorf("configuration of application %s: %w", app, store.ErrExists)
	case kind != TaskCreate && !a.Configured:
		return fmt.Errorf("configuration of application %s: %w", app, store.ErrNotFound)
	case kind == TaskDelete || name == "":
		return nil
	}
	var owner string
	err := e.tx.Object(store.KindMECAppName, name, &owner)
	if errors.Is(err, store.ErrNotFound) || err == nil && owner == app {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("application name %.80q: %w", name, store.ErrExists)
	}
	return err
}

func (e *edit) beginTask(a *appEdit, t Task) error {
	if err := e.dropTasks(a, len(a.Tasks)+1-maxTasks); err != nil {
		return err
	}
	a.Tasks, a.Running, a.dirty = append(a.Tasks, t.ID), t.ID, true
	if err := e.tx.PutObject(store.KindMECRunning, t.ID, t.App); err != nil {
		return err
	}
	return e.tx.PutObject(store.KindMECTask, t.ID, t)
}

// dropTasks forgets the n oldest tasks of an application.
func (e *edit) dropTasks(a *appEdit, n int) error {
	for ; n > 0 && len(a.Tasks) > 0; n-- {
		id := a.Tasks[0]
		var t Task
		if err := e.tx.Object(store.KindMECTask, id, &t); err != nil {
			return err
		}
		if err := e.forget(store.KindMECExpiry, taskExpiryID(t)); err != nil {
			return err
		}
		if err := e.tx.DeleteObject(store.KindMECTask, id); err != nil {
			return err
		}
		if id == a.Running {
			if err := e.tx.DeleteObject(store.KindMECRunning, id); err != nil {
				return err
			}
			a.Running = ""
		}
		a.Tasks, a.dirty = a.Tasks[1:], true
	}
	return nil
}

// endTask writes the outcome of a task. A task that was terminated with its application is store.ErrNotFound.
func (e *edit) endTask(id string, state TaskState, detail string) error {
	var t Task
	if err := e.tx.Object(store.KindMECTask, id, &t); err != nil {
		return err
	}
	a, err := e.app(t.App)
	if err != nil {
		return err
	}
	t.State, t.Detail, t.Ended = state, detail, e.tx.Now()
	if state == success {
		t.Progress = 100
	}
	a.Running, a.dirty = "", true
	if err := e.tx.DeleteObject(store.KindMECRunning, id); err != nil {
		return err
	}
	if err := e.tx.PutObject(store.KindMECExpiry, taskExpiryID(t), expiryRow{App: t.App, Task: id}); err != nil {
		return err
	}
	return e.tx.PutObject(store.KindMECTask, id, t)
}

// putConfig makes cfg the configuration of an application.
func (e *edit) putConfig(t Task, cfg Config) error {
	a, err := e.app(t.App)
	if err != nil {
		return err
	}
	if err := e.checkConfig(t.App, a, t.Kind, cfg.Name); err != nil {
		return err
	}
	if err := e.dropConfig(t.App, a); err != nil {
		return err
	}
	if t.Kind == TaskDelete {
		_, err := e.replaceRules(t.App, nil)
		return err
	}
	a.Configured, a.Name, a.dirty = true, cfg.Name, true
	if cfg.Name != "" {
		if err := e.tx.PutObject(store.KindMECAppName, cfg.Name, t.App); err != nil {
			return err
		}
	}
	if err := e.tx.PutObject(store.KindMECConfig, t.App, configRow{cfg.Name, cfg.Extra}); err != nil {
		return err
	}
	_, err = e.replaceRules(t.App, cfg.Rules)
	return err
}

// dropConfig removes the configuration of an application, but for its rules.
func (e *edit) dropConfig(app string, a *appEdit) error {
	if !a.Configured {
		return nil
	}
	if a.Name != "" {
		if err := e.tx.DeleteObject(store.KindMECAppName, a.Name); err != nil {
			return err
		}
	}
	a.Configured, a.Name, a.dirty = false, "", true
	return e.tx.DeleteObject(store.KindMECConfig, app)
}

// Configuration is what Configure last made of an application, with its rules as they are now, or store.ErrNotFound.
func (s *Service) Configuration(app string) (Config, error) {
	var row configRow
	var rules []Rule
	err := s.pub.View(func(v store.View) error {
		err := v.Object(store.KindMECConfig, app, &row)
		if err == nil {
			rules, err = readRules(v, app)
		}
		return absent(err, "configuration of application %s", app)
	})
	return Config{row.Name, rules, row.Extra}, err
}

// Task is the task with this id, or store.ErrNotFound.
func (s *Service) Task(id string) (t Task, err error) {
	at, working := s.progress.get(id) // before the row, or the end of it would be told as its beginning
	err = s.pub.View(func(v store.View) error { return v.Object(store.KindMECTask, id, &t) })
	if working && err == nil {
		t = at.shown(t)
	}
	return t, absent(err, "task %.80q", id)
}

// findInterrupted notes the tasks that were running when the program ended.
func (s *Service) findInterrupted() error {
	return s.pub.View(func(v store.View) error {
		return v.EachObject(store.KindMECRunning, func(id string, _ []byte) (bool, error) {
			s.jobs.interrupted = append(s.jobs.interrupted, id)
			return true, nil
		})
	})
}

// failInterrupted ends those tasks. Nothing of them was done: their outcome would have been in the same commit.
func (s *Service) failInterrupted(ctx context.Context) error {
	if len(s.jobs.interrupted) == 0 {
		return nil
	}
	err := s.commit(ctx, own, func(e *edit) error {
		for _, id := range s.jobs.interrupted {
			err := e.endTask(id, failure, "interrupted by a restart; nothing was changed")
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.jobs.interrupted = nil
	}
	return err
}

// taskWorkers is how many tasks are worked on at a time: several, because they share a durable step.
const taskWorkers = 16

func (s *Service) runJobs(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(taskWorkers)
	for s.failInterrupted(ctx) != nil && sleep(ctx, retryStore) {
	}
	for ctx.Err() == nil {
		added := s.jobs.added.wait()
		for _, j := range s.jobs.take() {
			g.Go(func() error { s.runJob(ctx, j); return nil })
		}
		select {
		case <-added:
		case <-ctx.Done():
		}
	}
	return g.Wait()
}

// runJob does what a task asks for, and writes the outcome. While the store takes no changes the task goes on: nobody could
// be told otherwise.
func (s *Service) runJob(ctx context.Context, j job) {
	defer s.progress.end(j.task.ID)
	for {
		err := s.commit(ctx, j.actor, func(e *edit) error {
			s.progress.begin(j.task.ID, len(j.cfg.Rules))
			e.count(func(rules int) { s.progress.check(j.task.ID, rules) })
			e.tx.Note("%s configuration", j.task.Kind)
			err := e.endTask(j.task.ID, success, "")
			if errors.Is(err, store.ErrNotFound) {
				return nil // terminated with its application
			}
			if err != nil {
				return err
			}
			return e.putConfig(j.task, j.cfg)
		})
		if err != nil && !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
			err = s.commit(ctx, j.actor, func(e *edit) error { return e.endTask(j.task.ID, failure, explain(err)) })
		}
		if !errors.Is(err, store.ErrUnavailable) || !sleep(ctx, retryStore) {
			return
		}
	}
}

// count has rules counted as they are found good.
func (e *edit) count(checked func(rules int)) { e.checked, e.claims.judged = checked, checked }

// explain is the text of an error for the platform.
func explain(err error) string {
	if c, ok := errors.AsType[*ConflictError](err); ok {
		return c.Detail()
	}
	return err.Error()
}
