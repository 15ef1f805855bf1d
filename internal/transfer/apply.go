package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// errMoved says that a zone is not what it was when the transfer began.
var errMoved = errors.New("the zone was changed meanwhile")

// manySets is from where on a zone is worth a commit of its own, which gives memory back to the system. For every small one that
// would take more time than all the rest.
const manySets = 10_000

// apply makes what came the content of the zone, in one commit.
func apply(ctx context.Context, pub *publish.Publisher, z zone.Zone, c *copied, from string) error {
	actor := store.Actor{Who: "master " + from, Project: z.Project, Door: "transfer"}
	commit := pub.Commit
	if c.whole != nil && len(c.whole)+z.Sets > manySets {
		commit = pub.CommitAlone
	}
	return commit(ctx, actor, func(tx *publish.Tx) error {
		now, err := tx.Zone(z.ID)
		if err != nil {
			return err
		}
		if now.Kind != zone.Secondary || now.Serial != z.Serial || !slices.Equal(now.Masters, z.Masters) {
			return errMoved
		}
		if c.whole != nil {
			tx.Note("transferred serial %d from %s", c.serial, from)
			err = tx.ReplaceSets(z.ID, c.sets())
		} else {
			tx.Note("transferred the difference to serial %d from %s", c.serial, from)
			err = c.change(tx, z)
		}
		if err != nil {
			return err
		}
		at := time.Now().UTC()
		return tx.SetSecondary(z.ID, publish.Secondary{Checked: at, Transferred: at, Masters: strings.Join(z.Masters, " ")})
	})
}

// sets is the whole zone.
func (c *copied) sets() []zone.RecordSet {
	out := make([]zone.RecordSet, 0, len(c.whole))
	for _, s := range c.whole {
		out = append(out, *s)
	}
	return out
}

// changing is a set that a difference changes, with its records by rr.DataKey: a master may send millions for one set, and all
// other changes wait meanwhile.
type changing struct {
	zone.RecordSet
	data map[string]string
}

// change applies a difference. What it removes must be there: else our copy is not what the master takes it for.
func (c *copied) change(tx *publish.Tx, z zone.Zone) error {
	soa := c.soa
	sets := map[owner]*changing{soa.owner: {zone.RecordSet{Zone: z.ID, Name: soa.name, Type: soa.typ, TTL: &soa.ttl, Managed: true},
		map[string]string{soa.data: soa.data}}}
	for _, r := range c.steps {
		if r.typ == rr.TypeALIAS {
			continue
		}
		s, err := c.set(tx, z, sets, r.owner)
		if err != nil {
			return err
		}
		key := rr.DataKey(r.typ, r.data)
		_, there := s.data[key]
		switch {
		case r.remove && !there:
			return fmt.Errorf("the difference removes a record that is not there: %s %s", r.name, r.typ)
		case r.remove:
			delete(s.data, key)
			continue
		case !there:
			s.data[key] = r.data
		}
		s.TTL = new(r.ttl)
	}
	for o, s := range sets {
		s.Data = slices.Collect(maps.Values(s.data)) // in no order, which the edit puts right
		if err := put(tx, o, &s.RecordSet); err != nil {
			return err
		}
	}
	return nil
}

// set is a set of the zone as far as the difference has come.
func (c *copied) set(tx *publish.Tx, z zone.Zone, sets map[owner]*changing, o owner) (*changing, error) {
	if s := sets[o]; s != nil {
		return s, nil
	}
	s, err := tx.RecordSet(z.ID, o.name, o.typ)
	if errors.Is(err, store.ErrNotFound) {
		s, err = zone.RecordSet{Zone: z.ID, Name: o.name, Type: o.typ, Managed: o.name == c.apex && o.typ == rr.TypeNS}, nil
	}
	w := &changing{s, make(map[string]string, len(s.Data))}
	for _, d := range s.Data {
		w.data[rr.DataKey(o.typ, d)] = d
	}
	sets[o] = w
	return w, err
}

func put(tx *publish.Tx, o owner, s *zone.RecordSet) error {
	_, err := tx.RecordSet(s.Zone, o.name, o.typ)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	case err != nil && len(s.Data) == 0:
		return nil
	case err != nil:
		_, err = tx.CreateSet(*s)
	case len(s.Data) == 0:
		err = tx.DeleteSet(s.Zone, o.name, o.typ)
	default:
		_, err = tx.UpdateSet(*s)
	}
	return err
}
