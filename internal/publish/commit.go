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

// errNothing ends an Update in which no edit changed anything, so that it costs no fsync.
var errNothing = errors.New("nothing changed")

// commit makes a group durable and served, and lets its callers go. Edits that must be alone split the group.
func (p *Publisher) commit(group []*request) {
	for len(group) > 0 {
		n := 1
		if !group[0].alone {
			for n < len(group) && !group[n].alone {
				n++
			}
		}
		p.commitTogether(group[:n])
		for _, r := range group[:n] {
			close(r.done)
		}
		group = group[n:]
	}
}

func (p *Publisher) commitTogether(group []*request) {
	start := time.Now()
	err := p.store.Update(func(w store.Writer) error {
		changed := false
		for _, r := range group {
			if err := p.attempt(w, r); err != nil {
				return err
			}
			changed = changed || r.err == nil && r.tx.changed()
		}
		if !changed {
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		return
	}
	if err != nil {
		p.stats.failed.Add(1)
		for _, r := range group {
			if r.err == nil {
				r.err = err
			}
		}
		return
	}
	p.serve(group)
	p.stats.commit(len(group), time.Since(start))
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
		for _, c := range r.tx.changes {
			p.countJournal(c)
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
		if errors.Is(err, zone.ErrNotFound) {
			return nil
		}
		if err == nil {
			n, err = loadZone(v, cur)
		}
		return err
	})
	return n, err
}
