package designate

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

var zoneListing = listing[zone.Zone]{
	name: "zones",
	id:   func(z zone.Zone) string { return z.ID.String() },
	keys: []string{"created_at", "id", "updated_at", "name", "tenant_id", "serial", "ttl", "status"},
	filters: map[string]func(zone.Zone) string{
		"name":        func(z zone.Zone) string { return z.Name.String() },
		"type":        func(z zone.Zone) string { return string(z.Kind) },
		"email":       func(z zone.Zone) string { return z.Email },
		"status":      nil, // depends on other servers; see call.zoneListing
		"description": func(z zone.Zone) string { return value(z.Description) },
		"ttl":         func(z zone.Zone) string { return decimal(z.TTL) },
	},
	sorts: map[string]func(a, b zone.Zone) int{
		"created_at": func(a, b zone.Zone) int { return a.Created.Compare(b.Created) },
		"id":         func(a, b zone.Zone) int { return compareIDs(a.ID, b.ID) },
		"updated_at": func(a, b zone.Zone) int { return a.Updated.Compare(b.Updated) },
		"name":       func(a, b zone.Zone) int { return a.Name.Compare(b.Name) },
		"tenant_id":  func(a, b zone.Zone) int { return cmp.Compare(a.Project, b.Project) },
		"serial":     func(a, b zone.Zone) int { return cmp.Compare(a.Serial, b.Serial) },
		"ttl":        func(a, b zone.Zone) int { return cmp.Compare(a.TTL, b.TTL) },
	},
}

func (c *call) listZones() (reply, error) {
	zoneListing := c.zoneListing()
	q, err := zoneListing.query(c)
	if err != nil {
		return reply{}, err
	}
	var p page[zone.Zone]
	var shared map[uuid.UUID]bool
	err = c.view(func(v store.View) error {
		zones, err := c.visibleZones(v)
		if err != nil {
			return err
		}
		// The store lists zones by name. Where the sort key is equal, the older zone is first.
		zoneListing.sortByAge(zones)
		if p, err = zoneListing.cut(zones, q); err != nil {
			return err
		}
		if err := c.need(zonesMemory(p.items)); err != nil {
			p = page[zone.Zone]{} // see setPage
			return err
		}
		shared, err = sharedAmong(v, p.items)
		return err
	})
	return zoneListing.reply(c, p, func(z zone.Zone) any { return c.linkedZone(z, shared[z.ID]) }), err
}

// zonesMemory returns the memory of a reply with zones. Only their attributes can be large.
func zonesMemory(zones []zone.Zone) int64 {
	n := 0
	for _, z := range zones {
		for key, value := range z.Attributes {
			n += len(key) + len(value)
		}
	}
	return setMemory(len(zones), n)
}

func (c *call) createZone() (reply, error) {
	in, err := c.input("zone", zoneCreateKeys...)
	if err != nil {
		return reply{}, err
	}
	z, err := newZone(in, c.settings)
	if err != nil {
		return reply{}, err
	}
	if err := c.checkMasters(z.Masters); err != nil {
		return reply{}, err
	}
	if len(z.Masters) > 0 {
		z.MastersBy = c.namer()
	}
	z.Project = c.scope.project
	err = c.commit(func(tx *publish.Tx) error {
		tx.Note("create zone")
		if err := c.checkCreate(tx.View, z); err != nil {
			return err
		}
		p, err := c.schedule(tx.View, z)
		if err != nil {
			return err
		}
		z.Pool = uuid.MustParse(p.ID)
		var sets []zone.RecordSet
		if z.Kind == zone.Primary {
			sets = firstSets(z, p.servers())
		}
		z, err = tx.CreateZone(z, sets...)
		return zoneExists(err)
	})
	if err != nil {
		return reply{}, err
	}
	c.refresh(z)
	rep := c.pendingZone(z, false, actionCreate)
	rep.location = c.url("/v2/zones/" + z.ID.String())
	return rep, nil
}

// pendingZone returns the reply to a change of a zone: 202 and the zone as PENDING, as in Designate. The change is on
// disk and served here already. The next GET shows whether other servers have it.
func (c *call) pendingZone(z zone.Zone, shared bool, action string) reply {
	w := c.linkedZone(z, shared)
	w.Status, w.Action = statusPending, action
	return reply{status: http.StatusAccepted, body: w, etag: tagOf(zoneOnWire(z, shared))}
}

func zoneExists(err error) error {
	if errors.Is(err, store.ErrExists) {
		return duplicate("zone", "Zone")
	}
	return err
}

// showZone ignores If-None-Match when the body has the state of other servers: the tag does not cover it, and 304 would
// hide a change.
func (c *call) showZone() (reply, error) {
	rep, live, err := c.zoneReply()
	if err != nil || live {
		return rep, err
	}
	return c.ifNoneMatch(rep), nil
}

