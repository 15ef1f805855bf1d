package publish

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// errNothing ends an Update in which no edit changed anything, so that it costs no fsync.
var errNothing = errors.New("nothing changed")

// group are edits that share a step of the store.
type group struct {
	edits  []*request
	start  time.Time
	staged *store.Staged
	next   *request         // came while they ran, and must be alone
	before error            // of the group before, when it landed while these ran
	late   <-chan time.Time // no more is waited for
	gone   bool             // others were let go first
	ran    time.Time        // when the last of them had
}

// commit runs a group that begins with r, and those behind it that cannot wait for the next turn. The group before is served
// meanwhile; the last one is on its way to the disk when commit returns.
func (p *Publisher) commit(r *request) {
	for r != nil {
		if p.air != nil && (r.alone || !p.air.staged.Beside()) {
			_ = p.land() // the callers are told
		}
		g := &group{edits: []*request{r}, start: time.Now()}
		err := p.stage(g)
		// What these edits saw may have been the group before, so nobody is told anything before that is durable.
		if before := errors.Join(g.before, p.land()); before != nil {
			for _, r := range g.edits {
				r.err = nil // an error may have had its reason in what is gone
			}
			err = before
		}
		switch {
		case err == nil:
			p.air = g
		case errors.Is(err, errNothing):
			g.release()
		default:
			p.fail(g, err)
		}
		if r = g.next; r != nil || p.landed() {
			_ = p.land() // the callers are told
		}
	}
}

// stage runs the edits of a group. A caller who is alone waits least when this goroutine waits for the disk.
func (p *Publisher) stage(g *group) (err error) {
	stage := p.store.Stage
	if p.air == nil && len(p.queue) == 0 && p.last == 1 {
		stage = updater{p.store}.Stage
	}
	g.staged, err = stage(func(w store.Writer) error {
		changed := false
		for r := g.edits[0]; r != nil; r = p.another(g) {
			if err := p.attempt(w, r); err != nil {
				return err
			}
			changed = changed || r.err == nil && r.tx.changed()
		}
		g.ran = time.Now()
		if !changed {
			return errNothing
		}
		return nil
	})
	return err
}

// another is the next edit of a group; nil when there is none, or the disk waits for the group.
func (p *Publisher) another(g *group) (r *request) {
	if len(g.edits) == groupLimit || g.edits[0].alone {
		return nil
	}
	select {
	case r = <-p.queue:
	default:
		r = p.await(g)
	}
	switch {
	case r == nil:
	case r.alone:
		g.next, r = r, nil
	default:
		g.edits = append(g.edits, r)
	}
	return r
}

// await is another that is yet to come: as long as the disk is busy, and a little longer when most callers were in the
// group before. They come back at once, and would wait for a step of a few and then for their own.
func (p *Publisher) await(g *group) *request {
	if r := p.yield(g); r != nil {
		return r
	}
	if p.air != nil {
		select {
		case r := <-p.queue:
			return r
		case <-p.air.staged.Done():
		}
		if 2*len(g.edits) >= len(p.air.edits) {
			return nil
		}
		if g.before = p.land(); g.before != nil {
			return nil
		}
	}
	if 2*len(g.edits) >= p.last {
		return nil
	}
	if g.late == nil {
		g.late = time.After(p.took / 2)
	}
	select {
	case r := <-p.queue:
		return r
	case <-g.late:
		return nil
	}
}

// yield lets others go first, once, where there is one processor: those whose requests came together with that of this group
// can say so only then, and would need a step of their own.
func (p *Publisher) yield(g *group) *request {
	if !p.single || g.gone {
		return nil
	}
	g.gone = true
	runtime.Gosched()
	select {
	case r := <-p.queue:
		return r
	default:
		return nil
	}
}

// land waits for the group that is on its way to the disk, serves it and lets its callers go.
func (p *Publisher) land() error {
	g := p.air
	if g == nil {
		return nil
	}
	p.air = nil
	if err := g.staged.Err(); err != nil {
		p.fail(g, err)
		return err
	}
	p.last, p.took = len(g.edits), time.Since(g.ran)
	p.serve(g.edits)
	p.stats.commit(len(g.edits), time.Since(g.start))
	g.release()
	return nil
}

// landed reports whether the group on its way to the disk is there.
func (p *Publisher) landed() bool {
	select {
	case <-p.landing():
		return true
	default:
		return false
	}
}

