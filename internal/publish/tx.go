package publish

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Tx is one edit: it reads the newest state and changes it. Either all its writes are kept or none. It is valid until
// the function that it was passed to returns.
//
// The methods of Tx are the only writes that an API can make. Each of them steps the serial, writes the journal and
// changes the snapshot as needed. The rows themselves are in an unexported field.
type Tx struct {
	store.View
	edit   *store.Edit
	p      *Publisher
	actor  store.Actor
	now    time.Time
	note   string
	group  uint64 // number of the group
	commit uint64 // number in the commit log; 0 until it is needed

	lifted      bool // quotas of records do not apply
	liftedZones bool // the quota of zones does not apply

	zones   map[uuid.UUID]*zoneEdit
	order   []*zoneEdit // in the order in which the edit first touched them
	changes []store.Change
	objects []store.Kind // kinds of the objects that the edit wrote
	onDone  []func(committed bool)
}

// zoneEdit collects the changes of a Tx to one zone.
type zoneEdit struct {
	zone    zone.Zone
	before  zone.Zone // the zone before the edit; zero for a new zone
	created bool
	deleted bool
	reload  bool        // too many sets changed: load the whole zone
	nodes   *zone.Nodes // with reload: nodes read inside the transaction; nil means read them from the store
	touched bool        // the row of the zone itself changed
	sets    []store.SetChange
	changed map[uuid.UUID]int     // index in sets of each set's change; nil while there are few
	names   map[dnsname.Name]bool // names whose sets must be checked
	served  []rr.Set              // sets that change in answers; a set without data is removed
	count   int                   // number of changed sets that are not in sets
	largest int                   // number of records of the largest set that got more records
	dropped map[store.SetRef]int  // number of records of the sets that the edit has deleted
	serial  *uint32               // serial that the caller has set; nil: the next one
	row     int                   // size of the change in the journal; 0 until it is written

	unseen       []store.SetChange // changes that Derive has not seen yet; empty without Derive
	unseenWhole  bool
	derives      bool // Options.Derive is set
	deletionSeen bool // Derive has seen that the zone was deleted
}

// Now returns the time of this edit, to the microsecond.
func (tx *Tx) Now() time.Time { return tx.now }

// Actor returns the client that makes this edit.
func (tx *Tx) Actor() store.Actor { return tx.actor }

// Note sets the text that the history shows for this edit.
func (tx *Tx) Note(format string, a ...any) { tx.note = fmt.Sprintf(format, a...) }

// OnDone registers fn to be called with the outcome of this edit: true when the edit is durable, false when nothing of
// it was kept. A durable edit is served before fn runs, with one exception: when another row of the zone is damaged on
// the disk, the zone is served as it was, Commit returns a store.DamagedError, and the outcome is true.
//
// The committer calls the functions before Commit returns, in the order of commits and then of registration. So fn must
// be quick and must not commit.
func (tx *Tx) OnDone(fn func(committed bool)) { tx.onDone = append(tx.onDone, fn) }

func (tx *Tx) changed() bool { return len(tx.objects) > 0 || len(tx.order) > 0 }

// PutObject writes an object as JSON.
func (tx *Tx) PutObject(kind store.Kind, id string, value any) error {
	tx.wrote(kind)
	return tx.edit.PutObject(kind, id, value)
}

// wrote records that the edit wrote objects of a kind.
func (tx *Tx) wrote(kind store.Kind) {
	if !slices.Contains(tx.objects, kind) {
		tx.objects = append(tx.objects, kind)
	}
}

// DeleteObject removes an object, or returns store.ErrNotFound.
func (tx *Tx) DeleteObject(kind store.Kind, id string) error {
	tx.wrote(kind)
	return tx.edit.DeleteObject(kind, id)
}

// zone returns the zoneEdit of a zone, and creates it at the first call.
func (tx *Tx) zone(id uuid.UUID) (*zoneEdit, error) {
	if z := tx.zones[id]; z != nil {
		if z.deleted {
			return nil, fmt.Errorf("zone %s: %w", id, store.ErrNotFound)
		}
		return z, nil
	}
	z, err := tx.Zone(id)
	if err != nil {
		return nil, err
	}
	return tx.begin(&zoneEdit{zone: z, before: z}), nil
}

