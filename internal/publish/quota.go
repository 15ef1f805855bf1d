package publish

import (
	"errors"
	"fmt"
	"math"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Quotas limit what a project can store; -1 means no limit, as in Designate's API.
type Quotas struct {
	Aliases          int `json:"aliases"` // for all zones of the project together; set for each project
	APIExportSize    int `json:"api_export_size"`
	RecordsetRecords int `json:"recordset_records"`
	ZoneRecords      int `json:"zone_records"`
	ZoneRecordsets   int `json:"zone_recordsets"`
	Zones            int `json:"zones"`
}

// DefaultQuotas returns quotas that fit the memory limit of the manifest and the unit in deploy, 1 GiB. When all zones
// of one project are at their quotas, with records as large as ZoneBytes allows, they take at most half of that memory
// (deploy.TestMemoryAgrees).
//
// Designate's defaults are 10 zones, with 500 record sets and records in each. They are too small for a zone of a
// thousand hosts, which is a common use of a private server. recordset_records is Designate's default: more than 20
// records rarely fit a UDP packet. Exports have no limit: they are streamed and need no memory. 10,000 ALIAS record
// sets take 10 MB. When all of them follow one name, a change of that name keeps the committer busy for a second, in
// steps.
func DefaultQuotas() Quotas {
	return Quotas{Zones: 100, ZoneRecordsets: 20_000, ZoneRecords: 20_000, RecordsetRecords: 20, APIExportSize: -1,
		Aliases: 10_000}
}

// unlimited are the quotas of a Publisher whose options have none.
var unlimited = Quotas{-1, -1, -1, -1, -1, -1}

// The names and data of a zone's record sets may take BytesFree bytes, plus BytesPerRecord for each record of the
// zone's quota. One record can have 64 KiB, so a number of records does not limit memory. An address record takes about
// 25 bytes, a 2048-bit key in a TXT record about 450.
const (
	BytesPerRecord = 128
	BytesFree      = 64 << 10
)

// ZoneBytes returns how many bytes the record sets of a zone may take; -1 means no limit.
func (q Quotas) ZoneBytes() int {
	if q.ZoneRecords < 0 {
		return -1
	}
	return BytesFree + q.ZoneRecords*BytesPerRecord
}

// QuotaError reports that an edit would exceed a quota of the zone's project.
type QuotaError struct {
	Resource string // name of the quota in the quotas API, or "bytes of a zone"
	N, Most  int
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("Quota exceeded for %s: %d would be more than %d", e.Resource, e.N, e.Most)
}

// ErrMemory reports that an edit would let a zone grow while the memory for served zones is full. Edits that delete
// records are still possible.
var ErrMemory = errors.New("the memory of the server is full: zones cannot grow until records are deleted or " +
	"its memory limit is raised")

// QuotasOf returns the quotas of a project: its own values where it has them, otherwise the defaults.
func (p *Publisher) QuotasOf(v store.View, project string) (Quotas, error) {
	q := p.opts.Quotas
	if err := v.Object(store.KindQuota, project, &q); err != nil && !errors.Is(err, store.ErrNotFound) {
		return q, err
	}
	return q, nil
}

// LiftQuotas disables the quotas for this edit. It is for imports of administrators.
func (tx *Tx) LiftQuotas() { tx.lifted, tx.liftedZones = true, true }

// LiftRecordQuotas disables all quotas but the number of zones for this edit. It is for the other edits of
// administrators: a zone that they have imported can then grow by every API that they use.
func (tx *Tx) LiftRecordQuotas() { tx.lifted = true }

// RecordQuotasLifted reports whether LiftQuotas or LiftRecordQuotas was called.
func (tx *Tx) RecordQuotasLifted() bool { return tx.lifted }

// RoomForSets returns how many record sets a zone can get, and the error for more. Large edits ask first, because
// checkQuotas refuses an edit only after it has run.
func (tx *Tx) RoomForSets(z zone.Zone) (room int, full *QuotaError, err error) {
	q, err := tx.p.QuotasOf(tx.View, z.Project)
	if err != nil {
		return 0, nil, err
	}
	room = math.MaxInt
	if tx.lifted {
		return room, nil, nil
	}
	if q.ZoneRecordsets >= 0 {
		room = max(q.ZoneRecordsets-z.Sets, 0)
		full = &QuotaError{"zone_recordsets", z.Sets + room + 1, q.ZoneRecordsets}
	}
	if left := max(q.ZoneRecords-z.Records, 0); q.ZoneRecords >= 0 && left < room {
		room, full = left, &QuotaError{"zone_records", z.Records + left + 1, q.ZoneRecords}
	}
	return room, full, nil
}

// CheckSize returns a *QuotaError when an edit that leaves a zone with at least the given numbers of record sets and of
// records would exceed a quota. Edits whose size a client decides call it first, because checkQuotas refuses an edit
// only after it has run: 60,000 new record sets kept the committer busy for 1.3 s before they were refused.
func (tx *Tx) CheckSize(z zone.Zone, sets, records int) error {
	if tx.lifted {
		return nil
	}
	q, err := tx.p.QuotasOf(tx.View, z.Project)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		resource     string
		was, n, most int
	}{
		{"zone_recordsets", z.Sets, sets, q.ZoneRecordsets},
		{"zone_records", z.Records, records, q.ZoneRecords},
	} {
		if c.most >= 0 && c.n > c.most && c.n > c.was {
			return &QuotaError{c.resource, c.n, c.most}
		}
	}
	return nil
}

