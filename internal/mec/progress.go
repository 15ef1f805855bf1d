package mec

import (
	"fmt"
	"sync"
	"time"
)

// progress is how far the tasks are that are worked on. The store has only how they began and ended: to write each step there
// would make what it tells of late, and the steps are inside one commit.
type progress struct{ of sync.Map } // the phase of each by its id; only the one who works on a task writes it

// phase is a task on its way. Its steps are: each rule was checked beside all others, all is on the disk, it is served.
type phase struct{ checked, rules int }

func (p phase) percent(steps int) int { return steps * 100 / (p.rules + 2) }

// begin is for a task with so many rules that is begun, perhaps again.
func (p *progress) begin(task string, rules int) { p.of.Store(task, phase{rules: rules}) }

// check counts rules that were found good.
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

// shown is a task as it is told: a row that says success is on the disk a moment before it is served.
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
