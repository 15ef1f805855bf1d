package publish

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// errNothing ends an Update in which no edit changed anything, so that the Update costs no fsync.
var errNothing = errors.New("nothing changed")

// commit runs r and the edits that wait behind it as one group, makes the group durable, serves it, and releases the
// callers. An edit that must run alone gets a group of its own.
func (p *Publisher) commit(r *request) {
	for r != nil {
		g := &Group{edits: []*request{r}, start: time.Now()}
		err := p.store.Update(func(w store.Writer) error { return p.fill(w, g) })
		switch {
		case err == nil:
			g.markCommitted()
			p.serve(g)
			p.stats.latency.Observe(time.Since(g.start).Seconds())
			p.stats.edits.Add(uint64(len(g.edits)))
		case errors.Is(err, errNothing):
			g.markCommitted()
		default:
			p.fail(g, err)
		}
		if r.alone {
			p.charge(r, g.start)
		}
		g.release()
		r = g.next
	}
}

// fill writes the rows of a group: it runs the edits, or replays a group of another publisher.
func (p *Publisher) fill(w store.Writer, g *Group) error {
	g.Number = store.LastCommit(w) + 1
	if decided := g.edits[0].replay; decided != nil {
		return p.replay(w, g, decided)
	}
	if p.opts.BeforeDurable != nil {
		g.rows = &store.Recorder{Writer: w}
		w = g.rows
	}
	changed := false
	for r := g.edits[0]; r != nil; r = p.nextInGroup(g) {
		begin := g.recorded()
		if err := p.attempt(w, g, r); err != nil {
			return err
		}
		if r.err != nil {
			g.truncateRows(begin)
			continue
		}
		changed = changed || r.tx.changed()
		g.Changes = append(g.Changes, r.tx.changes...)
	}
	if !changed {
		return errNothing
	}
	return p.close(w, g)
}

// close numbers the group, unless one of its edits has taken the number already, and passes the group to BeforeDurable.
func (p *Publisher) close(w store.Writer, g *Group) error {
	if store.LastCommit(w) < g.Number {
		if _, err := store.NewEdit(w).Next(store.KeyCommit, 1); err != nil {
			return err
		}
	}
	if p.opts.BeforeDurable == nil {
		return nil
	}
	return p.opts.BeforeDurable(g)
}

// nextInGroup adds the next waiting edit to the group and returns it. It returns nil when the group must be written
// now.
func (p *Publisher) nextInGroup(g *Group) *request {
	if len(g.edits) == groupLimit || g.edits[0].alone {
		return nil
	}
	r := p.nextEdit()
	if r == nil || r.alone {
		g.next = r
		return nil
	}
	g.edits = append(g.edits, r)
	return r
}

// fail sets the error of the store as the result of every edit of the group. An edit that was refused gets it too: its
// reason may have been a row of another edit, and that row is gone now.
func (p *Publisher) fail(g *Group, err error) {
	p.stats.failed.Add(1)
	for _, r := range g.edits {
		r.err = err
	}
}

// markCommitted marks the edits of a durable group that did not fail. An error that serve adds later goes to the caller
// of the edit and does not change the mark: the edit stays in the store.
func (g *Group) markCommitted() {
	for _, r := range g.edits {
		r.committed = r.err == nil
	}
}

// release calls the OnDone functions of every edit, and then lets all callers continue. So a caller never sees the
// outcome of half a group.
func (g *Group) release() {
	for _, r := range g.edits {
		if r.tx == nil {
			continue
		}
		for _, fn := range r.tx.onDone {
			fn(r.committed)
		}
	}
	for _, r := range g.edits {
		close(r.done)
	}
}

