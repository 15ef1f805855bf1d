package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// errChanged means that the zone changed since the transfer began.
var errChanged = errors.New("the zone was changed meanwhile")

// manySets is the number of record sets above which a zone gets a commit of its own, which returns memory to the
// operating system. For small zones that would take more time than the rest of the transfer.
const manySets = 10_000

// readBytes is the memory of a transfer while it is read: zonefile.Stage, one message and buffers.
const readBytes = 2 << 20

// memoryNeeded returns the memory of the commit of a transfer. A transfer of the whole zone also reads the old sets.
func (c *incoming) memoryNeeded(z zone.Zone) int64 {
	records, bytes := c.count, c.to.Bytes()
	if c.whole {
		records, bytes = records+z.Records, bytes+int64(z.Bytes)
	}
	return budget.ZoneBytes(records, bytes)
}

// checkLimits refuses a transfer that exceeds the quotas of the zone's project or the memory budget, while it is read.
// It counts every record that was read, except one: the SOA of the new serial comes first and last. The commit checks
// the quotas again. A zone that exceeded a quota before may keep its size.
func (a *attempt) checkLimits(c *incoming) error {
	var gone zone.Zone
	if !c.whole {
		gone = a.zone // a difference may remove all old records first
	}
	for _, n := range []struct {
		resource        string
		come, was, most int
	}{
		{"zone_records", c.count - 1 - gone.Records, a.zone.Records, a.quotas.ZoneRecords},
		{"bytes of a zone", c.data - gone.Bytes, a.zone.Bytes, a.quotas.ZoneBytes()},
	} {
		if n.most >= 0 && n.come > max(n.most, n.was) {
			return &publish.QuotaError{Resource: n.resource, N: n.come, Most: n.most}
		}
	}
	if err := a.opts.Budget.Fits(c.memoryNeeded(a.zone)); err != nil {
		return fmt.Errorf("the zone was not read completely: %w", err)
	}
	return nil
}

// apply commits the transferred content in one commit.
func (a *attempt) apply(ctx context.Context, c *incoming, from string) error {
	release, err := a.opts.Budget.Take(ctx, a.zone.Project, c.memoryNeeded(a.zone))
	if err != nil {
		return err
	}
	defer release()
	what, edit, touched := "the difference to serial", c.change, c.to.Records()
	if c.whole {
		what, edit, touched = "serial", c.replace, touched+a.zone.Sets
	}
	commit := a.pub.Commit
	if touched > manySets {
		commit = a.pub.CommitAlone
	}
	actor := store.Actor{Who: "master " + from, Project: a.zone.Project, API: "transfer"}
	return commit(ctx, actor, func(tx *publish.Tx) error {
		z, err := tx.Zone(a.id)
		if err != nil {
			return err
		}
		if z.Kind != zone.Secondary || z.Serial != a.zone.Serial || !slices.Equal(z.Masters, a.zone.Masters) {
			return errChanged
		}
		tx.Note("transferred %s %d from %s", what, c.serial, from)
		if err := errors.Join(edit(tx, a.id), c.to.Err()); err != nil {
			return err
		}
		at := time.Now().UTC()
		masters := strings.Join(z.Masters, " ")
		return tx.SetSecondary(z.ID, publish.Secondary{Checked: at, Transferred: at, Masters: masters})
	})
}

// replace replaces the whole zone.
func (c *incoming) replace(tx *publish.Tx, id uuid.UUID) error {
	return tx.ReplaceSorted(id, c.to.Records(), func(yield func(zone.RecordSet) bool) {
		for s := range c.to.Sets() {
			ttl := s.TTL
			managed := c.managed(s.Name, s.Type)
			if !yield(zone.RecordSet{Name: s.Name, Type: s.Type, TTL: &ttl, Data: s.Data, Managed: managed}) {
				return
			}
		}
	})
}

// managed reports whether a set is one of the two that every zone has: SOA and NS at the apex.
func (c *incoming) managed(n dnsname.Name, t rr.Type) bool {
	return n == c.apex && (t == rr.TypeSOA || t == rr.TypeNS)
}

// changedSet is a record set that a difference changes. Its records are in a map by rr.DataKey: a master may send
// millions of records for one set, and all other commits wait meanwhile.
type changedSet struct {
	zone.RecordSet
	exists bool
	data   map[string]string
}

// change applies a difference, set by set. Steps of different sets may be applied in any order. A record that is
// removed must exist: otherwise our copy differs from the state that the master assumes.
func (c *incoming) change(tx *publish.Tx, id uuid.UUID) error {
	s, err := c.openSet(tx, id, c.soa)
	if err != nil {
		return err
	}
	s.TTL, s.data = &c.soa.TTL, map[string]string{c.soa.Data: c.soa.Data}
	for r := range c.to.All() {
		if r.Name != s.Name || r.Type != s.Type {
			if err := s.put(tx); err != nil {
				return err
			}
			if s, err = c.openSet(tx, id, r); err != nil {
				return err
			}
		}
		if err := s.change(r); err != nil {
			return err
		}
	}
	return s.put(tx)
}

// openSet returns a set of the zone before the change.
func (c *incoming) openSet(tx *publish.Tx, id uuid.UUID, r zonefile.Record) (*changedSet, error) {
	s, err := tx.RecordSet(id, r.Name, r.Type)
	there := err == nil
	if errors.Is(err, store.ErrNotFound) {
		s, err = zone.RecordSet{Zone: id, Name: r.Name, Type: r.Type, Managed: c.managed(r.Name, r.Type)}, nil
	}
	w := &changedSet{s, there, make(map[string]string, len(s.Data))}
	for _, d := range s.Data {
		w.data[rr.DataKey(r.Type, d)] = d
	}
	return w, err
}

// change adds or removes a record.
func (s *changedSet) change(r zonefile.Record) error {
	key := rr.DataKey(r.Type, r.Data)
	_, there := s.data[key]
	switch {
	case r.TTL&removed != 0 && !there:
		return fmt.Errorf("the difference removes a record that does not exist: %s %s", r.Name, r.Type)
	case r.TTL&removed != 0:
		delete(s.data, key)
		return nil
	case !there:
		s.data[key] = r.Data
	}
	s.TTL = new(r.TTL)
	return nil
}

// put writes the changed set.
func (s *changedSet) put(tx *publish.Tx) (err error) {
	s.Data = slices.Collect(maps.Values(s.data)) // unordered; the edit sorts the records
	switch {
	case !s.exists && len(s.Data) > 0:
		_, err = tx.CreateSet(s.RecordSet)
	case s.exists && len(s.Data) == 0:
		err = tx.DeleteSet(s.Zone, s.Name, s.Type)
	case s.exists:
		_, err = tx.UpdateSet(s.RecordSet)
	}
	return err
}
