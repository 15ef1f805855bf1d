package follow

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Family is a kind of address, or a set of both.
type Family uint8

// The families.
const (
	IPv4 Family = 1 << iota
	IPv6
	Both = IPv4 | IPv6
)

// families are the single ones, in the order of the entries of a node.
var families = [...]Family{IPv4, IPv6}

// String is the record type that holds addresses of the family.
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

// Cause is how an attempt to learn a name's addresses ended. The words are for programs: they appear in APIs and metrics.
type Cause string

// The answers: what somebody who knows has said.
const (
	Found    Cause = "found"
	NoData   Cause = "nodata"   // the name exists without addresses of this family
	NXDomain Cause = "nxdomain" // the name does not exist
)

// The failures: after these nothing is known that was not known before.
const (
	Timeout      Cause = "timeout"
	Network      Cause = "network" // no way to the server, or it hung up
	ServFail     Cause = "servfail"
	Refused      Cause = "refused"
	Lame         Cause = "lame"      // the server sends us elsewhere instead of answering
	FormErr      Cause = "formerr"   // the server cannot read the query, or says so
	Malformed    Cause = "malformed" // we cannot read the reply
	Bogus        Cause = "bogus"     // the reply answers something that was not asked
	Truncated    Cause = "truncated" // even over TCP
	Loop         Cause = "loop"
	ChainTooLong Cause = "chain-too-long"
	Rcode        Cause = "rcode" // any other RCODE; the detail names it
)

// Link is one CNAME on the way from a name to its addresses.
type Link struct {
	Name, Target dnsname.Name
	TTL          time.Duration
}

// Error is why an attempt failed.
type Error struct {
	Cause  Cause
	Server string // the resolver that was asked last
	Detail string // for people
	Chain  []Link // as far as it was walked
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

// State is what is known of one family of a name, and how fresh that is.
//
// What was answered and what failed stand apart, so that a reader who sees only the newest State can decide: a failure
// changes nothing but Err and Failures, and an answer without addresses leaves those of the last one that had some. It is
// Answer that tells whether they still stand.
type State struct {
	// Of the last answer that had addresses.
	Addrs      []netip.Addr  // in order, each once; not to be changed
	TTL        time.Duration // the least of the CNAMEs' and the addresses', not counted down by caches on the way
	Chain      []Link        // not to be changed
	Learned    time.Time     // when Addrs became what they are
	ValidUntil time.Time     // when the TTL is over

	Answer      Cause     // of the last answer: Found, NoData, NXDomain; empty before the first
	Way         []Link    // the CNAMEs of that answer, with addresses at their end or without; not to be changed
	Proven      bool      // the negative answer had the SOA record of RFC 2308
	Err         *Error    // why the last attempt failed; nil if it was answered
	Failures    int       // attempts that failed since the last answer
	Since       time.Time // since when Answer and the cause in Err are what they are
	LastSuccess time.Time // the last answer that had addresses
	NextAttempt time.Time
}

// Cause is how the last attempt ended; empty before the first.
func (s State) Cause() Cause {
	if s.Err != nil {
		return s.Err.Cause
	}
	return s.Answer
}

// Change is what a follower is told.
type Change struct {
	Name     dnsname.Name
	Family   Family // one
	Old, New State
}

// Same reports whether nothing has changed: it is told because somebody wanted to know.
func (c Change) Same() bool { return !c.Old.differs(&c.New) }

// outcome is how one attempt ended.
type outcome struct {
	answer Cause // empty: failed, see err
	err    *Error

	addrs  []netip.Addr
	own    time.Duration // TTL of the addresses
	ttl    time.Duration // the least of it and those of the chain, or how long to believe that there are none
	whole  time.Duration // ttl as the owners set theirs
	chain  []Link
	proven bool
}

// after is the state after an attempt. NextAttempt is left to the schedule.
func (s State) after(o outcome, now time.Time) State {
	was := s
	if o.err != nil {
		s.Err = o.err
		s.Failures++
	} else {
		s.Answer, s.Proven, s.Way, s.Err, s.Failures = o.answer, o.proven, o.chain, nil, 0
	}
	if o.answer == Found {
		same := slices.Equal(was.Addrs, o.addrs)
		s.TTL = o.whole
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

// differs reports whether a follower who knows s has something to learn from t. The moment of the last success, the next
// attempt or one more failure of the same cause are there for those who ask.
func (s *State) differs(t *State) bool {
	return s.TTL != t.TTL || s.Answer != t.Answer || s.Cause() != t.Cause() || !slices.Equal(s.Addrs, t.Addrs)
}
