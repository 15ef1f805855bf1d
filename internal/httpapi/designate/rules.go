package designate

import (
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Rules applies the rules of this API to a request of another API for zones: which zones the caller sees and may
// change, which names it may take, which masters it may name, and what a deletion removes. They are here and not in a
// lower layer, because they read the objects of this API: shares, transfer requests, TLDs, blacklists and keys.
type Rules struct{ call *call }

// Rules returns the rules for the caller of a request. It reads the same headers as this API, and returns an error when
// they ask for rights that the caller does not have.
func (a *API) Rules(r *http.Request) (Rules, error) {
	a.init()
	c := &call{api: a, settings: &a.Settings, r: r}
	return Rules{c}, c.readScope()
}

// RuleError returns the HTTP status and the message of an error of Rules.
func RuleError(err error) (status int, message string, ok bool) {
	f, ok := errors.AsType[*fault](err)
	if !ok {
		return 0, "", false
	}
	return f.status, f.message, true
}

// Admin reports whether the caller is an administrator.
func (r Rules) Admin() bool { return r.call.scope.caller.IsAdmin() }

// CanWrite reports whether the caller may change anything.
func (r Rules) CanWrite() bool { return r.call.scope.caller.CanWrite() }

// Lifted returns an edit without the quotas of records if the caller is an administrator.
func (r Rules) Lifted(fn func(*publish.Tx) error) func(*publish.Tx) error { return r.call.lifted(fn) }

// Project returns the project that the caller acts for.
func (r Rules) Project() string { return r.call.scope.project }

// Actor returns the caller in the form of the journal.
func (r Rules) Actor(api string) store.Actor {
	actor := r.call.actor()
	actor.API = api
	return actor
}

// Zone returns the zone with a name if the caller sees it, and store.ErrNotFound otherwise.
func (r Rules) Zone(v store.View, n dnsname.Name) (zone.Zone, error) {
	z, err := v.ZoneByName(n)
	if err == nil && !r.call.owns(z) && !sharedWith(v, z.ID, r.call.scope.project) || z.Kind == zone.Overlay {
		return zone.Zone{}, store.ErrNotFound
	}
	return z, err
}

// OwnZone returns the zone with a name for a change that only its owner may make.
func (r Rules) OwnZone(v store.View, n dnsname.Name) (zone.Zone, error) {
	z, err := r.Zone(v, n)
	if err == nil && !r.call.owns(z) {
		err = forbidden("The zone is shared with this project; only its owner may do this.")
	}
	return z, err
}

// Zones returns the zones that the caller sees, sorted by name. It calls httpapi.Need.
func (r Rules) Zones(v store.View) ([]zone.Zone, error) { return r.call.visibleZones(v) }

// ZoneQuotas returns the quotas of a zone of the caller's project: ZoneRecords and ZoneBytes, which have no limit for
// administrators. Readers of large bodies ask first: a short line of a zone file can produce 65,536 records.
func (r Rules) ZoneQuotas() (publish.Quotas, error) { return r.call.zoneQuotas() }

// NewZone returns a zone of the caller's project with the defaults of this server.
func (r Rules) NewZone(n dnsname.Name, kind zone.Kind) zone.Zone {
	z := zone.Zone{Name: n, Kind: kind, TTL: r.call.settings.DefaultTTL, Project: r.call.scope.project}
	if kind == zone.Primary {
		z.Email = "hostmaster@" + trimDot(n.String())
	}
	return z
}

// SelectPool gives a new zone its pool, and returns the SOA and NS sets of a primary zone.
func (r Rules) SelectPool(v store.View, z *zone.Zone) ([]zone.RecordSet, error) {
	p, err := r.call.schedule(v, *z)
	if err != nil {
		return nil, err
	}
	z.Pool = uuid.MustParse(p.ID)
	if z.Kind != zone.Primary {
		return nil, nil
	}
	return firstSets(*z, p.servers()), nil
}

// CheckCreate checks a new zone against the reserved names and the zones above and below it.
func (r Rules) CheckCreate(v store.View, z zone.Zone) error {
	if err := checkNewZone(z, r.call.settings); err != nil {
		return err
	}
	return r.call.checkCreate(v, z)
}

// CheckMasters checks the masters of a SECONDARY zone. SetMasters stores them with their namer.
func (r Rules) CheckMasters(masters []string) error {
	if len(masters) > maxMasters {
		return badRequest("a zone has at most %d masters", maxMasters)
	}
	return r.call.checkMasters(masters)
}

// SetMasters sets the masters of a zone, which the caller names.
func (r Rules) SetMasters(z *zone.Zone, masters []string) {
	z.Masters, z.MastersBy = masters, r.call.namer()
}

// CheckLocation checks that a name belongs to the zone, and not to a zone below it.
func (r Rules) CheckLocation(v store.View, z zone.Zone, n dnsname.Name, t rr.Type) error {
	return checkLocation(v, z, n, t)
}

// CheckTTL checks a TTL against the smallest one of this server.
func (r Rules) CheckTTL(ttl uint32) error {
	if ttl < r.call.settings.MinTTL {
		return invalidTTL(r.call.settings)
	}
	return nil
}

// DropFlattened removes the A or AAAA set that an ALIAS left at the name of a new set.
func (r Rules) DropFlattened(tx *publish.Tx, s zone.RecordSet) error { return dropFlattened(tx, s) }

// RemoveZone deletes a zone with all that belongs to it, if nothing forbids that.
func (r Rules) RemoveZone(tx *publish.Tx, z zone.Zone) error {
	shared, err := isShared(tx.View, z.ID)
	if err != nil {
		return err
	}
	if err := r.call.checkDelete(tx.View, z, shared); err != nil {
		return err
	}
	return removeZone(tx, z.ID)
}

// Tag returns the entity tag of a zone in this API. It changes with the serial.
func (r Rules) Tag(v store.View, z zone.Zone) (string, error) {
	shared, err := isShared(v, z.ID)
	return tagOf(zoneOnWire(z, shared)), err
}

// SameTag reports whether two entity tags stand for the same state of a zone. They may have further parts after a
// hyphen.
func SameTag(a, b string) bool { return sameWritten(a, b) }

// Key is a TSIG key of the server.
type Key struct {
	ID        uuid.UUID
	Name      dnsname.Name
	Algorithm string // in lower case, without a final dot
	Secret    string // base64
}

// Keys returns the TSIG keys of the server.
func (r Rules) Keys(v store.View) (out []Key, err error) {
	rows, err := store.ObjectsOf[tsigKey](v, store.KindTSIGKey)
	for _, row := range rows {
		name, err := dnsname.Parse(row.Name)
		id, err2 := uuid.Parse(row.ID)
		if err == nil && err2 == nil {
			out = append(out, Key{id, name, row.Algorithm, row.Secret})
		}
	}
	return out, err
}

// PutKey creates a TSIG key for all zones, or changes the key with its ID.
func (r Rules) PutKey(tx *publish.Tx, k Key) error {
	row := tsigKey{resourceMeta: newMeta(tx), Scope: "POOL", ResourceID: r.call.settings.defaultPool().ID}
	if k.ID != uuid.Nil {
		if err := tx.Object(store.KindTSIGKey, k.ID.String(), &row); err != nil {
			return err
		}
		row.UpdatedAt = timestamp(tx.Now())
	}
	row.Name, row.Algorithm, row.Secret = trimDot(k.Name.String()), k.Algorithm, k.Secret
	for _, f := range tsigKeyFields {
		if s := *f.of(&row); len(s) > f.most || !f.fits(s) {
			return &fault{status: http.StatusBadRequest, kind: "invalid_object",
				message: "'" + short([]byte(s)) + "' is not a valid " + f.key}
		}
	}
	return tx.PutObject(store.KindTSIGKey, row.ID, row)
}

// DeleteKey deletes a TSIG key.
func (r Rules) DeleteKey(tx *publish.Tx, id uuid.UUID) error {
	return tx.DeleteObject(store.KindTSIGKey, id.String())
}
