package mec

import (
	"fmt"
	"sync"
	"time"
)

// progress holds the progress of running tasks in memory. The store has only their beginning and their end: all steps
// happen inside one commit, and writing each step would delay the task.
type progress struct{ of sync.Map } // phases by task id; only the worker of a task writes its phase

// phase is the progress of a running task. It has a step for the check of each rule, one for the write to disk, and one
// for the publication of the new answers.
type phase struct{ checked, rules int }

func (p phase) percent(steps int) int { return steps * 100 / (p.rules + 2) }

// begin starts, or restarts, the progress of a task with the given number of rules.
func (p *progress) begin(task string, rules int) { p.of.Store(task, phase{rules: rules}) }

// check adds rules that have passed their checks.
func (p *progress) check(task string, rules int) {
	at, _ := p.get(task)
	at.checked += rules
	p.of.Store(task, at)
}

func (p *progress) end(task string) { p.of.Delete(task) }

func (p *progress) get(task string) (phase, bool) {
	v, _ := p.of.Load(task)
	at, ok := v.(phase)
	return at, ok
}

// shown returns the task that clients see while it runs. A stored success is still shown as running: the row is on disk
// a moment before the new answers are served.
func (p phase) shown(t Task) Task {
	switch t.State {
	case processing:
		t.Progress, t.Detail = p.percent(p.checked), fmt.Sprintf("%d of %d rules checked", p.checked, p.rules)
	case success:
		t.State, t.Progress, t.Detail, t.Ended = processing, p.percent(p.rules+1), "written", time.Time{}
	case failure:
	}
	return t
}
