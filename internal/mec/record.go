package mec

import (
	"context"
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// Record is a record set that the platform put into an overlay zone through the server management API.
type Record struct {
	Zone        dnsname.Name
	Name        dnsname.Name
	Type        rr.Type // A or AAAA
	TTL         *uint32 // as given; nil: DefaultTTL
	Addrs       []netip.Addr
	LoadBalance bool // may stand beside other addresses of other owners who say so too
	Updated     time.Time
}

// RecordDraft is a record as a client writes it.
type RecordDraft struct {
	Zone        string // may be empty: "."
	Name        string
	Type        string
	Class       string // IN, or empty
	TTL         *int64
	Data        []string // rData
	LoadBalance bool
}

// ParseRecord checks a draft and makes a record of it. Errors are FieldErrors with the names of the management API.
func ParseRecord(d RecordDraft) (Record, error) { return Record{}, errTodo }

// ParseZone reads the name of an overlay zone; empty is ".".
func ParseZone(s string) (dnsname.Name, error) { return dnsname.Name{}, errTodo }

// ParseRecordKey reads the name and type by which a path names a record.
func ParseRecordKey(name, typ string) (dnsname.Name, rr.Type, error) {
	return dnsname.Name{}, 0, errTodo
}

// ZoneRecords is an overlay zone with records of the platform.
type ZoneRecords struct {
	Name    dnsname.Name
	Records int
}

// Zones lists the overlay zones that have records of the platform.
func (s *Service) Zones() ([]ZoneRecords, error) { return nil, errTodo }

// Records lists the platform's records in a zone, or in all zones when that is the zero Name. Each is a record set.
func (s *Service) Records(zoneName dnsname.Name) ([]Record, error) { return nil, errTodo }

// RecordsAt lists the platform's records of one name, in a zone or, for the zero Name, in all zones.
func (s *Service) RecordsAt(zoneName, n dnsname.Name) ([]Record, error) { return nil, errTodo }

// Record is one record, or zone.ErrNotFound. The zero zone is the most specific that has it, which is the one answered.
func (s *Service) Record(zoneName, n dnsname.Name, t rr.Type) (Record, error) {
	return Record{}, errTodo
}

// PutRecords makes or replaces records, all or none. Of two for the same name and type the later stays.
func (s *Service) PutRecords(ctx context.Context, actor store.Actor, records []Record) error {
	return errTodo
}

// CreateRecords makes records, all or none, or returns zone.ErrExists.
func (s *Service) CreateRecords(ctx context.Context, actor store.Actor, records []Record) error {
	return errTodo
}

// ReplaceRecord changes a record, or returns zone.ErrNotFound.
func (s *Service) ReplaceRecord(ctx context.Context, actor store.Actor, r Record) (Record, error) {
	return Record{}, errTodo
}

// DeleteRecord removes a record and returns what it was, or zone.ErrNotFound. The zero zone is as for Record.
func (s *Service) DeleteRecord(ctx context.Context, actor store.Actor, zoneName, n dnsname.Name, t rr.Type) (Record, error) {
	return Record{}, errTodo
}
