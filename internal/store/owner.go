package store

import (
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/zone"
)

// Two kinds of rows list the zones of a project: KindZoneOf lists them by name, and KindZoneCount holds their number.
// So listing the zones of one project and checking its quota cost the same, however many zones other projects have.
//
// A store of an older version has none of these rows. Init writes all of them, or none when the store takes no changes
// at that time. Until they are written, all zones are read.
//
// KindZoneIn lists the zones of a pool by name. Zones in the default pool are not listed, because nothing needs their
// list. So the rows are complete in a store of an older version too, which had no other pools.

// listed reports whether the rows of this file are complete.
func (v View) listed() bool { return v.r.Get(Meta, keyOwners) != nil }

// listZone adds a zone to the lists of its pool and of its project.
func (e *Edit) listZone(z zone.Zone) error {
	if err := e.listInPool(z); err != nil {
		return err
	}
	return e.listOwned(z)
}

// inOtherPool reports whether a zone is in another pool than the default pool. Overlays are in no pool.
func inOtherPool(z zone.Zone) bool { return z.Pool != zone.DefaultPool && z.Pool != uuid.Nil }

func (e *Edit) listInPool(z zone.Zone) error {
	if !inOtherPool(z) {
		return nil
	}
	return e.PutObject(KindZoneIn.Of(z.Pool.String()), string(zoneKey(z.Name)), z.ID)
}

func (e *Edit) unlistInPool(z zone.Zone) error {
	if !inOtherPool(z) {
		return nil
	}
	return e.delete(Objects, ObjectKey(KindZoneIn.Of(z.Pool.String()), string(zoneKey(z.Name))))
}

// MovePool changes the pool of a zone in the lists of zones. The caller writes the row of the zone itself.
func (e *Edit) MovePool(z zone.Zone, pool uuid.UUID) error {
	if err := e.unlistInPool(z); err != nil {
		return err
	}
	z.Pool = pool
	return e.listInPool(z)
}

// ZonesIn returns the IDs of at most the given number of zones in a pool, in canonical order of their names. It starts
// after a position, which is "" at the beginning, and returns the next position. It lists no zones of the default pool.
func (v View) ZonesIn(pool uuid.UUID, after string, most int) (ids []uuid.UUID, next string, err error) {
	err = v.EachObjectAfter(KindZoneIn.Of(pool.String()), after, func(name string, value []byte) (bool, error) {
		var id uuid.UUID
		if err := json.Unmarshal(value, &id); err != nil {
			return false, err
		}
		ids, next = append(ids, id), name
		return len(ids) < most, nil
	})
	return ids, next, err
}

// listOwned adds a zone to the list of its project.
func (e *Edit) listOwned(z zone.Zone) error {
	if !e.listed() {
		return nil
	}
	if err := e.PutObject(KindZoneOf.Of(z.Project), string(zoneKey(z.Name)), z.ID); err != nil {
		return err
	}
	return e.countZone(z.Project, 1)
}

// unlistZone removes a zone from the list of its project.
func (e *Edit) unlistZone(z zone.Zone) error {
	if !e.listed() {
		return nil
	}
	err := e.DeleteObject(KindZoneOf.Of(z.Project), string(zoneKey(z.Name)))
	if errors.Is(err, ErrNotFound) {
		return nil // a zone must always be deletable, even when its row here is missing
	}
	if err != nil {
		return err
	}
	return e.countZone(z.Project, -1)
}

// MoveZone changes the owner of a zone in the lists of zones. The caller writes the row of the zone itself.
func (e *Edit) MoveZone(z zone.Zone, project string) error {
	if err := e.unlistZone(z); err != nil {
		return err
	}
	z.Project = project
	return e.listOwned(z)
}

func (e *Edit) countZone(project string, by int) error {
	n, err := e.CountZones(project)
	if err != nil {
		return err
	}
	if n += by; n <= 0 {
		return e.delete(Objects, ObjectKey(KindZoneCount, project))
	}
	return e.PutObject(KindZoneCount, project, n)
}

// CountZones returns how many zones a project has.
func (v View) CountZones(project string) (n int, err error) {
	if !v.listed() {
		err = v.ZonesOf(project, dnsname.Root, func(zone.Zone) (bool, error) { n++; return true, nil })
		return n, err
	}
	err = v.Object(KindZoneCount, project, &n)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return n, err
}

// ZonesOf calls fn for the zones of a project at or below a name, in canonical order of their names, until fn returns
// false or an error. It reads no other zones.
func (v View) ZonesOf(project string, below dnsname.Name, fn func(zone.Zone) (bool, error)) error {
	if !v.listed() {
		return v.ZonesBelow(below, func(z zone.Zone) (bool, error) {
			if z.Project != project {
				return true, nil
			}
			return fn(z)
		})
	}
	var err error
	v.r.Scan(Objects, ObjectKey(KindZoneOf.Of(project), string(below.AppendKey(nil))), nil, func(_, value []byte) bool {
		var id uuid.UUID
		if err = json.Unmarshal(value, &id); err != nil {
			return false
		}
		var z zone.Zone
		if z, err = v.Zone(id); err != nil {
			return false
		}
		var more bool
		more, err = fn(z)
		return more && err == nil
	})
	return err
}

// indexOwners writes the rows of this file for a store of an older version. When the store takes no changes now,
// indexOwners leaves it as it is: the store can serve queries without the rows, and the next start writes them.
func indexOwners(s Store) error {
	missing := false
	err := s.View(func(r Reader) error {
		missing = r.Get(Meta, keyOwners) == nil
		return nil
	})
	if err != nil || !missing {
		return err
	}
	err = s.Update(func(w Writer) error {
		e := NewEdit(w)
		e.Bulk()
		counts := map[string]int{}
		err := e.Zones(func(z zone.Zone) (bool, error) {
			counts[z.Project]++
			return true, e.PutObject(KindZoneOf.Of(z.Project), string(zoneKey(z.Name)), z.ID)
		})
		for project, n := range counts {
			if err == nil {
				err = e.PutObject(KindZoneCount, project, n)
			}
		}
		if err != nil {
			return err
		}
		return w.Put(Meta, keyOwners, []byte{1})
	})
	if errors.Is(err, ErrUnavailable) {
		return nil
	}
	return err
}