// fail tells the callers of a group that nothing of it was kept.
func (p *Publisher) fail(g *group, err error) {
	p.stats.failed.Add(1)
	clear(p.journal) // the group was counted
	for _, r := range g.edits {
		if r.err == nil {
			r.err = err
		}
	}
	g.release()
}

func (g *group) release() {
	for _, r := range g.edits {
		close(r.done)
	}
}

// attempt runs one edit. An error of the edit is noted in r and taken back; an error of the store is returned and ends
// the whole group.
func (p *Publisher) attempt(w store.Writer, r *request) error {
	r.err = nil
	if r.err = r.ctx.Err(); r.err != nil {
		return nil
	}
	edit := store.NewEdit(w)
	if r.alone {
		edit.Bulk()
	}
	r.tx = &Tx{Edit: edit, p: p, actor: r.actor, now: time.Now().UTC().Truncate(time.Microsecond),
		zones: map[uuid.UUID]*zoneEdit{}}
	if r.err = p.run(r); r.err == nil {
		r.err = r.tx.finish()
	}
	if r.err == nil {
		p.countJournal(r.tx.changes)
		return nil
	}
	if errors.Is(r.err, store.ErrUnavailable) || r.alone {
		return r.err
	}
	return edit.Undo()
}

// run calls the edit and catches its panic: it must not take the other edits of the group with it.
func (p *Publisher) run(r *request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			r.panic = v
			err = fmt.Errorf("edit panicked: %v", v)
		}
	}()
	return r.fn(r.tx)
}

// serving is a zone on its way into the snapshot.
type serving struct {
	nodes *zone.Nodes // nil: it is not served
	batch *zone.Batch // changes of nodes; nil: none
	soa   *rr.Set     // put last: every edit of the group steps the serial, and only the last step is seen
}

// serve brings a durable group into the snapshot.
func (p *Publisher) serve(group []*request) {
	var changes []store.Change
	now := p.Snapshot()
	working := map[dnsname.Name]*serving{}
	for _, r := range group {
		if r.err != nil {
			continue
		}
		for _, z := range r.tx.order {
			n := working[z.zone.Name]
			if n == nil {
				n = &serving{nodes: now.ZoneOf(z.zone.Name)}
				working[z.zone.Name] = n
			}
			if err := p.next(n, z); err != nil {
				// The rows were just written by this program; not being able to read them is no state to go on in.
				panic(fmt.Sprintf("publish: zone %s was committed but cannot be served: %v", z.zone.Name, err))
			}
		}
		for _, kind := range r.tx.objects {
			p.versions.of(kind).Add(1)
		}
		changes = append(changes, r.tx.changes...)
	}
	if len(working) > 0 {
		p.swap(with(now, working))
	}
	if p.opts.Committed != nil && len(changes) > 0 {
		p.opts.Committed(changes)
	}
}

// with is a snapshot in which zones were replaced or removed.
func with(s *zone.Snapshot, working map[dnsname.Name]*serving) *zone.Snapshot {
	var put []*zone.Nodes
	var remove []dnsname.Name
	for name, n := range working {
		if nodes := n.done(); nodes != nil {
			put = append(put, nodes)
		} else {
			remove = append(remove, name)
		}
	}
	return s.With(put, remove)
}

func (n *serving) done() *zone.Nodes {
	if n.batch == nil {
		return n.nodes
	}
	if n.soa != nil {
		n.batch.Put(*n.soa)
	}
	return n.batch.Done()
}

// next makes n what it is after an edit.
func (p *Publisher) next(n *serving, z *zoneEdit) error {
	switch {
	case z.deleted:
		delete(p.journal, z.zone.ID)
		*n = serving{}
		return nil
	case z.reload:
		nodes, err := p.reload(z.zone.ID)
		*n = serving{nodes: nodes}
		return err
	}
	if n.nodes == nil || len(z.served) == 0 {
		return nil
	}
	if n.batch == nil {
		n.batch = n.nodes.Edit()
	}
	for i := range z.served {
		if s := &z.served[i]; s.Type == rr.TypeSOA && s.Name == z.zone.Name {
			n.soa = s
		} else {
			n.batch.Put(*s)
		}
	}
	return nil
}

// reload reads a zone anew; nil when a later edit of the same group has deleted it.
func (p *Publisher) reload(id uuid.UUID) (n *zone.Nodes, err error) {
	err = p.View(func(v store.View) error {
		cur, err := v.Zone(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err == nil {
			n, err = loadZone(v, cur)
		}
		return err
	})
	return n, err
}
