package publish

import "time"

// Edits run one after the other, so a project with long edits could take all the time of the other projects. After an
// edit that took longer than paceFree, the next edits of its project wait paceFactor times as long. So other projects
// have at least three quarters of the time, however long an edit takes. Examples of long edits are the replacement of
// a zone of a million records and a new TTL for such a zone.
//
// A project is paced only when another project made an edit within the last paceMemory: while one project works alone,
// nobody gains when it waits. Edits of the server itself have no project and never wait.
const (
	paceFree   = 2 * time.Millisecond
	paceFactor = 3
	paceMemory = time.Minute
)

// pace delays the edits of projects that used much time. Only the committer uses it.
type pace struct {
	paused map[string]*pausedProject // projects that must wait
	off    bool                      // set when the server stops: nothing waits any longer

	project   string    // project of the last edit
	last      time.Time // time of the last edit
	lastOther time.Time // time of the last edit of a project other than project
}

// pausedProject is a project that must wait.
type pausedProject struct {
	until time.Time
	edits []*request // waiting edits, in the order of their arrival
}

// charge records that an edit of a project took the given time.
func (p *pace) charge(project string, took time.Duration, now time.Time) {
	if project == "" {
		return
	}
	if project != p.project {
		p.project, p.lastOther = project, p.last
	}
	p.last = now
	if took <= paceFree || p.lastOther.IsZero() || now.Sub(p.lastOther) > paceMemory {
		return
	}
	h := p.paused[project]
	if h == nil {
		if p.paused == nil {
			p.paused = map[string]*pausedProject{}
		}
		h = &pausedProject{}
		p.paused[project] = h
	}
	if h.until.Before(now) {
		h.until = now
	}
	h.until = h.until.Add(paceFactor * took)
}

// hold queues an edit whose project must wait. It returns false when the edit may run now.
func (p *pace) hold(r *request, now time.Time) bool {
	h := p.paused[r.actor.Project]
	if h == nil || p.off || len(h.edits) == 0 && !now.Before(h.until) {
		return false
	}
	h.edits = append(h.edits, r)
	return true
}

// due returns a queued edit that may run now, or nil.
func (p *pace) due(now time.Time) *request {
	for project, h := range p.paused {
		switch {
		case now.Before(h.until) && !p.off:
		case len(h.edits) == 0:
			delete(p.paused, project)
		default:
			r := h.edits[0]
			h.edits = h.edits[1:]
			return r
		}
	}
	return nil
}

// wait returns a channel that is ready when the first queued edit may run. It returns nil when no edit is queued.
func (p *pace) wait() <-chan time.Time {
	var first time.Time
	for _, h := range p.paused {
		if len(h.edits) > 0 && (first.IsZero() || h.until.Before(first)) {
			first = h.until
		}
	}
	if first.IsZero() {
		return nil
	}
	return time.After(time.Until(first))
}

// charge records that an edit has kept the committer busy since begin.
func (p *Publisher) charge(r *request, begin time.Time) {
	now := time.Now()
	p.pace.charge(r.actor.Project, now.Sub(begin), now)
}

// nextEdit returns an edit that may run now, or nil. It does not block.
func (p *Publisher) nextEdit() *request {
	if r := p.pace.due(time.Now()); r != nil {
		return r
	}
	for {
		select {
		case r := <-p.queue:
			if !p.pace.hold(r, time.Now()) {
				return r
			}
		default:
			return nil
		}
	}
}
