// Package zone holds zones: what an owner says of one (Zone, RecordSet), and what the query path reads of all of them
// (Nodes, Snapshot).
package zone

import (
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Kind says where a zone's records come from.
type Kind string

// The kinds of zones; the first three words are Designate's.
const (
	Primary   Kind = "PRIMARY"
	Secondary Kind = "SECONDARY"
	Catalog   Kind = "CATALOG"
	// Overlay zones have some names answered and leave all others to less specific zones (docs/designs/005).
	Overlay Kind = "OVERLAY"
)

// Zone is what its owner says of a zone, and what the program keeps count of. Its records are RecordSets.
type Zone struct {
	ID          uuid.UUID
	Name        dnsname.Name
	Project     string // the owner; other projects do not see it unless it is shared with them
	Kind        Kind
	Email       string
	TTL         uint32 // of record sets that have none of their own
	Serial      uint32
	Description *string
	Pool        uuid.UUID
	Masters     []string
	Attributes  map[string]string
	Version     int       // steps with every change of the zone's own fields
	Created     time.Time // UTC, microseconds
	Updated     time.Time // zero while never updated
	Sets        int       // record sets, managed ones included
	Records     int       // records in them
	Bytes       int       // of their names and data
}

// RecordSet is a record set as its owner wrote it.
type RecordSet struct {
	ID          uuid.UUID
	Zone        uuid.UUID
	Name        dnsname.Name
	Type        rr.Type
	TTL         *uint32  // nil: the zone's
	Data        []string // as in rr.Set; may be empty, then nothing is served
	Description *string
	Managed     bool // the program's own: SOA and apex NS
	Hidden      bool // made of an ALIAS of the same name: on the wire only, neither listed nor counted
	Version     int
	Created     time.Time
	Updated     time.Time // zero while never updated
}

// Served is the record set that goes on the wire, with the TTL it has in a zone of the given default. An ALIAS has no
// records there.
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

// NextSerial is the serial of the commit that follows old at the given time: max(old+1, unix seconds), in the
// arithmetic of RFC 1982, where 0 is skipped because some secondaries take it for "none".
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
