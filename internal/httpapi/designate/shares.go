package designate

import (
	"cmp"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// share lets another project see a zone and change its record sets. It is kept twice: under the zone, and under the
// project it is with, so that both questions are one read.
type share struct {
	resourceMeta
	ZoneID          string `json:"zone_id"`
	ProjectID       string `json:"project_id"`
	TargetProjectID string `json:"target_project_id"`
}

func shareKind(zoneID uuid.UUID) store.Kind    { return store.KindShare.Of(zoneID.String()) }
func sharedWithKind(project string) store.Kind { return store.KindSharedWith.Of(project) }
func (s share) key() (store.Kind, string)      { return store.KindShare.Of(s.ZoneID), s.ID }

func (s share) targetKey() (store.Kind, string) {
	return sharedWithKind(s.TargetProjectID), s.ZoneID
}

func isShared(v store.View, zoneID uuid.UUID) (bool, error) {
	shared := false
	err := v.EachObject(shareKind(zoneID), func(string, []byte) (bool, error) {
		shared = true
		return false, nil
	})
	return shared, err
}

func sharedAmong(v store.View, zones []zone.Zone) (map[uuid.UUID]bool, error) {
	out := map[uuid.UUID]bool{}
	for _, z := range zones {
		shared, err := isShared(v, z.ID)
		if err != nil {
			return nil, err
		}
		out[z.ID] = shared
	}
	return out, nil
}

func sharedWith(v store.View, zoneID uuid.UUID, project string) bool {
	var s share
	return v.Object(sharedWithKind(project), zoneID.String(), &s) == nil
}

// unshare ends all shares of a zone.
func unshare(tx *publish.Tx, zoneID uuid.UUID) error {
	shares, err := store.ObjectsOf[share](tx.View, shareKind(zoneID))
	for _, s := range shares {
		if err == nil {
			err = dropShare(tx, s)
		}
	}
	return err
}

func dropShare(tx *publish.Tx, s share) error {
	if err := tx.DeleteObject(s.targetKey()); err != nil {
		return err
	}
	return tx.DeleteObject(s.key())
}

var shareListing = listing[share]{
	name:    "shared_zones",
	id:      func(s share) string { return s.ID },
	keys:    []string{"created_at", "id", "updated_at", "target_project_id"},
	filters: map[string]func(share) string{"target_project_id": func(s share) string { return s.TargetProjectID }},
	sorts: map[string]func(a, b share) int{
		"created_at":        byAge(func(s share) timestamp { return s.CreatedAt }),
		"updated_at":        byAge(func(s share) timestamp { return s.UpdatedAt }),
		"id":                func(a, b share) int { return cmp.Compare(a.ID, b.ID) },
		"target_project_id": func(a, b share) int { return cmp.Compare(a.TargetProjectID, b.TargetProjectID) },
	},
}

func (c *call) linkedShare(s share) share {
	z := c.url("/v2/zones/" + s.ZoneID)
	s.Links = &links{Self: z + "/shares/" + s.ID, Zone: z}
	return s
}

func (c *call) listShares() (reply, error) {
	q, err := shareListing.query(c)
	if err != nil {
		return reply{}, err
	}
	var p page[share]
	err = c.view(func(v store.View) error {
		z, err := c.ownZone(v)
		if err != nil {
			return err
		}
		all, err := store.ObjectsOf[share](v, shareKind(z.ID))
		if err != nil {
			return err
		}
		shareListing.sortByAge(all)
		p, err = shareListing.cut(all, q)
		return err
	})
	return shareListing.reply(c, q, p, func(s share) any { return c.linkedShare(s) }), err
}

func (c *call) createShare() (reply, error) {
	in, err := c.input("shared_zone", "target_project_id")
	if err != nil {
		return reply{}, err
	}
	in.require("target_project_id")
	target := in.project("target_project_id")
	if in.err() != nil {
		return reply{}, in.err()
	}
	s := share{TargetProjectID: *target}
	err = c.commit(func(tx *publish.Tx) error {
		z, err := c.ownZone(tx.View)
		if err != nil {
			return err
		}
		s.resourceMeta, s.ZoneID, s.ProjectID = newMeta(tx), z.ID.String(), z.Project
		return putShare(tx, z, s)
	})
	if err != nil {
		return reply{}, err
	}
	s = c.linkedShare(s)
	return created(s, s.Links.Self), nil
}

func putShare(tx *publish.Tx, z zone.Zone, s share) error {
	if s.TargetProjectID == z.Project {
		return badRequest("Cannot share the zone with the zone owner.")
	}
	if sharedWith(tx.View, z.ID, s.TargetProjectID) {
		return duplicate("shared_zone", "Duplicate Shared Zone")
	}
	for _, key := range []func() (store.Kind, string){s.key, s.targetKey} {
		kind, id := key()
		if err := tx.PutObject(kind, id, s); err != nil {
			return err
		}
	}
	return nil
}

// share is the share of the path.
func (c *call) share(v store.View) (share, error) {
	var s share
	z, err := c.ownZone(v)
	if err != nil {
		return s, err
	}
	id, err := c.id("id")
	if err != nil {
		return s, err
	}
	if err := v.Object(shareKind(z.ID), id.String(), &s); err != nil {
		return s, notFound("shared_zone", "Shared Zone")
	}
	return s, nil
}

func (c *call) showShare() (reply, error) {
	var s share
	err := c.view(func(v store.View) (err error) {
		s, err = c.share(v)
		return err
	})
	return ok(c.linkedShare(s)), err
}

func (c *call) deleteShare() (reply, error) {
	err := c.commit(func(tx *publish.Tx) error {
		s, err := c.share(tx.View)
		if err != nil {
			return err
		}
		return dropShare(tx, s)
	})
	return noContent, err
}
