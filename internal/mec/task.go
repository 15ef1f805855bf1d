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

// TaskState is the state of a task, in the words of EdgeGallery.
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

// Task is a running or ended change of the configuration of an application. Its outcome is written in the same commit
// as the rules. The store uses the names of these fields.
type Task struct {
	ID       string
	App      string
	Kind     TaskKind
	State    TaskState
	Progress int    // percent
	Detail   string // the current step, or the error
	Created  time.Time
	Ended    time.Time // zero while the task runs
}

// Config is the configuration of an application: the parts of its descriptor that are used here.
type Config struct {
	Name  string          // the name of the application; unique, unless it is empty
	Rules []Rule          // all rules of the application; Configure sets App
	Extra json.RawMessage // data that the API stores for its own replies; not read here
}

// configRow is a configuration without its rules. Rules have their own rows, because other calls change them too.
type configRow struct {
	Name  string          `json:"n,omitempty"`
	Extra json.RawMessage `json:"x,omitempty"`
}

// maxJobs bounds the waiting tasks: their configurations are in memory until they have ended.
const maxJobs = 1024

// jobs holds the tasks that wait for Run.
type jobs struct {
	mu      sync.Mutex // guards waiting
	waiting []job
	added   signal

	interrupted []string // unfinished tasks of an earlier run; only Open and then Run use it
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

// Configure creates a task that sets the configuration of an application to cfg, all or nothing. It returns before the
// task ends: Run executes it. It returns store.ErrExists or store.ErrNotFound depending on the kind, or ErrTaskRunning.
func (s *Service) Configure(ctx context.Context, actor store.Actor, app string, kind TaskKind,
	cfg Config) (Task, error) {
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

// checkConfig returns an error if the configuration cannot be created, changed or deleted.
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

// dropTasks deletes the n oldest tasks of an application.
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

// endTask stores the outcome of a task. It returns store.ErrNotFound if the task was terminated with its application.
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

// putConfig sets the configuration of an application to cfg.
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

// dropConfig deletes the configuration of an application, except its rules.
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

// Configuration returns the configuration of an application with its current rules, or store.ErrNotFound.
func (s *Service) Configuration(app string) (Config, error) {
	var row configRow
	var rules []Rule
	err := s.pub.View(func(v store.View) error {
		err := v.Object(store.KindMECConfig, app, &row)
		if err == nil {
			rules, err = readRules(v, app)
		}
		return wrapNotFound(err, "configuration of application %s", app)
	})
	return Config{row.Name, rules, row.Extra}, err
}

// Task returns the task with this id, or store.ErrNotFound.
func (s *Service) Task(id string) (t Task, err error) {
	at, working := s.progress.get(id) // before the row: otherwise an ended task could be shown at its beginning
	err = s.pub.View(func(v store.View) error { return v.Object(store.KindMECTask, id, &t) })
	if working && err == nil {
		t = at.shown(t)
	}
	return t, wrapNotFound(err, "task %.80q", id)
}

// findInterrupted reads the tasks that were running when the program ended.
func (s *Service) findInterrupted() error {
	return s.pub.View(func(v store.View) error {
		return v.EachObject(store.KindMECRunning, func(id string, _ []byte) (bool, error) {
			s.jobs.interrupted = append(s.jobs.interrupted, id)
			return true, nil
		})
	})
}

// failInterrupted marks interrupted tasks as failed. None of them changed anything: the outcome would be in the same
// commit.
func (s *Service) failInterrupted(ctx context.Context) error {
	if len(s.jobs.interrupted) == 0 {
		return nil
	}
	err := s.commit(ctx, ownActor, func(e *edit) error {
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

// taskWorkers is the number of tasks that run at a time. It is more than one, because concurrent commits share an
// fsync.
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

// runJob executes a task and stores the outcome. While the store accepts no changes it tries again: the failure could
// not be stored either.
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

// count sets the function that is called with the number of rules that have passed their checks.
func (e *edit) count(checked func(rules int)) { e.checked, e.claims.checked = checked, checked }

// explain returns the text of an error for the platform, which may know every owner.
func explain(err error) string {
	if c, ok := errors.AsType[*ConflictError](err); ok {
		return c.Detail()
	}
	return err.Error()
}
