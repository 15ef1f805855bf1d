package externaldns

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// changes is what external-dns wants to change. UpdateOld has the endpoints before an update, UpdateNew those after it.
type changes struct {
	Create    list `json:"create"`
	UpdateOld list `json:"updateOld"`
	UpdateNew list `json:"updateNew"`
	Delete    list `json:"delete"`
}

// edit is the change of one record set.
type edit struct {
	old  []*item // what external-dns believes to be in the zone
	next *item   // the new content; nil: delete the set
}

// key identifies a record set.
type key struct {
	zone uuid.UUID
	name dnsname.Name
	typ  rr.Type
}

func keyOf(s zone.RecordSet) key { return key{s.Zone, s.Name, s.Type} }

// zoneEdits are the edits of one zone.
type zoneEdits struct {
	id    uuid.UUID
	edits []*edit
}

// apply applies changes. In each zone it makes all of them or none. When a zone fails, the others are committed, and
// the reply is 500: external-dns reads the records again and sends what is missing.
func (c *call) apply() error {
	next := list{minTTL: c.zones.MinTTL()}
	in := changes{Create: next, UpdateNew: next}
	if err := c.decode(&in); err != nil {
		return err
	}
	plan, err := c.plan(in)
	if err != nil {
		return err
	}
	var failed []string
	for _, z := range plan {
		name, err := c.commit(z)
		if err != nil {
			reason := fmt.Sprintf("zone %s: %s", name, c.reason(err))
			c.api.Log.Warn("changes of external-dns refused", "zone", name, "error", err,
				"request_id", httpapi.RequestID(c.r.Context()))
			failed = append(failed, reason)
		}
	}
	if len(failed) > 0 {
		Error(c.w, c.r, http.StatusInternalServerError, strings.Join(failed, "; "))
		return nil
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// plan sorts changes by zone and record set. An old endpoint without a new one of the same name and type is a deletion:
// an update can turn a CNAME into an alias.
func (c *call) plan(in changes) ([]*zoneEdits, error) {
	old, err := c.keepOld(in.UpdateOld.joined(in.Delete))
	if err != nil {
		return nil, err
	}
	next, err := c.keep(in.Create.joined(in.UpdateNew))
	if err != nil {
		return nil, err
	}
	var plan []*zoneEdits
	zones := map[uuid.UUID]*zoneEdits{}
	edits := map[key]*edit{}
	find := func(s zone.RecordSet) *edit {
		if e := edits[keyOf(s)]; e != nil {
			return e
		}
		z := zones[s.Zone]
		if z == nil {
			z = &zoneEdits{id: s.Zone}
			zones[s.Zone], plan = z, append(plan, z)
		}
		e := &edit{}
		z.edits, edits[keyOf(s)] = append(z.edits, e), e
		return e
	}
	for _, k := range old {
		e := find(k.set)
		e.old = append(e.old, k)
	}
	for _, k := range next {
		find(k.set).next = k
	}
	return plan, nil
}

// keepOld returns the record sets of endpoints that external-dns believes to exist. Those that cannot exist are left
// out: there is nothing to delete.
func (c *call) keepOld(in list) (kept []*item, err error) {
	err = c.zones.View(func(v store.View) error {
		kept = nil
		own, err := c.ownZones(v)
		if err != nil {
			return err
		}
		for _, k := range in.items {
			if own.setZone(k) == nil {
				kept = append(kept, k)
			}
		}
		return nil
	})
	return kept, err
}

// conflictError reports that a record set is not what external-dns believes.
type conflictError struct{ set zone.RecordSet }

func (e *conflictError) Error() string {
	return fmt.Sprintf("%s %s has other records than external-dns expects", e.set.Name, e.set.Type)
}

// reason returns the text of an error for the reply.
func (c *call) reason(err error) string {
	if conflict, ok := errors.AsType[*conflictError](err); ok {
		return conflict.Error()
	}
	return c.zones.Reason(err)
}

// commit makes the edits of one zone, and returns its name.
func (c *call) commit(ze *zoneEdits) (name string, err error) {
	name = ze.id.String()
	var d drops
	err = c.zones.Commit(len(ze.edits), func(tx *publish.Tx) error {
		d = drops{}
		z, err := c.zones.Zone(tx.View, ze.id)
		if err != nil {
			return err
		}
		name = z.Name.String()
		tx.Note("%d changes of external-dns", len(ze.edits))
		room, full, err := ze.room(tx, z)
		if err != nil {
			return err
		}
		for _, e := range ze.edits {
			created, err := c.applyEdit(tx, z, e, &d)
			if err != nil {
				return err
			}
			if created {
				if room--; room < 0 {
					return full
				}
			}
		}
		return nil
	})
	if err == nil {
		c.report(d)
	}
	return name, err
}

// room returns how many record sets the edits may create, and the error for more. It returns an error when they would
// exceed a quota in any case. Other projects wait while the edits run, so the quota must refuse them early.
func (ze *zoneEdits) room(tx *publish.Tx, z zone.Zone) (room int, full, err error) {
	sets, records, removed := 0, 0, 0
	for _, e := range ze.edits {
		if e.next != nil {
			sets, records = sets+1, records+len(e.next.set.Data)
		}
		if len(e.old) > 0 {
			removed += len(slices.MaxFunc(e.old, func(a, b *item) int { return len(a.set.Data) - len(b.set.Data) }).set.Data)
		}
	}
	if err := tx.CheckSize(z, sets, records); err != nil {
		return 0, nil, err
	}
	room, over, err := tx.RoomForSets(z)
	if err != nil || over == nil {
		return math.MaxInt, nil, err
	}
	return room + removed, over, nil // each removed record can make room for a set
}

// applyEdit changes one record set, and reports whether it created the set. It returns a conflictError when another
// client has changed the set meanwhile.
func (c *call) applyEdit(tx *publish.Tx, z zone.Zone, e *edit, d *drops) (created bool, err error) {
	set := e.set()
	now, err := tx.RecordSet(z.ID, set.Name, set.Type)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	exists := err == nil && !now.Hidden
	switch {
	case !exists && e.next == nil:
		return false, nil // it is deleted already
	case exists && !e.expects(now) && e.next != nil && isOwnership(set):
		d.add(e.next.endpoint, refuse("taken", "an ownership record cannot be beside other TXT records: set --txt-prefix"))
		return false, nil
	case exists && !e.expects(now):
		return false, &conflictError{set}
	case e.next == nil:
		return false, c.zones.Delete(tx, z, set)
	}
	return !exists, c.zones.Put(tx, z, set)
}

// set returns a set with the name and type of the edit, and with the new content if there is one.
func (e *edit) set() zone.RecordSet {
	if e.next != nil {
		return e.next.set
	}
	return e.old[0].set
}

// expects reports whether the edit may replace the set in the zone: the set has the records that external-dns believes
// to be there, or already those that it wants. The second happens when the reply to an earlier request was lost.
func (e *edit) expects(now zone.RecordSet) bool {
	same := func(k *item) bool { return sameRecords(k.set, now) }
	return slices.ContainsFunc(e.old, same) || e.next != nil && same(e.next)
}
