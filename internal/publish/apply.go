package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Apply makes a group that another publisher has decided durable, and serves it. b is the output of
// Group.MarshalBinary. Groups must be applied in their order, to a copy of the store that they were made on: Apply
// refuses a group that does not follow the last one. Derive and BeforeDurable are not called; Committed is.
func (p *Publisher) Apply(ctx context.Context, b []byte) error {
	d, err := parseGroup(b)
	if err != nil {
		return err
	}
	return p.submit(&request{ctx: ctx, alone: true, decided: d, done: make(chan struct{})})
}

// replay writes the rows of a decided group, and finds out what changes in the snapshot.
func (p *Publisher) replay(w store.Writer, g *Group, d *decided) error {
	r := g.edits[0]
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if d.number != g.Number {
		return fmt.Errorf("group %d cannot be applied: the next one is %d", d.number, g.Number)
	}
	v := store.NewView(w)
	before := map[uuid.UUID]zoneState{}
	for _, id := range d.written.Zones {
		var err error
		if before[id], err = stateOf(v, id); err != nil {
			return err
		}
	}
	if err := store.Replay(w, d.rows); err != nil {
		return err
	}
	if store.LastCommit(w) < d.number {
		return errGroup // without its number it could be applied again
	}
	r.tx = &Tx{View: v, p: p, objects: d.written.Kinds}
	for _, id := range d.written.Zones {
		if err := r.tx.follow(before[id], id, d.written.Sets[id]); err != nil {
			return err
		}
	}
	for _, ref := range d.written.Changes {
		c, err := v.Change(ref.Zone, ref.Commit)
		if errors.Is(err, store.ErrNotFound) {
			continue // a later edit of the group deleted its zone, or cut the journal
		}
		if err != nil {
			return err
		}
		g.Changes = append(g.Changes, c)
	}
	return nil
}

// zoneState is a zone, and whether it is a copy that has expired.
type zoneState struct {
	zone    zone.Zone // zero: there is none
	expired bool
}

func stateOf(v store.View, id uuid.UUID) (s zoneState, err error) {
	s.zone, err = v.Zone(id)
	if errors.Is(err, store.ErrNotFound) {
		return zoneState{}, nil
	}
	if err == nil && s.zone.Kind == zone.Secondary {
		var copied Secondary
		copied, err = SecondaryOf(v, id)
		s.expired = copied.Expired
	}
	return s, err
}

// follow adds to tx what rows that were just replayed change of a zone's answers.
func (tx *Tx) follow(before zoneState, id uuid.UUID, sets map[store.SetRef]bool) error {
	delete(tx.p.journal, id) // counted again when an edit needs it
	after, err := stateOf(tx.View, id)
	if err != nil {
		return err
	}
	e := &zoneEdit{zone: after.zone}
	switch {
	case after.zone.ID == uuid.Nil && before.zone.ID == uuid.Nil:
		return nil // it was made and deleted
	case after.zone.ID == uuid.Nil:
		e = &zoneEdit{zone: before.zone, deleted: true}
	case before.zone.ID == uuid.Nil || before.zone.TTL != after.zone.TTL || before.expired || after.expired ||
		len(sets) > tx.p.opts.JournalSets:
		e.reload = true
		if e.nodes, err = loadZone(tx.View, after.zone); err != nil {
			return err // before the group is durable: a zone that cannot be read keeps a publisher from opening
		}
	default:
		if e.served, err = tx.servedNow(after.zone, sets); err != nil {
			return err
		}
	}
	tx.order = append(tx.order, e)
	return nil
}

// servedNow returns how record sets are served now; one without data is not.
func (tx *Tx) servedNow(z zone.Zone, sets map[store.SetRef]bool) ([]rr.Set, error) {
	var out []rr.Set
	for ref := range sets {
		s, err := tx.RecordSet(z.ID, ref.Name, ref.Type)
		switch {
		case errors.Is(err, store.ErrNotFound):
			out = append(out, rr.Set{Name: ref.Name, Type: ref.Type})
		case err != nil:
			return nil, err
		default:
			out = append(out, s.Served(z.TTL))
		}
	}
	return out, nil
}
