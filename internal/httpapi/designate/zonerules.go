package designate

import (
	"net/http"
	"regexp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// mayCreate asks everything that stands outside a new zone: quota, names that are set aside, and the zones around it.
func (c *call) mayCreate(v store.View, z zone.Zone) error {
	for _, rule := range []func(store.View, zone.Zone) error{
		c.zoneQuota, checkTLDs, checkBlacklists, c.checkParent, checkChildren,
	} {
		if err := rule(v, z); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) zoneQuota(v store.View, z zone.Zone) error {
	quotas, err := c.quotasOf(v, z.Project)
	if err != nil || quotas.Zones < 0 {
		return err
	}
	n := 0
	err = v.Zones(func(o zone.Zone) (bool, error) {
		if o.Project == z.Project {
			n++
		}
		return n <= quotas.Zones, nil
	})
	if err != nil {
		return err
	}
	return within("zones", n+1, quotas.Zones)
}

// checkTLDs lets a zone stand below a configured top-level domain only, if there are any.
func checkTLDs(v store.View, z zone.Zone) error {
	tlds, err := store.ObjectsOf[TLD](v, store.KindTLD)
	if err != nil || len(tlds) == 0 {
		return err
	}
	below := false
	for _, t := range tlds {
		tld, err := dnsname.Parse(t.Name + ".") // names, because a label of a zone file may hold a dot
		if err != nil {
			return err
		}
		if z.Name == tld {
			return refuse("invalid_zone_name", "Zone name cannot be the same as a TLD")
		}
		below = below || z.Name.IsIn(tld)
	}
	if !below {
		return refuse("invalid_zone_name", "Invalid TLD: %s is below none of those that are configured", z.Name)
	}
	return nil
}

// checkBlacklists matches without case, as names do.
func checkBlacklists(v store.View, z zone.Zone) error {
	lists, err := store.ObjectsOf[Blacklist](v, store.KindBlacklist)
	if err != nil {
		return err
	}
	for _, b := range lists {
		if re, err := regexp.Compile("(?i)" + b.Pattern); err == nil && re.MatchString(z.Name.String()) {
			return refuse("invalid_zone_name", "Blacklisted zone name")
		}
	}
	return nil
}

// checkParent refuses a zone inside another project's, unless that one is shared with this project, and the new zone
// takes nothing over that the owner has in it.
func (c *call) checkParent(v store.View, z zone.Zone) error {
	for n := z.Name.Parent(); !n.IsZero(); n = n.Parent() {
		parent, err := v.ZoneByName(n)
		if err != nil || parent.Kind == zone.Overlay {
			continue
		}
		switch {
		case parent.Project == z.Project:
			return nil
		case sharedWith(v, parent.ID, z.Project):
			return hidesNothing(v, parent, z)
		}
		return illegalChild("Unable to create subzone in another project's zone")
	}
	return nil
}

func illegalChild(message string) *fault {
	return &fault{status: http.StatusForbidden, kind: "illegal_child", message: message}
}

// hidesNothing refuses a zone in the place of records of its parent, but for those that delegate it.
func hidesNothing(v store.View, parent, z zone.Zone) error {
	return v.RecordSetsBelow(parent.ID, z.Name, func(s zone.RecordSet) (bool, error) {
		if s.Name == z.Name && (s.Type == rr.TypeNS || s.Type == rr.TypeDS) {
			return true, nil
		}
		return false, illegalChild("Unable to create a subzone that would hide records of another project's zone")
	})
}

// checkChildren refuses a zone around another project's. What the new zone hides of an outer zone's records stays
// stored there and is answered again when the new zone goes: the most specific zone answers.
func checkChildren(v store.View, z zone.Zone) error {
	return v.ZonesBelow(z.Name, func(o zone.Zone) (bool, error) {
		if o.Project != z.Project && o.Name != z.Name && o.Kind != zone.Overlay {
			return false, &fault{status: http.StatusForbidden, kind: "illegal_parent",
				message: "Unable to create zone because another project owns a subzone of it"}
		}
		return true, nil
	})
}

// mayDelete refuses to delete a zone that others stand on.
func (c *call) mayDelete(v store.View, z zone.Zone, shared bool) error {
	err := v.ZonesBelow(z.Name, func(o zone.Zone) (bool, error) {
		if o.ID == z.ID || o.Project != z.Project {
			return true, nil
		}
		return false, refuse("zone_has_sub_zone", "Please delete any subzones before deleting this zone")
	})
	if err == nil && shared && !c.scope.deleteShares {
		err = refuse("zone_is_shared", "Cannot delete a shared zone; remove its shares, or send X-Designate-Delete-Shares")
	}
	return err
}

// childZone is the zone below z that a name belongs in, if there is one.
func childZone(v store.View, z zone.Zone, n dnsname.Name) (zone.Zone, bool) {
	for ; n != z.Name && !n.IsZero(); n = n.Parent() {
		if child, err := v.ZoneByName(n); err == nil && child.Kind != zone.Overlay {
			return child, true
		}
	}
	return zone.Zone{}, false
}
