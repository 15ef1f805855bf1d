package publish

import (
	"errors"
	"fmt"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Quotas limit what a project may keep; -1 is no limit.
type Quotas struct {
	Aliases          int `json:"aliases" yaml:"-"` // of all zones together; set by project
	APIExportSize    int `json:"api_export_size" yaml:"api_export_size"`
	RecordsetRecords int `json:"recordset_records" yaml:"recordset_records"`
	ZoneRecords      int `json:"zone_records" yaml:"zone_records"`
	ZoneRecordsets   int `json:"zone_recordsets" yaml:"zone_recordsets"`
	Zones            int `json:"zones" yaml:"zones"`
}

// DefaultQuotas returns the quotas that fit the memory limit of the manifest and the unit in deploy, 1 GiB. All zones of
// one project at their quotas, with records as large as zoneBytes allows, take at most half of that
// (deploy.TestMemoryAgrees).
//
// Designate's defaults are 10 zones and 500 record sets and records in each. Those refuse the zone of a thousand hosts
// that a server of one's own is for. recordset_records is Designate's: more than 20 records rarely fit a UDP packet.
// Exports have no limit: they are streamed and need no memory. 10,000 ALIAS take 10 MB, and a change of the one name that
// all of them follow keeps the committer busy for a second, in steps.
func DefaultQuotas() Quotas {
	return Quotas{Zones: 100, ZoneRecordsets: 20_000, ZoneRecords: 20_000, RecordsetRecords: 20, APIExportSize: -1,
		Aliases: 10_000}
}

// unlimited are the quotas of a Publisher that was given none.
var unlimited = Quotas{-1, -1, -1, -1, -1, -1}

// A zone may have BytesFree bytes, and BytesPerRecord for each record of its quota, in the names and data of its record
// sets. A record may have 64 KiB, so a number of records alone is no limit of memory. An address takes about 25 bytes, a
// key of 2048 bits in a TXT record about 450.
const (
	BytesPerRecord = 128
	BytesFree      = 64 << 10
)

// ZoneBytes returns how many bytes the record sets of a zone may have; -1 is no limit.
func (q Quotas) ZoneBytes() int {
	if q.ZoneRecords < 0 {
		return -1
	}
	return BytesFree + q.ZoneRecords*BytesPerRecord
}

// QuotaError says that an edit would go beyond a quota of the zone's project.
type QuotaError struct {
	Resource string // as in the quotas API, or "bytes of a zone"
	N, Most  int
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("Quota exceeded for %s: %d would be more than %d", e.Resource, e.N, e.Most)
}

// ErrMemory says that an edit would let a zone grow, and that what is served takes so much memory already that no zone
// may. Edits that delete records are possible.
var ErrMemory = errors.New("the memory of the server is full: zones cannot grow until records are deleted or its memory limit is raised")

// QuotasOf returns a project's own quotas over the default ones.
func (p *Publisher) QuotasOf(v store.View, project string) (Quotas, error) {
	q := p.opts.Quotas
	if err := v.Object(store.KindQuota, project, &q); err != nil && !errors.Is(err, store.ErrNotFound) {
		return q, err
	}
	return q, nil
}

// LiftQuotas lets this edit go beyond quotas: an administrator makes it.
func (tx *Tx) LiftQuotas() { tx.lifted = true }

// QuotasLifted reports whether LiftQuotas was called.
func (tx *Tx) QuotasLifted() bool { return tx.lifted }

// checkQuotas compares what an edit leaves of a zone with the quotas of the zone's project. This is the one place where
// quotas are checked: every change goes through it, whichever protocol it came by. Only growth is refused, so a zone that
// was larger before its quota was set can be served and changed. Overlays are the operator's own.
func (tx *Tx) checkQuotas(e *zoneEdit) error {
	was := e.before
	if e.zone.Project != was.Project {
		was = zone.Zone{} // its new owner's quotas are for all of it
	}
	if e.zone.Kind == zone.Overlay || !e.grows(was) {
		return nil
	}
	if tx.p.opts.Full != nil && e.zone.Bytes > was.Bytes && tx.p.opts.Full() {
		return ErrMemory
	}
	if tx.lifted {
		return nil
	}
	q, err := tx.p.QuotasOf(tx.View, e.zone.Project)
	if err != nil {
		return err
	}
	owned := 0
	if e.zone.Project != was.Project || e.created {
		if owned, err = tx.CountZones(e.zone.Project); err != nil {
			return err
		}
	}
	if e.zone.Kind == zone.Secondary {
		e.widest = 0 // its master decides, and the other quotas bound it
	}
	for _, c := range []struct {
		resource     string
		was, n, most int
	}{
		{"zones", 0, owned, q.Zones},
		{"recordset_records", 0, e.widest, q.RecordsetRecords},
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
		e.zone.Bytes > was.Bytes || e.widest > 0
}

// widen notes that a record set got more records.
func (e *zoneEdit) widen(before, after *zone.RecordSet) {
	if after == nil || after.Hidden || before != nil && len(after.Data) <= len(before.Data) {
		return
	}
	e.widest = max(e.widest, len(after.Data))
}
