package designate

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
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
		// Zones come by name; where nothing else tells them apart the older one is first.
		zoneListing.sortByAge(zones)
		if p, err = zoneListing.cut(zones, q); err == nil {
			shared, err = sharedAmong(v, p.items)
		}
		return err
	})
	return zoneListing.reply(c, q, p, func(z zone.Zone) any { return c.linkedZone(z, shared[z.ID]) }), err
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
	if err := c.checkSecondary(z); err != nil {
		return reply{}, err
	}
	z.Project = c.scope.project
	err = c.commit(func(tx *publish.Tx) error {
		tx.Note("create zone")
		if err := c.mayCreate(tx.View, z); err != nil {
			return err
		}
		var sets []zone.RecordSet
		if z.Kind == zone.Primary {
			sets = firstSets(z, c.settings)
		}
		z, err = tx.CreateZone(z, sets...)
		return zoneExists(z, err)
	})
	if err != nil {
		return reply{}, err
	}
	c.refresh(z)
	w := c.linkedZone(z, false)
	rep := created(w, w.Links.Self)
	rep.etag = tagOf(zoneOnWire(z, false))
	return pending(rep, w), nil
}

func zoneExists(z zone.Zone, err error) error {
	if errors.Is(err, store.ErrExists) {
		return duplicate("zone", "Duplicate Zone: %s exists", z.Name)
	}
	return err
}

func (c *call) showZone() (reply, error) {
	var z zone.Zone
	var shared bool
	err := c.view(func(v store.View) (err error) {
		if z, err = c.zone(v); err == nil {
			shared, err = isShared(v, z.ID)
		}
		return err
	})
	if err != nil {
		return reply{}, err
	}
	w := c.linkedZone(z, shared)
	if w.Secondaries != nil || w.Copy != nil {
		c.r.Header.Del("If-None-Match") // its tag tells what the owner said, and not how it is elsewhere
	}
	return c.shown(zoneOnWire(z, shared), w), nil
}

func (c *call) updateZone() (reply, error) {
	in, err := c.anyInput("zone")
	if err != nil {
		return reply{}, err
	}
	var z zone.Zone
	err = c.commit(func(tx *publish.Tx) error {
		tx.Note("update zone")
		var shared bool
		var err error
		if z, shared, err = c.ownZoneShared(tx.View); err != nil {
			return err
		}
		if err := c.ifMatch(func() any { return zoneOnWire(z, shared) }); err != nil {
			return err
		}
		delete(in.fields, "secondaries") // what is known of other servers may have changed since it was read
		delete(in.fields, "copy")
		if err := in.known(func() any { return c.linkedZone(z, shared) }, zoneUpdateKeys...); err != nil {
			return err
		}
		return c.changeZone(tx, in, z)
	})
	if err != nil {
		return reply{}, err
	}
	c.refresh(z)
	return c.showZoneNow()
}

// showZoneNow is showZone after a change: whatever tags the request came with were about what was before.
func (c *call) showZoneNow() (reply, error) {
	c.r.Header.Del("If-None-Match")
	return c.showZone()
}

// changeZone applies a PATCH. A new email shows in the SOA too.
func (c *call) changeZone(tx *publish.Tx, in *input, z zone.Zone) error {
	next := z
	readZoneFields(in, &next)
	if err := in.err(); err != nil {
		return err
	}
	if in.has("ttl") && next.TTL < c.settings.MinTTL {
		return invalidTTL(c.settings)
	}
	if err := c.checkMasters(next); err != nil {
		return err
	}
	if _, err := tx.UpdateZone(next); err != nil || next.Email == z.Email {
		return err
	}
	return setMailbox(tx, next)
}

func setMailbox(tx *publish.Tx, z zone.Zone) error {
	set, err := tx.RecordSet(z.ID, z.Name, rr.TypeSOA)
	if err != nil || len(set.Data) != 1 {
		return err
	}
	soa, ok := zone.ParseSOA(set.Data[0])
	if !ok {
		return nil
	}
	if soa.RName, ok = zone.MailboxName(z.Email); !ok {
		return invalid(problem{[]any{"email"}, "it cannot be written as the name of a mailbox", "format", "email"})
	}
	set.Data = []string{soa.Data()}
	_, err = tx.UpdateSet(set)
	return err
}

func (c *call) deleteZone() (reply, error) {
	var z zone.Zone
	var shared bool
	err := c.view(func(v store.View) (err error) {
		z, err = c.ownZone(v)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	err = c.commitSized(z.Sets, func(tx *publish.Tx) (err error) {
		if z, shared, err = c.ownZoneShared(tx.View); err != nil {
			return err
		}
		if err := c.ifMatch(func() any { return zoneOnWire(z, shared) }); err != nil {
			return err
		}
		if err := c.mayDelete(tx.View, z, shared); err != nil {
			return err
		}
		return removeZone(tx, z.ID)
	})
	w := c.linkedZone(z, shared)
	w.Status, w.Action = statusPending, actionDelete
	return reply{status: http.StatusAccepted, body: w}, err
}

// removeZone deletes a zone and what is said of it elsewhere.
func removeZone(tx *publish.Tx, id uuid.UUID) error {
	if err := unshare(tx, id); err != nil {
		return err
	}
	if err := dropTransferRequests(tx, id); err != nil {
		return err
	}
	return tx.DeleteZone(id)
}

func (c *call) listNameservers() (reply, error) {
	err := c.view(func(v store.View) error {
		_, err := c.zone(v)
		return err
	})
	type nameserver struct {
		Hostname string `json:"hostname"`
		Priority int    `json:"priority"`
	}
	out := []nameserver{}
	for _, n := range c.settings.Nameservers {
		out = append(out, nameserver{n.Hostname.String(), n.Priority})
	}
	return ok(map[string]any{"nameservers": out}), err
}

func (c *call) linkedZone(z zone.Zone, shared bool) wireZone {
	w := zoneOnWire(z, shared)
	w.Links = &links{Self: c.url("/v2/zones/" + w.ID)}
	c.addState(z, &w)
	return w
}
