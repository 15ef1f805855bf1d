package publish

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
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

// serve brings a durable group into the snapshot.
func (p *Publisher) serve(group []*request) {
	var put []*zone.Nodes
	var remove []dnsname.Name
	var changes []store.Change
	now := p.Snapshot()
	working := map[dnsname.Name]*zone.Nodes{}
	for _, r := range group {
		if r.err != nil {
			continue
		}
		for _, z := range r.tx.order {
			n, err := p.next(z, working, now)
			if err != nil {
				// The rows were just written by this program; not being able to read them is no state to go on in.
				panic(fmt.Sprintf("publish: zone %s was committed but cannot be served: %v", z.zone.Name, err))
			}
			working[z.zone.Name] = n
		}
		for _, c := range r.tx.changes {
			p.countJournal(c)
		}
		changes = append(changes, r.tx.changes...)
	}
	for name, n := range working {
		if n == nil {
			remove = append(remove, name)
		} else {
			put = append(put, n)
		}
	}
	if len(working) > 0 {
		p.swap(now.With(put, remove))
	}
	if p.opts.Committed != nil && len(changes) > 0 {
		p.opts.Committed(changes)
	}
}

// next is the served form of a zone after an edit; nil when it was deleted.
func (p *Publisher) next(z *zoneEdit, working map[dnsname.Name]*zone.Nodes, now *zone.Snapshot) (*zone.Nodes, error) {
	if z.deleted {
		delete(p.journal, z.zone.ID)
		return nil, nil
	}
	if z.reload {
		var n *zone.Nodes
		err := p.View(func(v store.View) error {
			// A later edit of the same group may have deleted the zone, or changed its TTL.
			cur, err := v.Zone(z.zone.ID)
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
	cur, ok := working[z.zone.Name]
	if !ok {
		cur = now.ZoneOf(z.zone.Name)
	}
	if cur == nil || len(z.served) == 0 {
		return cur, nil
	}
	b := cur.Edit()
	for _, s := range z.served {
		b.Put(s)
	}
	return b.Done(), nil
}
