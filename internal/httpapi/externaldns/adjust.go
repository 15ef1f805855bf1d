package externaldns

import (
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// adjust returns the endpoints that can be served, with their targets in the form of records. external-dns asks before
// it plans its changes, so endpoints that are left out here never become changes.
func (c *call) adjust() error {
	in := list{minTTL: c.zones.MinTTL()}
	if err := c.decode(&in); err != nil {
		return err
	}
	kept, err := c.keep(in)
	if err != nil {
		return err
	}
	out := make([]endpoint, 0, len(kept))
	for _, k := range kept {
		e, stored := k.endpoint, endpointOf(k.set)
		e.Targets, e.RecordTTL, e.ProviderSpecific = stored.Targets, stored.RecordTTL, stored.ProviderSpecific
		out = append(out, e)
	}
	c.write(out)
	return nil
}

// keep returns the endpoints that can be served, with their zones, and reports the others.
func (c *call) keep(in list) (kept []*item, err error) {
	var d drops
	err = c.zones.View(func(v store.View) error {
		d, kept = in.drops.joined(drops{}), nil
		own, err := c.ownZones(v)
		if err != nil {
			return err
		}
		for _, k := range in.items {
			if why := own.setZone(k); why != nil {
				d.add(k.endpoint, why)
				continue
			}
			kept = append(kept, k)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept = withoutBeside(kept, &d)
	c.report(d)
	return kept, nil
}

// ownZones are the zones whose record sets the caller may change.
type ownZones struct {
	v     store.View
	zones map[dnsname.Name]zone.Zone
}

func (c *call) ownZones(v store.View) (ownZones, error) {
	own := ownZones{v, map[dnsname.Name]zone.Zone{}}
	zones, err := c.primaries(v)
	for _, z := range zones {
		own.zones[z.Name] = z
	}
	return own, err
}

// setZone sets the zone of the record set of an endpoint.
func (o ownZones) setZone(k *item) *refusal {
	z, ok := o.of(k.set.Name, k.set.Type)
	switch {
	case !ok:
		return refuse("zone", "no zone of this project has the name")
	case k.set.Type == rr.TypeCNAME && k.set.Name == z.Name:
		return refuse("apex", "a CNAME cannot exist at the apex of zone %s: "+
			"annotate the source with external-dns.alpha.kubernetes.io/alias: \"true\"", z.Name)
	}
	k.set.Zone = z.ID
	return nil
}

// of returns the zone that holds the record sets of a name and type. It is the most specific zone of this server, which
// may belong to another project. NS and DS at the name of a zone belong to the zone above it.
func (o ownZones) of(n dnsname.Name, t rr.Type) (zone.Zone, bool) {
	if t == rr.TypeNS || t == rr.TypeDS {
		n = n.Parent()
	}
	for ; !n.IsZero(); n = n.Parent() {
		if z, ok := o.zones[n]; ok {
			return z, true
		}
		if z, err := o.v.ZoneByName(n); err == nil && z.Kind != zone.Overlay {
			return zone.Zone{}, false
		}
	}
	return zone.Zone{}, false
}

// withoutBeside removes sets that cannot be at one name with other sets of the list: ownership records beside a CNAME,
// a CNAME beside any other set, and an ALIAS beside addresses.
//
// external-dns v0.14 writes an ownership record at the name of a CNAME, and a second one at a name of its own. The
// second one is enough.
func withoutBeside(list []*item, d *drops) []*item {
	type types struct{ cname, alias, address, other bool }
	at := map[dnsname.Name]types{}
	for _, k := range list {
		t := at[k.set.Name]
		switch {
		case k.set.Type == rr.TypeCNAME:
			t.cname = true
		case k.set.Type == rr.TypeALIAS:
			t.alias, t.other = true, true
		case k.set.Type == rr.TypeA || k.set.Type == rr.TypeAAAA:
			t.address, t.other = true, true
		case !isOwnership(k.set):
			t.other = true
		}
		at[k.set.Name] = t
	}
	kept := list[:0]
	for _, k := range list {
		t := at[k.set.Name]
		switch {
		case k.set.Type == rr.TypeCNAME && t.other:
			d.add(k.endpoint, refuse("beside", "a CNAME cannot be beside other records, and the same request has some"))
		case k.set.Type == rr.TypeALIAS && t.address:
			d.add(k.endpoint, refuse("beside", "an alias cannot be beside addresses, and the same request has some"))
		case t.cname && !t.other && isOwnership(k.set):
			d.add(k.endpoint, refuse("beside", "an ownership record cannot be beside a CNAME: set --txt-prefix"))
		default:
			kept = append(kept, k)
		}
	}
	return kept
}

// report logs and counts the endpoints that were left out.
func (c *call) report(d drops) {
	for reason, n := range d.byReason {
		c.api.dropped.WithLabelValues(reason).Add(float64(n))
	}
	id := httpapi.RequestID(c.r.Context())
	for _, x := range d.first {
		c.api.Log.Warn("external-dns endpoint left out", "name", clip(x.name), "type", clip(x.typ),
			"reason", clip(x.why.detail), "request_id", id)
	}
	if more := d.n - len(d.first); more > 0 {
		c.api.Log.Warn("more external-dns endpoints left out", "count", more, "request_id", id)
	}
}

// clip returns the part of a text that is worth a log line.
func clip(s string) string { return s[:min(len(s), 256)] }
