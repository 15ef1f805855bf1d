package designate

import (
	"cmp"
	"errors"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// maxDeletedWalk bounds the changes that findDeleted reads, and maxDeletedWeight their bytes. A client that asks for
// unknown ids must not read the whole history of a zone each time.
const (
	maxDeletedWalk   = 1_000
	maxDeletedWeight = 1 << 20
)

// shownSet is a record set that exists, or one whose deletion a secondary does not have yet.
type shownSet struct {
	zoneSet
	deletion string // the status of the deletion; empty: the set exists
}

// shownRecordSet returns the record set of the path. A deleted set is shown until all secondaries have deleted it, so
// that a client can wait for 404. Such a set is not stored; the history of the zone has it.
//
// Only a read by id shows it. Designate removes the row with the request, so its lists do not have the set. Clients
// rely on that: lego finds a set by name in a list and changes or deletes it, which would be 404 here.
func (c *call) shownRecordSet(v store.View) (shownSet, error) {
	zs, err := c.recordSet(v)
	if f, ok := errors.AsType[*fault](err); !ok || f.kind != "recordset_not_found" {
		return shownSet{zs, ""}, err
	}
	z, zoneErr := c.zone(v)
	id, idErr := c.id("recordset_id")
	if zoneErr != nil || idErr != nil {
		return shownSet{}, cmp.Or(zoneErr, idErr)
	}
	s, status, walkErr := c.findDeleted(v, z, id)
	if walkErr != nil || s == nil {
		return shownSet{}, cmp.Or(walkErr, err)
	}
	return shownSet{zoneSet{z, *s}, status}, nil
}

// findDeleted returns the last form of a set whose deletion a secondary lacks, and its status: PENDING, or ERROR when
// the secondary lacks the deletion for longer than errorAfter. It returns nil when the history does not have the set.
func (c *call) findDeleted(v store.View, z zone.Zone, id uuid.UUID) (s *zone.RecordSet, status string, err error) {
	if len(c.behind(z.ID)) == 0 {
		return nil, "", nil
	}
	n, weight := 0, 0
	err = v.Changes(z.ID, 0, func(ch store.Change) (bool, error) {
		for _, p := range c.behind(z.ID) {
			switch {
			case ch.Time.Before(p.From):
			case isLate(p):
				status = statusError
			case status == "":
				status = statusPending
			}
		}
		if status == "" {
			return false, nil // every secondary has this change, and all earlier ones
		}
		n++
		one := changeWeight(ch)
		if weight += one; n > maxDeletedWalk || n > 1 && weight > maxDeletedWeight {
			return false, nil
		}
		if err := c.need(int64(one) * walkMemory); err != nil {
			return false, err
		}
		for _, set := range ch.Sets {
			if b := set.Before; b != nil && b.ID == id && !b.Hidden && (set.After == nil || set.After.ID != id) {
				s = b
				return false, nil
			}
		}
		status = ""
		return true, nil
	})
	return s, status, err
}