func (tx *Tx) begin(z *zoneEdit) *zoneEdit {
	z.names, z.derives = map[dnsname.Name]bool{}, tx.p.opts.Derive != nil
	tx.zones[z.zone.ID] = z
	tx.order = append(tx.order, z)
	return z
}

// After stores the zone as this edit leaves it, with its new serial, in left when the edit is committed. A caller that
// returns the zone to its client need not read it again, and does not see later changes of other clients.
func (tx *Tx) After(id uuid.UUID, left *zone.Zone) error {
	e, err := tx.zone(id)
	if err != nil {
		return err
	}
	tx.OnDone(func(committed bool) {
		if committed {
			*left = e.zone
		}
	})
	return nil
}

// CreateZone creates a zone with its first record sets, which must include its SOA and NS. CreateZone sets the ID,
// times and version. It sets the serial unless z has one: a zone that is exported and imported again is the same file.
// A zone of this name must not exist.
func (tx *Tx) CreateZone(z zone.Zone, sets ...zone.RecordSet) (zone.Zone, error) {
	if _, err := tx.ZoneByName(z.Name); err == nil {
		return z, fmt.Errorf("zone %s: %w", z.Name, store.ErrExists)
	} else if !errors.Is(err, store.ErrNotFound) {
		return z, err
	}
	if z.ID == uuid.Nil {
		z.ID = uuid.New()
	}
	z.Created, z.Updated, z.Version = tx.now, time.Time{}, 1
	z.Sets, z.Records, z.Bytes, z.Changes, z.ChangeBytes = 0, 0, 0, 0, 0
	e := tx.begin(&zoneEdit{zone: z, created: true, reload: true})
	if err := tx.edit.PutZone(e.zone); err != nil {
		return z, err
	}
	for _, s := range sets {
		s.Zone = z.ID
		if _, err := tx.CreateSet(s); err != nil {
			return z, err
		}
	}
	if err := tx.finishZone(e); err != nil { // now, so that the caller gets the serial
		return z, err
	}
	return e.zone, nil
}

// Overlay returns the overlay zone of this name, and creates it when there is none. When a zone of another kind has the
// name, it returns store.ErrExists.
func (tx *Tx) Overlay(apex dnsname.Name) (zone.Zone, error) {
	z, err := tx.ZoneByName(apex)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return tx.CreateZone(zone.Zone{Name: apex, Kind: zone.Overlay})
	case err == nil && z.Kind != zone.Overlay:
		return z, fmt.Errorf("zone %s of type %s: %w", apex, z.Kind, store.ErrExists)
	}
	return z, err
}

// UpdateZone changes the fields of a zone that its owner can change, and the owner itself. Equal values are not a
// change.
func (tx *Tx) UpdateZone(z zone.Zone) (zone.Zone, error) {
	e, err := tx.zone(z.ID)
	if err != nil {
		return z, err
	}
	next := e.zone
	next.Project, next.Email, next.TTL, next.Description = z.Project, z.Email, z.TTL, z.Description
	next.Masters, next.MastersBy, next.Attributes, next.Pool = z.Masters, z.MastersBy, z.Attributes, z.Pool
	if sameZone(next, e.zone) {
		return e.zone, nil
	}
	if next.TTL != e.zone.TTL {
		e.reload = true // it changes every set that has no TTL of its own
		e.unseenWhole = e.derives
	}
	if next.Project != e.zone.Project {
		e.unseenWhole = e.derives // which records of a zone are trusted depends on its owner
		if err := tx.edit.MoveZone(e.zone, next.Project); err != nil {
			return z, err
		}
	}
	if next.Pool != e.zone.Pool {
		if err := tx.edit.MovePool(e.zone, next.Pool); err != nil {
			return z, err
		}
	}
	next.Version++
	next.Updated = tx.now
	e.zone, e.touched = next, true
	return next, tx.edit.PutZone(next)
}

func sameZone(a, b zone.Zone) bool {
	return a.Project == b.Project && a.Email == b.Email && a.TTL == b.TTL && equalPtr(a.Description, b.Description) &&
		slices.Equal(a.Masters, b.Masters) && a.MastersBy == b.MastersBy && a.Pool == b.Pool &&
		fmt.Sprint(a.Attributes) == fmt.Sprint(b.Attributes)
}

