package designate

import (
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// errNoZone returns the error for a zone that does not exist or that the caller may not see. It is the same error, so
// that a tenant cannot find out which zones others have.
func errNoZone() error { return notFound("zone", "Zone") }

// zone returns the zone of the path, if the caller may see it and the route supports the kind of the zone.
func (c *call) zone(v store.View) (zone.Zone, error) {
	id, err := c.id("zone_id")
	if err != nil {
		return zone.Zone{}, err
	}
	z, err := c.zoneByID(v, id)
	if err == nil && z.Kind == zone.Secondary && c.route.need&needPrimary != 0 { // here, so that no handler can forget it
		return z, errSecondary()
	}
	return z, err
}

func (c *call) zoneByID(v store.View, id uuid.UUID) (zone.Zone, error) {
	z, err := v.Zone(id)
	if errors.Is(err, store.ErrNotFound) {
		return z, errNoZone()
	}
	if err == nil && !c.owns(z) && !sharedWith(v, id, c.scope.project) {
		return z, errNoZone()
	}
	return z, err
}

// owns reports whether the caller's project owns a zone, or the caller acts for every project. Overlays belong to no
// project and are hidden: their content is derived from the rules of applications.
func (c *call) owns(z zone.Zone) bool {
	return z.Kind != zone.Overlay && (c.scope.all || z.Project == c.scope.project)
}

// ownZone returns the zone of the path for operations that only its owner may use. A project that the zone is shared
// with gets 403, not 404: it knows the zone.
func (c *call) ownZone(v store.View) (zone.Zone, error) {
	return c.mustOwn(c.zone(v))
}

// ownZoneByID is ownZone for a zone that is not in the path.
func (c *call) ownZoneByID(v store.View, id uuid.UUID) (zone.Zone, error) {
	return c.mustOwn(c.zoneByID(v, id))
}

func (c *call) mustOwn(z zone.Zone, err error) (zone.Zone, error) {
	if err == nil && !c.owns(z) {
		return z, forbidden("The zone is shared with this project; only its owner may do this.")
	}
	return z, err
}

// ownZoneShared returns the zone of the path like ownZone, and whether it is shared.
func (c *call) ownZoneShared(v store.View) (zone.Zone, bool, error) {
	z, err := c.ownZone(v)
	if err != nil {
		return z, false, err
	}
	shared, err := isShared(v, z.ID)
	return z, shared, err
}

// ownZoneMatched is ownZoneShared for a change: it returns 412 when If-Match does not match.
func (c *call) ownZoneMatched(v store.View) (zone.Zone, bool, error) {
	z, shared, err := c.ownZoneShared(v)
	if err == nil {
		err = c.ifMatch(func() any { return zoneOnWire(z, shared) })
	}
	return z, shared, err
}

// ownZones returns the zones of the caller's project, sorted by name, or those of every project if the caller acts for
// all of them.
func (c *call) ownZones(v store.View) (out []zone.Zone, err error) {
	add := func(z zone.Zone) (bool, error) {
		if z.Kind != zone.Overlay {
			out = append(out, z)
		}
		return true, nil
	}
	if c.scope.all {
		err := v.Zones(add)
		return out, err
	}
	n, err := v.CountZones(c.scope.project)
	if err == nil {
		err = c.need(int64(n) * keptMemory)
	}
	if err != nil {
		return nil, err
	}
	err = v.ZonesOf(c.scope.project, dnsname.Root, add)
	return out, err
}

// visibleZones returns the zones that the caller may see, sorted by name: its own, and those that are shared with it.
func (c *call) visibleZones(v store.View) ([]zone.Zone, error) {
	out, err := c.ownZones(v)
	if err != nil || c.scope.all {
		return out, err
	}
	own := len(out)
	err = v.EachObject(sharedWithKind(c.scope.project), func(id string, _ []byte) (bool, error) {
		zoneID, err := uuid.Parse(id)
		if err != nil {
			return false, err
		}
		z, err := v.Zone(zoneID)
		if err != nil {
			return false, err
		}
		out = append(out, z)
		return true, c.need(int64(len(out)) * keptMemory)
	})
	if len(out) > own {
		slices.SortFunc(out, func(a, b zone.Zone) int { return a.Name.Compare(b.Name) })
	}
	return out, err
}
