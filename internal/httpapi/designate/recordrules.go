package designate

import (
	"errors"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// mayAdd asks whether a new set may stand where it is put. What may stand beside it, the commit asks.
func (c *call) mayAdd(v store.View, z zone.Zone, s zone.RecordSet) error {
	if s.Type == rr.TypeSOA {
		return badRequest("Creating a SOA recordset is not allowed")
	}
	if s.Type == rr.TypeNS && s.Name == z.Name && !c.scope.editManaged {
		if _, err := v.RecordSet(z.ID, s.Name, s.Type); err != nil {
			return badRequest("Creating NS records at the apex needs X-Designate-Edit-Managed-Records")
		}
	}
	if err := mayStand(v, z, s.Name, s.Type); err != nil {
		return err
	}
	return c.mayHold(s)
}

// mayStand asks whether a name belongs into the zone, and not into one below it. NS and DS at the name of a zone below
// are the delegation to it, which is the outer zone's to say.
func mayStand(v store.View, z zone.Zone, n dnsname.Name, t rr.Type) error {
	if !n.IsIn(z.Name) {
		return refuse("invalid_recordset_location", "RecordSet is not contained within its zone %s", z.Name)
	}
	child, found := childZone(v, z, n)
	if !found || n == child.Name && (t == rr.TypeNS || t == rr.TypeDS) {
		return nil
	}
	return refuse("invalid_recordset_location", "RecordSet belongs in a child zone: %s", child.Name)
}

// mayHold are the rules about a set's own values.
func (c *call) mayHold(s zone.RecordSet) error {
	if s.Type == rr.TypeCNAME && len(s.Data) > 1 {
		return badRequest("CNAME recordsets may not have more than 1 record")
	}
	if s.Type == rr.TypeALIAS && len(s.Data) != 1 {
		return badRequest("ALIAS recordsets have exactly 1 record")
	}
	if s.TTL != nil && *s.TTL < c.settings.MinTTL {
		return invalidTTL(c.settings)
	}
	return nil
}

// mayChange asks whether a set may be changed or deleted at all.
func (c *call) mayChange(s zone.RecordSet) error {
	switch {
	case s.Type == rr.TypeSOA:
		return badRequest("The SOA record set is managed; change the zone's email or ttl instead")
	case s.Managed && !c.scope.editManaged:
		return badRequest("Managed records may not be updated or deleted without X-Designate-Edit-Managed-Records")
	}
	return nil
}

// growth is by how much an edit makes a zone larger.
type growth struct{ sets, records int }

// recordQuota asks about the sizes that an edit leaves behind.
func (c *call) recordQuota(v store.View, z zone.Zone, s zone.RecordSet, g growth) error {
	q, err := c.quotasOf(v, z.Project)
	if err != nil {
		return err
	}
	if err := within("recordset_records", len(s.Data), q.RecordsetRecords); err != nil {
		return err
	}
	if g.sets > 0 {
		if err := within("zone_recordsets", z.Sets+g.sets, q.ZoneRecordsets); err != nil {
			return err
		}
	}
	if g.records > 0 {
		return within("zone_records", z.Records+g.records, q.ZoneRecords)
	}
	return nil
}

func setExists(s zone.RecordSet, err error) error {
	if errors.Is(err, store.ErrExists) {
		return duplicate("recordset", "Duplicate RecordSet: %s %s exists", s.Name, s.Type)
	}
	return err
}
