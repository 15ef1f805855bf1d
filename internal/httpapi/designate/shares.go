package designate

import (
	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// share lets another project see a zone and change its record sets. It is stored twice, under the zone and under the
// other project, so that the shares of either can be read directly.
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

var shareListing = newListing("shared_zones", map[string]func(share) string{
	"target_project_id": func(s share) string { return s.TargetProjectID },
}, "target_project_id")

func (c *call) linkedShare(s share) share {
	z := c.url("/v2/zones/" + s.ZoneID)
	s.Links = &links{Self: z + "/shares/" + s.ID, Zone: z}
	return s
}

func (c *call) listShares() (reply, error) {
	return shareListing.list(c, func(v store.View) ([]share, error) {
		z, err := c.ownZone(v)
		if err != nil {
			return nil, err
		}
		return store.ObjectsOf[share](v, shareKind(z.ID))
	}, (*call).linkedShare)
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
		if err := c.checkShares(tx, z, *target); err != nil {
			return err
		}
		s.resourceMeta, s.ZoneID, s.ProjectID = newMeta(tx), z.ID.String(), z.Project
		return putShare(tx, z, s)
	})
	s = c.linkedShare(s)
	return created(s, s.Links.Self), err
}

// maxShares bounds the shares of a zone: one commit deletes all of them when the zone is deleted or gets a new owner.
// maxZonesShared bounds the zones that one project shares with another one, which is not asked: its lists of zones read
// them. There is no bound for all projects together, because a few could then use it up.
const (
	maxShares      = 1000
	maxZonesShared = 100
)

// checkShares refuses a share when the zone's project shares maxZonesShared zones with the target already.
// Administrators may share more.
func (c *call) checkShares(tx *publish.Tx, z zone.Zone, target string) error {
	if c.scope.caller.IsAdmin() {
		return nil
	}
	have, err := store.ObjectsOf[share](tx.View, sharedWithKind(target))
	if err != nil {
		return err
	}
	n := 0
	for _, s := range have {
		if s.ProjectID == z.Project {
			n++
		}
	}
	if n >= maxZonesShared {
		return &publish.QuotaError{Resource: "zones that are shared with one project", N: n + 1, Most: maxZonesShared}
	}
	return nil
}

// putShare stores a share. The errors for the owner's own project and for a second share are those of Designate.
func putShare(tx *publish.Tx, z zone.Zone, s share) error {
	if s.TargetProjectID == z.Project {
		return badRequest("Cannot share the zone with the zone owner.")
	}
	if sharedWith(tx.View, z.ID, s.TargetProjectID) {
		return duplicate("shared_zone", "SharedZone")
	}
	n := 0
	err := tx.EachObject(shareKind(z.ID), func(string, []byte) (bool, error) { n++; return true, nil })
	if err != nil {
		return err
	}
	if n >= maxShares {
		return &publish.QuotaError{Resource: "shares of a zone", N: n + 1, Most: maxShares}
	}
	for _, key := range []func() (store.Kind, string){s.key, s.targetKey} {
		kind, id := key()
		if err := tx.PutObject(kind, id, s); err != nil {
			return err
		}
	}
	return nil
}

// share returns the share of the path. Only the owner of the zone may see it.
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
		return s, notFound("shared_zone", "SharedZone")
	}
	return s, nil
}

func (c *call) showShare() (reply, error) {
	s, err := viewed(c, c.share)
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