// checkQuotas compares a zone, as the edit leaves it, with the quotas of the zone's project. Quotas are checked only
// here: every change passes this function, from any protocol. It refuses only growth, so a zone that was larger before
// its quota was set can still be served and changed. Overlays belong to the operator and have no quotas.
func (tx *Tx) checkQuotas(e *zoneEdit) error {
	was := e.before
	if e.zone.Project != was.Project {
		was = zone.Zone{} // the quotas of the new owner apply to the whole zone
	}
	if e.zone.Kind == zone.Overlay || !e.grows(was) {
		return nil
	}
	if tx.p.opts.Full != nil && e.zone.Bytes > was.Bytes && tx.p.opts.Full() {
		return ErrMemory
	}
	q, err := tx.p.QuotasOf(tx.View, e.zone.Project)
	if err != nil {
		return err
	}
	if tx.lifted {
		zones := q.Zones
		q = unlimited
		if !tx.liftedZones {
			q.Zones = zones
		}
	}
	owned := 0
	if e.zone.Project != was.Project || e.created {
		if owned, err = tx.CountZones(e.zone.Project); err != nil {
			return err
		}
	}
	if e.zone.Kind == zone.Secondary {
		e.largest = 0 // the master of the zone decides the size of a set; the other quotas still apply
	}
	for _, c := range []struct {
		resource     string
		was, n, most int
	}{
		{"zones", 0, owned, q.Zones},
		{"recordset_records", 0, e.largest, q.RecordsetRecords},
		{"zone_recordsets", was.Sets, e.zone.Sets, q.ZoneRecordsets},
		{"zone_records", was.Records, e.zone.Records, q.ZoneRecords},
		{"bytes of a zone", was.Bytes, e.zone.Bytes, q.ZoneBytes()},
	} {
		if c.most >= 0 && c.n > c.most && c.n > c.was {
			return &QuotaError{c.resource, c.n, c.most}
		}
	}
	return nil
}

// grows reports whether the edit adds anything that a quota counts.
func (e *zoneEdit) grows(was zone.Zone) bool {
	return e.created || e.zone.Project != was.Project || e.zone.Sets > was.Sets || e.zone.Records > was.Records ||
		e.zone.Bytes > was.Bytes || e.largest > 0
}

// noteLargest records the number of records of a set that got more records. had is their number before the edit.
func (e *zoneEdit) noteLargest(had int, after *zone.RecordSet) {
	if after != nil && !after.Hidden && len(after.Data) > had {
		e.largest = max(e.largest, len(after.Data))
	}
}

// hadRecords returns the number of records that a set had before a change. A set that this edit deletes and creates
// again, with another TTL, still counts as the old one.
func (e *zoneEdit) hadRecords(before, after *zone.RecordSet) int {
	if before != nil {
		ref := store.SetRef{Name: before.Name, Type: before.Type}
		if after == nil {
			if e.dropped == nil {
				e.dropped = map[store.SetRef]int{}
			}
			e.dropped[ref] = max(e.dropped[ref], len(before.Data))
		}
		return max(e.dropped[ref], len(before.Data))
	}
	return e.dropped[store.SetRef{Name: after.Name, Type: after.Type}]
}