func equalPtr[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// SetSerial sets the serial that a zone has after this edit, if the edit changes what is served. It must be larger than
// the current one (RFC 1982). It is for clients that write the whole SOA; other edits use the next serial.
func (tx *Tx) SetSerial(id uuid.UUID, serial uint32) error {
	e, err := tx.zone(id)
	if err == nil {
		e.serial = &serial
	}
	return err
}

// DeleteZone removes a zone with its record sets and its history.
func (tx *Tx) DeleteZone(id uuid.UUID) error {
	e, err := tx.zone(id)
	if err != nil {
		return err
	}
	var sets []zone.RecordSet
	err = tx.RecordSets(id, func(s zone.RecordSet) (bool, error) {
		sets = append(sets, s)
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, s := range sets {
		if err := tx.edit.DeleteSet(s); err != nil {
			return err
		}
	}
	if err := tx.dropJournal(id); err != nil {
		return err
	}
	for _, kind := range []store.Kind{store.KindSecondary, store.KindPowerDNS} {
		if err := tx.DeleteObject(kind, id.String()); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	e.deleted = true
	return tx.edit.DeleteZone(e.zone)
}

// CreateSet adds a record set to its zone. It sets the ID, times and version. A set of this name and type must not
// exist.
func (tx *Tx) CreateSet(s zone.RecordSet) (zone.RecordSet, error) {
	e, err := tx.zone(s.Zone)
	if err != nil {
		return s, err
	}
	if _, err := tx.RecordSet(s.Zone, s.Name, s.Type); err == nil {
		return s, fmt.Errorf("record set %s %s: %w", s.Name, s.Type, store.ErrExists)
	} else if !errors.Is(err, store.ErrNotFound) {
		return s, err
	}
	s.Created, s.Updated, s.Version = tx.now, time.Time{}, 1
	s.Data = rr.Normal(s.Type, s.Data)
	s.Sent = zone.MatchSent(s.Data, s.Sent)
	if err := tx.edit.NewSetID(&s); err != nil {
		return s, err
	}
	return s, tx.put(e, nil, s)
}

// UpdateSet changes the TTL, data, description and managed mark of the record set with the zone, name and type of s.
// Equal values are not a change. When s.Sent is nil, the records keep the texts that they have; an empty s.Sent gives
// them their canonical texts.
func (tx *Tx) UpdateSet(s zone.RecordSet) (zone.RecordSet, error) {
	e, err := tx.zone(s.Zone)
	if err != nil {
		return s, err
	}
	was, err := tx.RecordSet(s.Zone, s.Name, s.Type)
	if err != nil {
		return s, err
	}
	next := was
	next.TTL, next.Description, next.Managed, next.Hidden = s.TTL, s.Description, s.Managed, s.Hidden
	next.Data = rr.Normal(s.Type, s.Data)
	if s.Sent != nil {
		next.Sent = s.Sent
	}
	next.Sent = zone.MatchSent(next.Data, next.Sent)
	if equalPtr(next.TTL, was.TTL) && equalPtr(next.Description, was.Description) && next.Managed == was.Managed &&
		next.Hidden == was.Hidden &&
		slices.Equal(next.Data, was.Data) && slices.Equal(next.Sent, was.Sent) {
		return was, nil
	}
	next.Version++
	next.Updated = tx.now
	return next, tx.put(e, &was, next)
}

func (tx *Tx) put(e *zoneEdit, was *zone.RecordSet, s zone.RecordSet) error {
	e.changeSet(was, &s)
	return tx.edit.PutSet(s)
}

// DeleteSet removes the record set of a zone, name and type.
func (tx *Tx) DeleteSet(zoneID uuid.UUID, n dnsname.Name, t rr.Type) error {
	e, err := tx.zone(zoneID)
	if err != nil {
		return err
	}
	was, err := tx.RecordSet(zoneID, n, t)
	if err != nil {
		return err
	}
	e.changeSet(&was, nil)
	return tx.edit.DeleteSet(was)
}