// attempt runs one edit. It keeps an error of the edit in r.err and undoes the rows of the edit. It returns an error of
// the store, which ends the whole group.
func (p *Publisher) attempt(w store.Writer, g *Group, r *request) error {
	if r.err = r.ctx.Err(); r.err != nil {
		return nil
	}
	if !p.edited { // an earlier process may have left journals; a publisher that only applies groups must not delete them
		p.edited, p.leftovers = true, true
	}
	begin := time.Now()
	edit := store.NewEdit(w)
	if r.alone {
		edit.Bulk()
	} else {
		defer p.charge(r, begin)
	}
	r.tx = &Tx{View: edit.View, edit: edit, p: p, group: g.Number, actor: r.actor,
		now: begin.UTC().Truncate(time.Microsecond), zones: map[uuid.UUID]*zoneEdit{}}
	if r.err = p.run(r); r.err == nil {
		return nil
	}
	if errors.Is(r.err, store.ErrUnavailable) || r.alone {
		return r.err
	}
	return edit.Undo()
}

// run calls the edit and Derive, and catches their panics: neither a panic nor a damaged row may end the other edits of
// the group. It panics again for any other fault of the store, because bbolt may have stopped in the middle of a write.
func (p *Publisher) run(r *request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if err = store.RowDamage(v); err != nil {
				return
			}
			if store.IsFault(v) {
				panic(v)
			}
			r.panic = v
			err = fmt.Errorf("edit panicked: %v", v)
		}
	}()
	if err := r.fn(r.tx); err != nil {
		return err
	}
	return r.tx.finish()
}

// pendingZone collects what a group changes in one zone, until it is put into the snapshot.
type pendingZone struct {
	nodes *zone.Nodes // nil when the zone is not served
	batch *zone.Batch // changes of nodes; nil when there are none
	soa   *rr.Set     // put last: every edit of the group increments the serial, and only the last one is served
}

// serve puts a durable group into the snapshot.
func (p *Publisher) serve(g *Group) {
	now := p.Snapshot()
	working := map[dnsname.Name]*pendingZone{}
	for _, r := range g.edits {
		if !r.committed {
			continue
		}
		for _, z := range r.tx.order {
			n := working[z.zone.Name]
			if n == nil {
				n = &pendingZone{nodes: now.ZoneOf(z.zone.Name)}
				working[z.zone.Name] = n
			}
			begin := time.Now()
			if err := p.applyEdit(n, z); errors.As(err, new(*store.DamagedError)) {
				// A row of the zone that this edit did not write is damaged: serve the zone as it was.
				r.err = fmt.Errorf("zone %s: the change is stored but not served: %w", z.zone.Name, err)
				p.opts.Log.Error("a change is stored but not served", "zone", z.zone.Name, "error", err)
			} else if err != nil {
				// This program has just written these rows. If it cannot read them, it must stop.
				panic(fmt.Sprintf("publish: zone %s was committed but cannot be served: %v", z.zone.Name, err))
			}
			if z.reload && !r.alone {
				p.charge(r, begin)
			}
		}
		for _, kind := range r.tx.objects {
			p.versions.of(kind).Add(1)
		}
	}
	if len(working) > 0 {
		p.swap(withZones(now, working))
	}
	if p.opts.Committed != nil && len(g.Changes) > 0 {
		p.opts.Committed(g.Changes)
	}
}

// withZones returns a snapshot in which the given zones are replaced or removed.
func withZones(s *zone.Snapshot, working map[dnsname.Name]*pendingZone) *zone.Snapshot {
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

func (n *pendingZone) done() *zone.Nodes {
	if n.batch == nil {
		return n.nodes
	}
	if n.soa != nil {
		n.batch.Put(*n.soa)
	}
	return n.batch.Done()
}

// applyEdit applies the edit of a zone to n.
func (p *Publisher) applyEdit(n *pendingZone, z *zoneEdit) error {
	switch {
	case z.deleted:
		*n = pendingZone{}
		return nil
	case z.nodes != nil:
		*n = pendingZone{nodes: z.nodes}
		return nil
	case z.reload:
		nodes, err := p.reload(z.zone.ID)
		if err == nil {
			*n = pendingZone{nodes: nodes}
		}
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

// reload reads a zone from the store. It returns nil when a later edit of the same group deleted the zone.
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
