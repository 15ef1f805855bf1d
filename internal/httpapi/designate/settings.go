package designate

import (
	"os"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Settings of the API.
type Settings struct {
	// BaseURL is how clients reach the server, without a final slash; default: the scheme and host of each request.
	BaseURL string

	Nameservers []Nameserver // of the pool; they become the NS set of every new zone
	DefaultTTL  uint32       // of new zones
	MinTTL      uint32       // smallest TTL that is accepted
	Quotas      Quotas       // of projects that have none of their own
	MaxImport   int64        // bytes of an imported zone file

	// Spool is the folder where zone files wait to be imported. It is open, because a server that has dropped root may
	// not find the way to it any more.
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

// Defaults of the Settings. The name server is true (RFC 6761 §6.3) for a server that was just tried out, and plainly
// not for anything else. An import of the default size has three million records.
const (
	DefaultNameserver = "ns1.localhost."
	DefaultTTL        = 3600
	DefaultMaxImport  = 128 << 20
)

// DefaultQuotas returns the default of Settings.Quotas. Exports have no limit: they are streamed and need no memory.
func DefaultQuotas() Quotas {
	return Quotas{Zones: -1, ZoneRecordsets: -1, ZoneRecords: -1, RecordsetRecords: 20, APIExportSize: -1}
}

// poolID is the id of the one pool: that of Designate's default pool, which clients and scripts have learnt by heart.
var poolID = uuid.MustParse("794ccc2c-d751-44fe-b57f-8894c9f5c842")
