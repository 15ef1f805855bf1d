// Package safeat computes the time from which every resolver returns the new answer, and schedules changes by the
// same rules.
//
// Start with Compute in report.go, which turns Facts into a Report; the types of Facts are in this file. bound.go
// computes the reasons to wait, one Bound each. MakePlan in plan.go schedules a change.
//
// Everything here is a pure function of three inputs: what the authority serves and served, what caches were seen to
// hold, and how resolvers limit TTLs. A result has two times. At follows from the facts, and from a flagged default
// where a fact is missing. Latest also holds if such a default is wrong. Its only premise is that a resolver with an
// unknown limit keeps nothing for more than a week.
package safeat

import (
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

const (
	// week is the longest default limit of a common resolver: BIND 9.18's max-cache-ttl. Unbound and PowerDNS keep a
	// day.
	week = 604800 * time.Second
	// defaultNegative replaces an unknown negative TTL: RFC 2308 §5 recommends at most one to three hours, and BIND's
	// max-ncache-ttl is three hours.
	defaultNegative = 10800 * time.Second
	// failureTTL is how long a resolver may cache that servers failed (RFC 9520 §3.2).
	failureTTL = 5 * time.Minute
	// tick is added to remaining TTLs: caches count whole seconds, and Unbound answers with TTL 0 during the last one.
	tick = time.Second
	// inFlight is added, besides the tick, for an answer that left the authority just before the change.
	inFlight = time.Second
	// cluster is the largest difference between two samples of the expiry of one cache entry.
	cluster = 2 * time.Second
)

// TTL is a time to live that may be unknown. The zero TTL is unknown.
type TTL struct {
	seconds uint32
	known   bool
}

// Seconds returns a known TTL.
func Seconds(s uint32) TTL { return TTL{s, true} }

func (t TTL) duration() time.Duration { return time.Duration(t.seconds) * time.Second }

// NegativeTTL returns how long a zone allows negative answers to be cached: the smaller of the TTL of the SOA in the
// answer and its MINIMUM (RFC 2308 §5).
func NegativeTTL(soaTTL, minimum uint32) TTL { return Seconds(min(soaTTL, minimum)) }

// Role is the role of a record set in the resolution of the answer.
type Role string

// Roles of links. An alias is data, like the addresses of its target.
const (
	Data     Role = "data"
	ParentNS Role = "parentNS"
	ChildNS  Role = "childNS"
	DS       Role = "ds"
)

// Link is one record set that the answer depends on, as its authority serves it.
type Link struct {
	Owner dnsname.Name
	Type  rr.Type
	Role  Role
	TTL   TTL       // TTL served now; TTL of the negative answer if the set was removed
	Seen  time.Time // when the authority was queried
	Since time.Time // start of the present version, if an earlier scan saw it; zero: Seen

	// Unchanged is true if the set is known to be the same as a week ago, so that no cache can differ.
	Unchanged bool
	// Before are the versions that caches may still hold, in any order. If it is empty and the link is not Unchanged, they
	// are unknown: then both another value and no record at all are possible until Since.
	Before []Version
	// Divided is true if a server of the zone still serves an older version, so that caches may fetch it again.
	Divided           bool
	Denial            Denial // of the zone that contains the set; for DS and parent NS, of the parent
	OldServersUpdated bool   // NS links only: the previous servers serve the new set and data; false: unknown
}

// Version is the state of a link before a change of its data or of its TTL.
type Version struct {
	Until  time.Time // end of the version; zero: unknown, but not after the first observation of the next one
	TTL    TTL
	Absent bool // there was no such record; the zone's Denial applies instead of TTL
}

// Denial describes the negative answers of a zone.
type Denial struct {
	TTL    TTL // see NegativeTTL; 0 if the answers have no SOA, since they must not be cached
	Ranges Ranges
	NSEC   TTL // TTL of the NSEC records; unknown: as TTL
}

// Ranges says whether one negative answer can deny names that were never asked for (RFC 8198).
type Ranges string

// Kinds of Ranges. NSEC3 with opt-out and NSEC records that cover only one name are RangesNone.
const (
	RangesUnknown Ranges = ""
	RangesNone    Ranges = "none"
	RangesNSEC    Ranges = "nsec"
)

// Resolver is one recursive service, and the answers it was seen to give.
type Resolver struct {
	Name    string
	Addr    netip.Addr
	Clamps  Clamps
	Samples []Sample
	State   State // the overall state of its answers; default: Overall of Samples
}

// Clamps are the longest times for which a resolver caches positive and negative answers.
type Clamps struct{ Positive, Negative TTL }

// Sample is one answer of a resolver about one link.
type Sample struct {
	Link  int // index into Facts.Links
	State State
	Left  uint32 // TTL in the answer; for Negative, of the SOA
	Seen  time.Time
}

// State compares an answer with the authority's. An answer that differs by design, by location or by rotation, is
// Current.
type State string

// States of samples and of resolvers.
const (
	Current  State = "current"
	Old      State = "old"
	Negative State = "negative"
	Stale    State = "servedStale" // RFC 8767: EDE 3 or 19; the resolver cannot reach the authority
	Failed   State = "failed"      // SERVFAIL
	Filtered State = "filtered"    // on purpose; unrelated to age
	Silent   State = "silent"      // no answer, or not asked
)

// Facts are the inputs of Compute.
type Facts struct {
	Now       time.Time
	Links     []Link
	Resolvers []Resolver
}
