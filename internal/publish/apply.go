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

// Apply makes a group that another publisher committed durable here, and serves it. b is the output of
// Group.MarshalBinary.
// Groups must be applied in their order, to a copy of the store on which they were created. Apply refuses a group that
// does not follow the last one. It calls Options.Committed, but not Derive and BeforeDurable.
func (p *Publisher) Apply(ctx context.Context, b []byte) error {
	d, err := parseGroup(b)
	if err != nil {
		return err
	}
	return p.submit(&request{ctx: ctx, alone: true, replay: d, done: make(chan struct{})})
}

// replay writes the rows of a group of another publisher, and finds out what changes in the snapshot.
func (p *Publisher) replay(w store.Writer, g *Group, d *replayedGroup) error {
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
		return errGroup // a group without its number could be applied twice
	}
	r.tx = &Tx{View: v, p: p, objects: d.written.Kinds}
	for _, id := range d.written.Zones {
		if err := r.tx.addReplayed(before[id], id, d.written.Sets[id]); err != nil {
			return err
		}
	}
	for _, ref := range d.written.Changes {
		c, err := v.Change(ref.Zone, ref.Commit)
		if errors.Is(err, store.ErrNotFound) {
			continue // a later edit of the group deleted the zone, or the journal was trimmed
		}
		if err != nil {
			return err
		}
		g.Changes = append(g.Changes, c)
	}
	return nil
}

// zoneState is a zone, and whether it is the expired copy of a secondary zone.
type zoneState struct {
	zone    zone.Zone // the zero value when there is no zone
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

// addReplayed adds to tx the changes of a zone's answers that come from the rows just replayed.
func (tx *Tx) addReplayed(before zoneState, id uuid.UUID, sets map[store.SetRef]bool) error {
	after, err := stateOf(tx.View, id)
	if err != nil {
		return err
	}
	e := &zoneEdit{zone: after.zone}
	switch {
	case after.zone.ID == uuid.Nil && before.zone.ID == uuid.Nil:
		return nil // the group both created and deleted the zone
	case after.zone.ID == uuid.Nil:
		e = &zoneEdit{zone: before.zone, deleted: true}
	case before.zone.ID == uuid.Nil || before.zone.TTL != after.zone.TTL || before.expired || after.expired ||
		len(sets) > tx.p.opts.JournalSets:
		e.reload = true
		if e.nodes, err = loadZone(tx.View, after.zone); err != nil {
			// Fail before the group is durable: with a zone that it cannot read, a publisher does not open.
			return err
		}
	default:
		if e.served, err = tx.servedNow(after.zone, sets); err != nil {
			return err
		}
	}
	tx.order = append(tx.order, e)
	return nil
}

// servedNow returns record sets as they are served now. A set without data is not served.
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
