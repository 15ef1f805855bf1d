package publish

import "time"

// Edits run one after the other, so a project whose edits take long could take all the time of the others. After an edit
// that took longer than paceFree, the next edits of its project wait for paceFactor times as long, up to paceMost: other
// projects have at least three quarters of the time. An edit that replaces a zone of a million records is long, and so is
// a new TTL for it.
//
// A project is paced only when another one made an edit in the last paceMemory: where one project works alone, nobody
// gains when it waits. Edits of the server itself have no project and never wait.
const (
	paceFree   = 2 * time.Millisecond
	paceFactor = 3
	paceMost   = 10 * time.Second
	paceMemory = time.Minute
)

// pace holds edits back. Only the committer uses it.
type pace struct {
	held map[string]*held // projects that wait
	off  bool             // the server is about to end

	project string    // of the last edit
	at      time.Time // of the last edit
	other   time.Time // of the last edit of another project
}

type held struct {
	until time.Time
	edits []*request // in their order
}

// charge notes that an edit of a project has taken so long.
func (p *pace) charge(project string, took time.Duration, now time.Time) {
	if project == "" {
		return
	}
	if project != p.project {
		p.project, p.other = project, p.at
	}
	p.at = now
	if took <= paceFree || p.other.IsZero() || now.Sub(p.other) > paceMemory {
		return
	}
	h := p.held[project]
	if h == nil {
		if p.held == nil {
			p.held = map[string]*held{}
		}
		h = &held{}
		p.held[project] = h
	}
	if h.until.Before(now) {
		h.until = now
	}
	h.until = h.until.Add(min(paceFactor*took, paceMost))
}

// hold keeps an edit whose project waits, or reports that it may run.
func (p *pace) hold(r *request, now time.Time) bool {
	h := p.held[r.actor.Project]
	if h == nil || p.off || len(h.edits) == 0 && !now.Before(h.until) {
		return false
	}
	h.edits = append(h.edits, r)
	return true
}

// due returns an edit that was held back and may run now, or nil.
func (p *pace) due(now time.Time) *request {
	for project, h := range p.held {
		switch {
		case now.Before(h.until) && !p.off:
		case len(h.edits) == 0:
			delete(p.held, project)
		default:
			r := h.edits[0]
			h.edits = h.edits[1:]
			return r
		}
	}
	return nil
}

// wait returns a channel that is ready when an edit that is held back may run; nil: there is none.
func (p *pace) wait() <-chan time.Time {
	var first time.Time
	for _, h := range p.held {
		if len(h.edits) > 0 && (first.IsZero() || h.until.Before(first)) {
			first = h.until
		}
	}
	if first.IsZero() {
		return nil
	}
	return time.After(time.Until(first))
}

// charge notes that an edit has kept the committer busy since begin.
func (p *Publisher) charge(r *request, begin time.Time) {
	now := time.Now()
	p.pace.charge(r.actor.Project, now.Sub(begin), now)
}

// nextEdit returns an edit that may run now, or nil.
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