// zoneReply returns the zone as it is now. live reports that the body has the state of the zone at other servers. That
// state changes without an edit, and the entity tag does not cover it.
func (c *call) zoneReply() (rep reply, live bool, err error) {
	var z zone.Zone
	var shared bool
	err = c.view(func(v store.View) (err error) {
		if z, err = c.zone(v); err == nil {
			shared, err = isShared(v, z.ID)
		}
		return err
	})
	if err != nil {
		return reply{}, false, err
	}
	w := c.linkedZone(z, shared)
	rep = reply{status: http.StatusOK, body: w, etag: tagOf(zoneOnWire(z, shared))}
	return rep, w.Secondaries != nil || w.Copy != nil, nil
}

// updateZone changes the fields that the body has. The other keys of the body must have their current values.
func (c *call) updateZone() (reply, error) {
	in, err := c.anyInput("zone")
	if err != nil {
		return reply{}, err
	}
	values, err := c.zoneChanges(in)
	if err != nil {
		return reply{}, err
	}
	rest := in.repeated(zoneUpdateKeys...)
	var z, left zone.Zone // before and after the change
	var shared bool
	err = c.commit(func(tx *publish.Tx) (err error) {
		tx.Note("update zone")
		if z, shared, err = c.ownZoneMatched(tx.View); err != nil {
			return err
		}
		if err := rest.check(func() any { return c.linkedZone(z, shared) }); err != nil {
			return err
		}
		if err := changeZone(tx, z, values); err != nil {
			return err
		}
		return tx.After(z.ID, &left)
	})
	if err != nil {
		return reply{}, err
	}
	c.refresh(left)
	return c.pendingZone(left, shared, actionUpdate), nil
}

// zoneChanges reads the body of a PATCH by the rules for the kind of the zone. It can do so before the commit, because
// the kind of a zone never changes.
func (c *call) zoneChanges(in *input) (zoneValues, error) {
	z, err := viewed(c, c.ownZone)
	if err != nil {
		return zoneValues{}, err
	}
	values := readZoneValues(in, z.Kind)
	if err := in.err(); err != nil {
		return values, err
	}
	if values.ttl != nil && *values.ttl < c.settings.MinTTL {
		return values, invalidTTL(c.settings)
	}
	if len(values.masters) > 0 {
		values.mastersBy = c.namer()
	}
	return values, c.checkMasters(values.masters)
}

// changeZone applies a PATCH inside a commit. A new email also becomes the RNAME of the SOA record.
func changeZone(tx *publish.Tx, z zone.Zone, values zoneValues) error {
	next := z
	values.apply(&next)
	if _, err := tx.UpdateZone(next); err != nil || next.Email == z.Email {
		return err
	}
	set, err := tx.RecordSet(z.ID, z.Name, rr.TypeSOA)
	if err != nil || len(set.Data) != 1 {
		return err
	}
	soa, ok := zone.ParseSOA(set.Data[0])
	if !ok {
		return nil
	}
	soa.RName = values.mailbox
	set.Data = []string{soa.Data()}
	_, err = tx.UpdateSet(set)
	return err
}

// deleteZone returns 202 and the zone as PENDING, as Designate does, although the zone is gone already: clients poll
// until they get 404.
func (c *call) deleteZone() (reply, error) {
	z, shared, err := c.dropZone(c.ownZoneMatched)
	rep := c.pendingZone(z, shared, actionDelete)
	rep.etag = "" // there is nothing left that could match
	return rep, err
}

// abandon deletes a zone. Designate forgets the zone, but leaves it on the servers of its pool. Here the server is the
// pool, so the zone is no longer served.
func (c *call) abandon() (reply, error) {
	_, _, err := c.dropZone(c.ownZoneShared)
	return noContent, err
}

// dropZone deletes the zone that find returns inside the commit. It reads the zone before too, because the number of
// its sets decides how it is committed.
func (c *call) dropZone(find func(store.View) (zone.Zone, bool, error)) (z zone.Zone, shared bool, err error) {
	if z, err = viewed(c, c.ownZone); err != nil {
		return z, false, err
	}
	err = c.commitSized(z.Sets, func(tx *publish.Tx) (err error) {
		if z, shared, err = find(tx.View); err != nil {
			return err
		}
		if err := c.checkDelete(tx.View, z, shared); err != nil {
			return err
		}
		return removeZone(tx, z.ID)
	})
	return z, shared, err
}

// removeZone deletes a zone with its shares, its transfer request and its keys.
func removeZone(tx *publish.Tx, id uuid.UUID) error {
	if err := unshare(tx, id); err != nil {
		return err
	}
	if err := transfer.DropKeysOf(tx, id); err != nil {
		return err
	}
	if err := dropTransferRequest(tx, id); err != nil {
		return err
	}
	return tx.DeleteZone(id)
}

func (c *call) listNameservers() (reply, error) {
	p, err := viewed(c, func(v store.View) (pool, error) {
		z, err := c.zone(v)
		if err != nil {
			return pool{}, err
		}
		return c.poolByID(v, z.Pool)
	})
	return ok(map[string]any{"nameservers": p.NSRecords}), err
}

func (c *call) linkedZone(z zone.Zone, shared bool) wireZone {
	w := zoneOnWire(z, shared)
	w.Links = &links{Self: c.url("/v2/zones/" + w.ID)}
	c.addState(z, &w)
	return w
}
