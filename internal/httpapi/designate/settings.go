package designate

import (
	"cmp"
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
	APIExportSize    int `json:"api_export_size" yaml:"api_export_size"`
	RecordsetRecords int `json:"recordset_records" yaml:"recordset_records"`
	ZoneRecords      int `json:"zone_records" yaml:"zone_records"`
	ZoneRecordsets   int `json:"zone_recordsets" yaml:"zone_recordsets"`
	Zones            int `json:"zones" yaml:"zones"`
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
	s.PoolID = cmp.Or(s.PoolID, defaultPool)
	s.PoolName = cmp.Or(s.PoolName, "default")
	if len(s.Nameservers) == 0 {
		s.Nameservers = []Nameserver{{dnsname.MustParse(DefaultNameserver), 1}}
	}
	q, d := &s.Quotas, DefaultQuotas()
	q.Zones = cmp.Or(q.Zones, d.Zones)
	q.ZoneRecordsets = cmp.Or(q.ZoneRecordsets, d.ZoneRecordsets)
	q.ZoneRecords = cmp.Or(q.ZoneRecords, d.ZoneRecords)
	q.RecordsetRecords = cmp.Or(q.RecordsetRecords, d.RecordsetRecords)
	q.APIExportSize = cmp.Or(q.APIExportSize, d.APIExportSize)
	s.DefaultTTL = cmp.Or(s.DefaultTTL, DefaultTTL)
	s.MaxImport = cmp.Or(s.MaxImport, DefaultMaxImport)
	return s
}
