package designate

import (
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// zoneSet is a record set with its zone.
type zoneSet struct {
	zone zone.Zone
	set  zone.RecordSet
}

// recordSet returns the record set of the path, if the caller may see its zone.
func (c *call) recordSet(v store.View) (zoneSet, error) {
	z, err := c.zone(v)
	if err != nil {
		return zoneSet{}, err
	}
	id, err := c.id("recordset_id")
	if err != nil {
		return zoneSet{}, err
	}
	s, err := v.RecordSetByID(id)
	if errors.Is(err, store.ErrNotFound) || err == nil && (s.Zone != z.ID || s.Hidden) {
		return zoneSet{}, notFound("recordset", "RecordSet")
	}
	zs := zoneSet{z, s}
	if err == nil {
		err = c.need(setMemory(1, zs.weight()))
	}
	return zs, err
}

func (c *call) createRecordSet() (reply, error) {
	in, err := c.input("recordset", recordsetCreateKeys...)
	if err != nil {
		return reply{}, err
	}
	s, err := newRecordSet(in)
	if err != nil {
		return reply{}, err
	}
	zs := zoneSet{set: s}
	err = c.commit(func(tx *publish.Tx) (err error) {
		tx.Note("create record set")
		if zs.zone, err = c.zone(tx.View); err != nil {
			return err
		}
		zs.set, err = c.addSet(tx, zs.zone, s)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	rep := c.pendingSet(zs, actionCreate)
	rep.location = c.url(setPath(zs.zone.ID, zs.set.ID))
	return rep, nil
}

// addSet creates a record set inside a commit.
func (c *call) addSet(tx *publish.Tx, z zone.Zone, s zone.RecordSet) (zone.RecordSet, error) {
	s.Zone = z.ID
	if err := dropFlattened(tx, s); err != nil {
		return s, err
	}
	if err := c.checkAdd(tx.View, z, s); err != nil {
		return s, err
	}
	s, err := tx.CreateSet(s)
	if errors.Is(err, store.ErrExists) {
		return s, duplicate("recordset", "RecordSet")
	}
	return s, err
}

func (c *call) showRecordSet() (reply, error) {
	shown, err := viewed(c, c.shownRecordSet)
	if err != nil {
		return reply{}, err
	}
	zs := shown.zoneSet
	if shown.deletion != "" {
		w := c.deletedSet(zs)
		w.Status = shown.deletion
		return reply{status: http.StatusOK, body: w}, nil // without a tag: it cannot be changed
	}
	return c.ifNoneMatch(reply{status: http.StatusOK, body: c.wireShown(zs), etag: tagOf(c.wire(zs))}), nil
}

// updateRecordSet changes the fields that the body has: Designate's PUT does not replace the whole set. It reads the
// set twice: before the commit for the type, which the body is parsed by, and inside the commit for the current values.
func (c *call) updateRecordSet() (reply, error) {
	in, err := c.anyInput("recordset")
	if err != nil {
		return reply{}, err
	}
	zs, err := viewed(c, c.recordSet)
	if err != nil {
		return reply{}, err
	}
	values := readValues(in, zs.set.Type) // the type of a record set never changes
	if in.err() != nil {
		return reply{}, in.err()
	}
	rest := in.repeated(recordsetUpdateKeys...)
	err = c.commit(func(tx *publish.Tx) (err error) {
		tx.Note("update record set")
		if zs, err = c.recordSet(tx.View); err != nil {
			return err
		}
		if err := c.ifMatch(func() any { return c.wire(zs) }); err != nil {
			return err
		}
		if err := rest.check(func() any { return c.linkedSet(zs) }); err != nil {
			return err
		}
		next := zs.set
		values.apply(&next)
		zs.set, err = c.changeSet(tx, zs, next)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	return c.pendingSet(zs, actionUpdate), nil
}

// changeSet updates a record set to next inside a commit.
func (c *call) changeSet(tx *publish.Tx, zs zoneSet, next zone.RecordSet) (zone.RecordSet, error) {
	if err := c.checkChange(zs.set); err != nil {
		return zs.set, err
	}
	if err := c.checkValues(next); err != nil {
		return zs.set, err
	}
	return tx.UpdateSet(next)
}

// deleteRecordSet returns 202 and the deleted set, as Designate does.
func (c *call) deleteRecordSet() (reply, error) {
	var zs zoneSet
	err := c.commit(func(tx *publish.Tx) (err error) {
		tx.Note("delete record set")
		if zs, err = c.recordSet(tx.View); err != nil {
			return err
		}
		if err := c.ifMatch(func() any { return c.wire(zs) }); err != nil {
			return err
		}
		if err := c.checkChange(zs.set); err != nil {
			return err
		}
		return tx.DeleteSet(zs.zone.ID, zs.set.Name, zs.set.Type)
	})
	return reply{status: http.StatusAccepted, body: c.deletedSet(zs)}, err
}

// findRecordSet redirects from the id of a record set to its URL with 301, as Designate does. Every error is 404, so
// that the reply does not show whether another project has the id.
func (c *call) findRecordSet() (reply, error) {
	id, err := c.id("recordset_id")
	if err != nil {
		return reply{}, err
	}
	var s zone.RecordSet
	err = c.view(func(v store.View) (err error) {
		if s, err = v.RecordSetByID(id); err == nil && s.Hidden {
			err = store.ErrNotFound
		}
		if err == nil {
			_, err = c.zoneByID(v, s.Zone)
		}
		return err
	})
	if err != nil {
		return reply{}, notFound("recordset", "RecordSet")
	}
	return reply{status: http.StatusMovedPermanently, location: c.url(setPath(s.Zone, id))}, nil
}

func setPath(zoneID, id uuid.UUID) string {
	return "/v2/zones/" + zoneID.String() + "/recordsets/" + id.String()
}

// pendingSet returns the reply to a change of a record set: 202 and the set as PENDING, as in Designate. The change is
// on disk and served here already. The next GET shows whether other servers have it, and the state of an ALIAS.
func (c *call) pendingSet(zs zoneSet, action string) reply {
	w := c.wire(zs)
	tag := tagOf(w)
	w.Links = &links{Self: c.url(setPath(zs.zone.ID, zs.set.ID))}
	w.Status, w.Action = statusPending, action
	return reply{status: http.StatusAccepted, body: w, etag: tag}
}

func (c *call) linkedSet(zs zoneSet) wireRecordSet {
	w := c.wire(zs)
	w.Links = c.setLinks(zs)
	return w
}

func (c *call) setLinks(zs zoneSet) *links {
	return &links{Self: c.url(setPath(zs.zone.ID, zs.set.ID))}
}

// deletedSet returns a deleted record set with the status that it has in Designate until all servers have deleted it:
// clients wait for PENDING to end in 404.
func (c *call) deletedSet(zs zoneSet) wireRecordSet {
	w := c.linkedSet(zs)
	w.Status, w.Action = statusPending, actionDelete
	return w
}
