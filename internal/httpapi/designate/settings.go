package designate

import (
	"os"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Settings of the API; the zero value works.
type Settings struct {
	// BaseURL is how clients reach the server, without a final slash; default: the scheme and host of each request.
	BaseURL string

	// PoolID and PoolName name the one pool; defaults are those of Designate's default pool.
	PoolID   uuid.UUID
	PoolName string

	// Nameservers of the pool become the NS set of every new zone; default DefaultNameserver, which is true (RFC 6761
	// §6.3) for a server that was just tried out, and plainly not for anything else.
	Nameservers []Nameserver

	DefaultTTL uint32 // of new zones; default DefaultTTL
	MinTTL     uint32 // smallest TTL that is accepted; default 0

	// Quotas are the limits of projects that have none of their own. A zero field stands for its default, -1 for no
	// limit.
	Quotas Quotas

	MaxImport int64 // bytes of an imported zone file; default DefaultMaxImport, three million records

	// Spool is the folder where zone files wait to be imported; default: the system's for temporary files. It is open,
	// because a server that has dropped root may not find the way to it any more.
	Spool *os.Root
}

// Nameserver is a host that serves the pool's zones. The one with the lowest priority is the primary of their SOA.
type Nameserver struct {
	Hostname dnsname.Name
	Priority int
}

// Quotas limit what a project may keep; -1 is no limit.
//
// Designate's defaults (10 zones, 500 record sets and records in a zone) fence tenants of a public cloud that nobody
// knows. A server of one's own that refuses the eleventh zone or a zone of a thousand hosts is of no use, so here only
// recordset_records keeps Designate's number: answers of more than 20 records rarely fit a UDP packet. An operator who
// does serve strangers sets the others, here or by project.
type Quotas struct {
	Zones            int
	ZoneRecordsets   int
	ZoneRecords      int
	RecordsetRecords int
	APIExportSize    int
}

// Defaults of the Settings.
const (
	DefaultNameserver = "ns1.localhost."
	DefaultTTL        = 3600
	DefaultMaxImport  = 128 << 20
)

// DefaultQuotas returns the default of Settings.Quotas. Exports have no limit: they are streamed and need no memory.
func DefaultQuotas() Quotas {
	return Quotas{Zones: -1, ZoneRecordsets: -1, ZoneRecords: -1, RecordsetRecords: 20, APIExportSize: -1}
}

// defaultPool is the id of Designate's default pool, which clients and scripts have learnt by heart.
var defaultPool = uuid.MustParse("794ccc2c-d751-44fe-b57f-8894c9f5c842")

func (s Settings) withDefaults() Settings {
	if s.PoolID == uuid.Nil {
		s.PoolID = defaultPool
	}
	if s.PoolName == "" {
		s.PoolName = "default"
	}
	if len(s.Nameservers) == 0 {
		s.Nameservers = []Nameserver{{dnsname.MustParse(DefaultNameserver), 1}}
	}
	q := DefaultQuotas()
	for _, d := range []struct {
		field *int
		value int
	}{
		{&s.Quotas.Zones, q.Zones}, {&s.Quotas.ZoneRecordsets, q.ZoneRecordsets}, {&s.Quotas.ZoneRecords, q.ZoneRecords},
		{&s.Quotas.RecordsetRecords, q.RecordsetRecords}, {&s.Quotas.APIExportSize, q.APIExportSize},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if s.DefaultTTL == 0 {
		s.DefaultTTL = DefaultTTL
	}
	if s.MaxImport == 0 {
		s.MaxImport = DefaultMaxImport
	}
	return s
}
