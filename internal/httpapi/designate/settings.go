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

	// Nameservers of the pool become the NS set of every new zone; default ns1.localhost., which is true (RFC 6761 §6.3)
	// for a server that was just tried out, and plainly not for anything else.
	Nameservers []Nameserver

	DefaultTTL uint32 // of new zones; default 3600
	MinTTL     uint32 // smallest TTL that is accepted; default 0

	// Quotas are the limits of projects that have none of their own. A zero field stands for its default, -1 for no limit.
	Quotas Quotas

	MaxImport int64 // octets of an imported zone file; default 128 MiB, three million records

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
	Zones            int // default -1
	ZoneRecordsets   int // default -1
	ZoneRecords      int // default -1
	RecordsetRecords int // default 20
	APIExportSize    int // default -1: exports are streamed and cost no memory
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
		s.Nameservers = []Nameserver{{dnsname.MustParse("ns1.localhost."), 1}}
	}
	for _, d := range []struct {
		field *int
		value int
	}{
		{&s.Quotas.Zones, -1}, {&s.Quotas.ZoneRecordsets, -1}, {&s.Quotas.ZoneRecords, -1},
		{&s.Quotas.RecordsetRecords, 20}, {&s.Quotas.APIExportSize, -1},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if s.DefaultTTL == 0 {
		s.DefaultTTL = 3600
	}
	if s.MaxImport == 0 {
		s.MaxImport = 128 << 20
	}
	return s
}
