package mec

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// TaskState is EdgeGallery's word for how a task goes.
type TaskState string

// The states of a task.
const (
	Processing TaskState = "PROCESSING"
	Success    TaskState = "SUCCESS"
	Failure    TaskState = "FAILURE"
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
// rules.
type Task struct {
	ID       string
	App      string
	Kind     TaskKind
	State    TaskState
	Progress int    // percent
	Detail   string // what went wrong
	Created  time.Time
	Ended    time.Time // zero while Processing
}

// Config is the configuration of an application, the whole of its descriptor that is of use here.
type Config struct {
	Name  string          // of the application; no two may have the same, unless it is empty
	Rules []Rule          // all of them; App is set here
	Extra json.RawMessage // what the door keeps for its own replies; not looked at
}

// Configure begins a task that makes cfg the configuration of an application, all or nothing, and returns it before it
// ends: Run works on it. It returns zone.ErrExists or zone.ErrNotFound as the kind says, and ErrTaskRunning.
func (s *Service) Configure(ctx context.Context, actor store.Actor, app string, kind TaskKind, cfg Config) (Task, error) {
	return Task{}, errTodo
}

// Configuration is what Configure last made of an application, with its rules as they are now, or zone.ErrNotFound.
func (s *Service) Configuration(app string) (Config, error) { return Config{}, errTodo }

// Task is the task with this id, or zone.ErrNotFound.
func (s *Service) Task(id string) (Task, error) { return Task{}, errTodo }

// Tasks lists the tasks of an application, oldest first.
func (s *Service) Tasks(app string) ([]Task, error) { return nil, errTodo }

type jobs struct{}

func (s *Service) failInterrupted(ctx context.Context) error { return nil }
func (s *Service) runJobs(ctx context.Context) error         { return nil }
