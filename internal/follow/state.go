package follow

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Family is an address family, or the set of both.
type Family uint8

// The families.
const (
	IPv4 Family = 1 << iota
	IPv6
	Both = IPv4 | IPv6
)

// families has the single families, in the order of node.entries.
var families = [...]Family{IPv4, IPv6}

// String returns the record type that holds addresses of the family.
func (f Family) String() string {
	switch f {
	case IPv4:
		return "A"
	case IPv6:
		return "AAAA"
	case Both:
		return "A+AAAA"
	}
	return "none"
}

// Cause is the result of an attempt to look up a name. The values are part of APIs and metrics.
type Cause string

// Answers: the result is known.
const (
	Found    Cause = "found"
	NoData   Cause = "nodata"   // the name exists without addresses of this family
	NXDomain Cause = "nxdomain" // the name does not exist
)

// Failures: the attempt adds no knowledge about the name.
const (
	Timeout      Cause = "timeout"
	Network      Cause = "network" // the server is unreachable, or closed the connection
	ServFail     Cause = "servfail"
	Refused      Cause = "refused"
	Lame         Cause = "lame"      // the server refers to other servers instead of answering
	FormErr      Cause = "formerr"   // the server reports that it cannot read the query
	Malformed    Cause = "malformed" // the reply cannot be parsed
	Bogus        Cause = "bogus"     // the reply answers another question
	Truncated    Cause = "truncated" // truncated even over TCP
	Loop         Cause = "loop"
	ChainTooLong Cause = "chain-too-long"
	Rcode        Cause = "rcode" // any other RCODE; Error.Detail names it
)

// Link is one CNAME in the chain from a name to its addresses.
type Link struct {
	Name, Target dnsname.Name
	TTL          time.Duration
}

// Error says why an attempt failed.
type Error struct {
	Cause  Cause
	Server string // the last resolver that was queried
	Detail string // text for people
	Chain  []Link // the CNAMEs followed before the failure
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Cause))
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	if len(e.Chain) > 0 {
		b.WriteString(": ")
		b.WriteString(e.Chain[0].Name.String())
		for _, l := range e.Chain {
			b.WriteString(" -> ")
			b.WriteString(l.Target.String())
		}
	}
	return b.String()
}

// State is the current knowledge about one family of a name.
//
// Answers and failures are kept apart, so that a reader of only the newest State can decide. A failure changes only Err
// and Failures. An answer without addresses keeps the addresses of the last answer that had some; Answer says whether
// they are still current.
type State struct {
	// From the last answer with addresses.
	Addrs      []netip.Addr  // sorted, without duplicates; do not modify
	TTL        time.Duration // least TTL of the CNAMEs and the addresses, before caches counted it down
	Chain      []Link        // the CNAMEs; do not modify
	Learned    time.Time     // when Addrs changed
	ValidUntil time.Time     // when the TTL expires

	Answer      Cause     // last answer: Found, NoData or NXDomain; empty: none yet
	AnswerChain []Link    // CNAMEs of the last answer, with or without addresses; do not modify
	Proven      bool      // the negative answer had the SOA record of RFC 2308
	Err         *Error    // why the last attempt failed; nil: it succeeded
	Failures    int       // failed attempts since the last answer
	Since       time.Time // when Answer or the cause in Err changed
	LastSuccess time.Time // time of the last answer with addresses
	NextAttempt time.Time
}

// Cause returns the result of the last attempt; empty: none yet.
func (s State) Cause() Cause {
	if s.Err != nil {
		return s.Err.Cause
	}
	return s.Answer
}

// Change is one reported change.
type Change struct {
	Name     dnsname.Name
	Family   Family // a single family
	Old, New State
}

// Same reports whether nothing changed: the change only reports the end of a Refresh.
func (c Change) Same() bool { return !c.Old.differs(&c.New) }

// outcome is the result of one attempt.
type outcome struct {
	answer Cause // empty: the attempt failed, see err
	err    *Error

	addrs       []netip.Addr
	addrTTL     time.Duration // TTL of the address records
	ttl         time.Duration // least of addrTTL and the TTLs of the chain, or the negative TTL
	originalTTL time.Duration // ttl as the zone owners set it, before caches counted it down
	chain       []Link
	proven      bool
}

// after returns the state after an attempt, except NextAttempt.
func (s State) after(o outcome, now time.Time) State {
	was := s
	if o.err != nil {
		s.Err = o.err
		s.Failures++
	} else {
		s.Answer, s.Proven, s.AnswerChain, s.Err, s.Failures = o.answer, o.proven, o.chain, nil, 0
	}
	if o.answer == Found {
		same := slices.Equal(was.Addrs, o.addrs)
		s.TTL = o.originalTTL
		if !same {
			s.Addrs, s.Learned = o.addrs, now
		}
		s.Chain, s.ValidUntil, s.LastSuccess = o.chain, now.Add(o.ttl), now
	}
	if was.Cause() != s.Cause() || was.Answer != s.Answer {
		s.Since = now
	}
	return s
}

// differs reports whether a follower who knows s must be notified of t. The time of the last success, the next attempt
// and repeated failures of the same cause are not reported.
func (s *State) differs(t *State) bool {
	return s.TTL != t.TTL || s.Answer != t.Answer || s.Cause() != t.Cause() || !slices.Equal(s.Addrs, t.Addrs)
}
