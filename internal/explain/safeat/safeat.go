// Package safeat computes from which moment everyone sees the new answer, and plans changes by the same arithmetic.
//
// Everything here is a function of values: what the authority serves and served, what caches were seen to hold, and what
// resolvers are known to do with times to live. Two moments are given. At follows the facts, and a default where a fact is
// missing, which is then flagged. Latest holds when such a default is wrong, too, on the one premise that a resolver whose
// limit is not known keeps nothing for more than a week.
package safeat

import (
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

const (
	// week is the longest limit found as a default: BIND 9.18's max-cache-ttl. Unbound and PowerDNS keep a day.
	week = 604800 * time.Second
	// unreadDenial stands for a negative TTL that was not read: RFC 2308 §5 advises one to three hours at most, and BIND's
	// max-ncache-ttl is the latter.
	unreadDenial = 10800 * time.Second
	// failure is how long a resolver may remember that servers failed (RFC 9520 §3.2).
	failure = 5 * time.Minute
	// tick is added to what is left of a TTL: caches count whole seconds, and Unbound answers with TTL 0 during the last.
	tick = time.Second
	// flight is for the answer that left the authority just before the change, besides the tick.
	flight = time.Second
	// cluster is how far apart two samples may see one cache entry expire.
	cluster = 2 * time.Second
)

// TTL is a time to live that may be unknown, as the zero TTL is.
type TTL struct {
	seconds uint32
	known   bool
}

// Seconds is a TTL that is known.
func Seconds(s uint32) TTL { return TTL{s, true} }

func (t TTL) duration() time.Duration { return time.Duration(t.seconds) * time.Second }

// NegativeTTL is how long a zone lets "does not exist" be kept: the lesser of the TTL of the SOA that comes with the answer
// and its MINIMUM (RFC 2308 §5).
func NegativeTTL(soaTTL, minimum uint32) TTL { return Seconds(min(soaTTL, minimum)) }

// Role is what a record set is to the answer.
type Role string

// Roles of links. An alias on the way is data like the addresses at its end.
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
	TTL   TTL       // as served now; of the negative answer when the set was removed
	Seen  time.Time // when the authority was asked
	Since time.Time // since when it is known to be what it is: an earlier look saw it; zero: since Seen

	// Unchanged says that the set is known to be what it was a week ago, so that no cache can differ.
	Unchanged bool
	// Before are the versions that caches may still hold, in any order. None, in a link that is not Unchanged: not known,
	// and then both another value and no record at all are taken as possible until Since.
	Before []Version
	// Divided says that a server of the zone still serves an older version, so that caches may fetch it again.
	Divided bool
	Denial  Denial // of the zone that has the set; for DS and parent NS, the parent
	LeftNew bool   // of NS links only: servers that are no longer named serve the new set and data; false: not known
}

// Version is what a link was until it changed: to other data, or to another TTL.
type Version struct {
	Until  time.Time // zero: not known, so not later than the link is known in its new form
	TTL    TTL
	Absent bool // there was no such record; the zone's Denial counts instead of TTL
}

// Denial is how a zone says that something does not exist.
type Denial struct {
	TTL    TTL // see NegativeTTL; 0 when it sends no SOA, as such an answer must not be kept
	Ranges Ranges
	NSEC   TTL // the TTL of its NSEC records; unknown: as TTL
}

// Ranges tells whether one denial can hide names that were never asked for (RFC 8198).
type Ranges string

// Kinds of Ranges. NSEC3 with opt-out and NSEC records that cover one name are RangesNone.
const (
	RangesUnknown Ranges = ""
	RangesNone    Ranges = "none"
	RangesNSEC    Ranges = "nsec"
)

// Resolver is one recursive service, and what it was seen to hold.
type Resolver struct {
	Name    string
	Addr    netip.Addr
	Clamps  Clamps
	Samples []Sample
}

// Clamps are the longest times that a resolver keeps things.
type Clamps struct{ Positive, Negative TTL }

// Sample is one answer of a resolver about one link.
type Sample struct {
	Link  int // index into the links of Facts
	State State
	Left  uint32 // the TTL that came with it; for Negative, that of the SOA
	Seen  time.Time
}

// State is how an answer compares with the authority's. One that differs by design, by place or in turn, is Current.
type State string

// States of samples, and of resolvers.
const (
	Current  State = "current"
	Old      State = "old"
	Negative State = "negative"
	Stale    State = "servedStale" // RFC 8767: EDE 3 or 19, given out because the authority fails from there
	Failed   State = "failed"      // SERVFAIL
	Filtered State = "filtered"    // on purpose; has nothing to do with age
	Silent   State = "silent"      // not seen: no answer, or not asked
)

// Facts are everything that the moment is computed from.
type Facts struct {
	Now       time.Time
	Links     []Link
	Resolvers []Resolver
}
