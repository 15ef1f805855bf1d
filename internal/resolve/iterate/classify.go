package iterate

import (
	"context"
	"errors"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// Class is what a reply means to somebody who walks down from the root. Its text is part of the format of a Trace.
type Class string

// The classes.
const (
	Answer   Class = "answer"   // has what was asked for, or an alias in its place
	NoData   Class = "nodata"   // the name is there, the type is not
	NXDomain Class = "nxdomain" // the name, or the last one that its aliases lead to, is not there
	Referral Class = "referral" // a zone further down is asked

	Upward       Class = "upward"        // refers to where we came from, or above
	LameRefused  Class = "lame-refused"  // REFUSED
	LameServfail Class = "lame-servfail" // SERVFAIL
	LameNotAuth  Class = "lame-notauth"  // NOTAUTH, or a reply without authority that leads nowhere
	Recursed     Class = "recursed"      // a resolver's reply, from a cache that is not ours to trust

	Truncated Class = "truncated"
	FormErr   Class = "formerr"
	NotImp    Class = "notimp"
	BadVers   Class = "badvers"
	BadCookie Class = "badcookie"
	NoSOA     Class = "no-soa" // a negative reply of an authority, without the SOA record that it needs (RFC 2308 §2)
	Odd       Class = "odd"    // no rule fits: another RCODE, or records that nobody asked for

	Timeout          Class = "timeout"
	Unreachable      Class = "unreachable"
	BadID            Class = "bad-id"
	QuestionMismatch Class = "question-mismatch"
	ParseError       Class = "parse-error"

	Unknown Class = "unknown" // not asked, or given up, because the budget was used up: says nothing about the server
)

// errCut is that a reply over UDP was truncated.
var errCut = errors.New("the reply was cut off")

// Usable reports whether the walk can go on from a reply of the class.
func (c Class) Usable() bool { return c == Answer || c == NoData || c == NXDomain || c == Referral }

// Lame reports whether a server that is listed for a zone replied, but not as an authority for it.
func (c Class) Lame() bool {
	return c == Upward || c == LameRefused || c == LameServfail || c == LameNotAuth || c == Recursed
}

// Transport reports whether no reply was had that can be judged. It says that the server was not reached, and never that it
// is lame: a server under stress is not a wrong one.
func (c Class) Transport() bool {
	return c == Timeout || c == Unreachable || c == BadID || c == QuestionMismatch || c == ParseError
}

var rcodes = map[int]Class{dns.RcodeRefused: LameRefused, dns.RcodeServerFailure: LameServfail, dns.RcodeNotAuth: LameNotAuth,
	dns.RcodeFormatError: FormErr, dns.RcodeNotImplemented: NotImp, dns.RcodeBadVers: BadVers, dns.RcodeBadCookie: BadCookie}

// Classify judges what came of asking a server for zone a question: a reply, or the error of its Exchanger.
func Classify(zone dnsname.Name, q Question, reply *dns.Msg, err error) Class {
	switch {
	case err != nil || reply == nil:
		return failure(err)
	case len(reply.Question) > 0 && !q.is(reply.Question[0]):
		return QuestionMismatch
	case reply.Truncated:
		return Truncated
	}
	if c, ok := rcodes[reply.Rcode]; ok {
		return c
	}
	switch reply.Rcode {
	case dns.RcodeNameError:
		return classifyNXDomain(zone, q, reply)
	case dns.RcodeSuccess:
		return classifySuccess(zone, q, reply)
	}
	return Odd
}

// failure is the class of an error. What is not known better is a server that could not be reached.
func failure(err error) Class {
	switch {
	case errors.Is(err, resolve.ErrBudget), errors.Is(err, context.Canceled):
		return Unknown
	case errors.Is(err, errCut):
		return Truncated
	case errors.Is(err, resolve.ErrID): // before timeouts, which a Client's are, too, as it waits for the right reply
		return BadID
	case errors.Is(err, resolve.ErrQuestion):
		return QuestionMismatch
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case err != nil && resolve.IsUnreadable(err):
		return ParseError
	}
	return Unreachable
}

// classifyNXDomain judges a reply of RCODE 3, which is about the last name of a chain of aliases (RFC 6604 §3).
func classifyNXDomain(zone dnsname.Name, q Question, m *dns.Msg) Class {
	last := lastName(q, m.Answer)
	switch {
	case !m.Authoritative && m.RecursionAvailable:
		return Recursed
	case last != q.Name && !m.Authoritative:
		return LameNotAuth
	case last != q.Name && !last.IsIn(zone):
		return Answer // of the alias; what it leads to is not for this server to say
	case !soaOwner(zone, last, m.Ns).IsZero():
		return NXDomain
	case m.Authoritative:
		return NoSOA
	}
	return LameNotAuth
}

func classifySuccess(zone dnsname.Name, q Question, m *dns.Msg) Class {
	if len(m.Answer) > 0 {
		switch {
		case m.Authoritative && answers(q, m.Answer):
			return Answer
		case m.Authoritative:
			return Odd
		case m.RecursionAvailable:
			return Recursed
		}
		return LameNotAuth
	}
	negative := !soaOwner(zone, q.Name, m.Ns).IsZero()
	switch {
	case m.Authoritative && negative:
		return NoData
	case !cutBelow(zone, q.Name, m.Ns).IsZero():
		return Referral // with AA too: some servers set it
	case refersUp(zone, m):
		return Upward
	case m.Authoritative:
		return NoSOA
	case m.RecursionAvailable && slices.ContainsFunc(m.Ns, isType(dns.TypeSOA)):
		return Recursed
	}
	return LameNotAuth
}

// refersUp reports whether a reply has NS records of the zone itself or of one above it. An authority may list the zone's
// own servers, so from one only those above count.
func refersUp(zone dnsname.Name, m *dns.Msg) bool {
	return slices.ContainsFunc(m.Ns, func(rec dns.RR) bool {
		owner, ok := ownerOf(rec, dns.TypeNS)
		return ok && zone.IsIn(owner) && (owner != zone || !m.Authoritative)
	})
}

// answers reports whether an answer section has what was asked for: the type, a CNAME in its place, or a DNAME above it.
func answers(q Question, section []dns.RR) bool {
	return slices.ContainsFunc(section, func(rec dns.RR) bool {
		owner, err := dnsname.Parse(rec.Header().Name)
		if err != nil {
			return false
		}
		switch t := rec.Header().Rrtype; {
		case owner == q.Name:
			return t == uint16(q.Type) || t == dns.TypeCNAME
		default:
			return t == dns.TypeDNAME && q.Name.IsIn(owner)
		}
	})
}

// soaOwner is the owner of an SOA record that can speak for name, in zone or below it; zero if there is none.
func soaOwner(zone, name dnsname.Name, section []dns.RR) dnsname.Name {
	return ownerBetween(zone, name, section, dns.TypeSOA)
}

// cutBelow is the zone cut that a section refers to: the owner of NS records strictly below zone, at or above name.
func cutBelow(zone, name dnsname.Name, section []dns.RR) dnsname.Name {
	if cut := ownerBetween(zone, name, section, dns.TypeNS); cut != zone {
		return cut
	}
	return dnsname.Name{}
}

// ownerBetween is the deepest owner of records of a type from zone down to name.
func ownerBetween(zone, name dnsname.Name, section []dns.RR, typ uint16) (deepest dnsname.Name) {
	for _, rec := range section {
		owner, ok := ownerOf(rec, typ)
		if ok && owner.IsIn(zone) && name.IsIn(owner) && (deepest.IsZero() || owner.IsIn(deepest)) {
			deepest = owner
		}
	}
	return deepest
}

func ownerOf(rec dns.RR, typ uint16) (dnsname.Name, bool) {
	if rec.Header().Rrtype != typ {
		return dnsname.Name{}, false
	}
	owner, err := dnsname.Parse(rec.Header().Name)
	return owner, err == nil
}

func isType(typ uint16) func(dns.RR) bool {
	return func(rec dns.RR) bool { return rec.Header().Rrtype == typ }
}
