// Package zone holds DNS zones in two forms: rows as the owner edits them, and nodes as the query path serves them.
//
// Zone and RecordSet in zone.go are the rows. Snapshot in snapshot.go is all served zones at one moment; each is a
// Nodes (nodes.go), which finds a Node (node.go) for a name. Start with Snapshot.Zone and Nodes.Find for reading, and
// with Batch in batch.go for changes. Check in check.go decides which record sets may coexist at a name.
package zone

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Kind is the source of a zone's records.
type Kind string

// The kinds of zones. The first three words are those of Designate.
const (
	Primary   Kind = "PRIMARY"
	Secondary Kind = "SECONDARY"
	Catalog   Kind = "CATALOG"
	// Overlay zones answer single names and leave all others to less specific zones (docs/designs/005-overlay-zones.md).
	Overlay Kind = "OVERLAY"
)

// Namer says who named the masters of a SECONDARY zone: it decides which addresses they may have.
type Namer uint8

// The namers. A row that an older version wrote does not name one.
const (
	UnknownNamer Namer = iota
	Tenant
	Administrator
)

// Zone is the settings that the owner gives a zone, and the counters that nameplane keeps. Its records are
// RecordSets.
type Zone struct {
	ID          uuid.UUID
	Name        dnsname.Name
	Project     string // the owner; other projects see the zone only when it is shared with them
	Kind        Kind
	Email       string
	TTL         uint32 // default for record sets without a TTL
	Serial      uint32
	Description *string
	Pool        uuid.UUID
	Masters     []string
	MastersBy   Namer
	Attributes  map[string]string
	Version     int       // incremented with every change of the zone's own fields
	Created     time.Time // UTC, in microseconds
	Updated     time.Time // zero before the first update
	Sets        int       // number of record sets, with the managed ones
	Records     int       // number of records in them
	Bytes       int       // size of their names and data
	Changes     int       // number of changes in the journal; -1 in a row that an older version wrote
	ChangeBytes int       // size of these changes
	Spelling    string    // Name as its creator wrote it; "" when that is Name.String()
}

// Spelled returns the name as the creator of the zone wrote it.
func (z Zone) Spelled() string { return cmp.Or(z.Spelling, z.Name.String()) }

// DefaultPool is the pool of a zone for which nothing selects another one. The id is the one of Designate's default
// pool, which is written into clients and scripts.
var DefaultPool = uuid.MustParse("794ccc2c-d751-44fe-b57f-8894c9f5c842")

// RecordSet is a record set as its owner wrote it.
type RecordSet struct {
	ID          uuid.UUID
	Zone        uuid.UUID
	Name        dnsname.Name
	Type        rr.Type
	TTL         *uint32  // nil: the zone's TTL
	Data        []string // as in rr.Set; when empty, nothing is served
	Description *string
	Managed     bool // created by nameplane: SOA and apex NS
	Hidden      bool // derived from an ALIAS of the same name: served, but neither listed nor counted
	Version     int
	Created     time.Time
	Updated     time.Time // zero before the first update

	Spelling string // Name as its creator wrote it; "" when that is Name.String()
	Sent     []Sent // the records as the owner sent them; nil when that is the canonical text of Data, in its order
}

// Served returns the record set to serve, with zoneTTL when it has no TTL. An ALIAS is not served.
func (s RecordSet) Served(zoneTTL uint32) rr.Set {
	if s.Type == rr.TypeALIAS {
		return rr.Set{Name: s.Name, Type: s.Type}
	}
	ttl := zoneTTL
	if s.TTL != nil {
		ttl = *s.TTL
	}
	return rr.Set{Name: s.Name, Type: s.Type, TTL: ttl, Data: s.Data}
}

// NextSerial returns the serial of the commit that follows old at the given time: max(old+1, Unix seconds), in the
// arithmetic of RFC 1982. It skips 0, because some secondaries treat 0 as "no serial".
func NextSerial(old uint32, now time.Time) uint32 {
	next := old + 1
	if sec := uint32(now.Unix()); int32(sec-next) > 0 {
		next = sec
	}
	if next == 0 {
		next = 1
	}
	return next
}
