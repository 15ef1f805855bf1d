package iterate

import (
	"context"
	"errors"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// Class is the meaning of a reply for a walk from the root. Its text is part of the format of a Trace.
type Class string

// The classes.
const (
	Answer   Class = "answer"   // has the requested records, or an alias instead of them
	NoData   Class = "nodata"   // the name exists, the type does not
	NXDomain Class = "nxdomain" // the name, or the last name of its alias chain, does not exist
	Referral Class = "referral" // refers to a zone further down

	Upward       Class = "upward"        // refers to the zone itself or to a zone above it
	LameRefused  Class = "lame-refused"  // REFUSED
	LameServfail Class = "lame-servfail" // SERVFAIL
	LameNotAuth  Class = "lame-notauth"  // NOTAUTH, or a reply without the AA bit that refers to no zone below
	Recursed     Class = "recursed"      // a reply of a resolver from its cache, which must not be trusted

	Truncated Class = "truncated"
	FormErr   Class = "formerr"
	NotImp    Class = "notimp"
	BadVers   Class = "badvers"
	BadCookie Class = "badcookie"
	NoSOA     Class = "no-soa" // a negative authoritative reply without the SOA record that it needs (RFC 2308 §2)
	Odd       Class = "odd"    // no rule matches: another RCODE, or records that the question did not ask for

	Timeout          Class = "timeout"
	Unreachable      Class = "unreachable"
	BadID            Class = "bad-id"
	QuestionMismatch Class = "question-mismatch"
	ParseError       Class = "parse-error"

	Unknown Class = "unknown" // not sent or given up because a budget was used up: says nothing about the server
)

// errCut reports that a reply over UDP was truncated.
var errCut = errors.New("the reply was cut off")

// Usable reports whether the walk can continue with a reply of this class.
func (c Class) Usable() bool { return c == Answer || c == NoData || c == NXDomain || c == Referral }

// Lame reports whether a server in the NS set of a zone replied, but not as an authority for the zone.
func (c Class) Lame() bool {
	return c == Upward || c == LameRefused || c == LameServfail || c == LameNotAuth || c == Recursed
}

// Transport reports whether there was no reply that can be classified. Such a server counts as not reached and never
// as lame: it may only be overloaded.
func (c Class) Transport() bool {
	return c == Timeout || c == Unreachable || c == BadID || c == QuestionMismatch || c == ParseError
}

var rcodes = map[int]Class{
	dns.RcodeRefused:        LameRefused,
	dns.RcodeServerFailure:  LameServfail,
	dns.RcodeNotAuth:        LameNotAuth,
	dns.RcodeFormatError:    FormErr,
	dns.RcodeNotImplemented: NotImp,
	dns.RcodeBadVers:        BadVers,
	dns.RcodeBadCookie:      BadCookie,
}

// Classify returns the class of an exchange with a server of zone: of the reply, or of the error of the Exchanger.
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

// failure returns the class of an error. Unknown errors mean that the server could not be reached.
func failure(err error) Class {
	switch {
	case errors.Is(err, resolve.ErrBudget), errors.Is(err, context.Canceled):
		return Unknown
	case errors.Is(err, errCut):
		return Truncated
	// before DeadlineExceeded: a Client waits for the right reply, so its error is both
	case errors.Is(err, resolve.ErrID):
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

// classifyNXDomain classifies a reply with RCODE 3, which is about the last name of an alias chain (RFC 6604 §3).
func classifyNXDomain(zone dnsname.Name, q Question, m *dns.Msg) Class {
	last := lastName(q, m.Answer)
	switch {
	case !m.Authoritative && m.RecursionAvailable:
		return Recursed
	case last != q.Name && !m.Authoritative:
		return LameNotAuth
	case last != q.Name && !last.IsIn(zone):
		return Answer // only the alias counts: this server has no authority over its target
	case !soaOwner(zone, last, m.Ns).IsZero():
		return NXDomain
	case m.Authoritative:
		return NoSOA
	}
	return LameNotAuth
}

// classifySuccess classifies a reply with RCODE 0.
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
		return Referral // even with AA: some servers set it in referrals
	case refersUp(zone, m):
		return Upward
	case m.Authoritative:
		return NoSOA
	case m.RecursionAvailable && slices.ContainsFunc(m.Ns, isType(dns.TypeSOA)):
		return Recursed
	}
	return LameNotAuth
}

// refersUp reports whether a reply has NS records of the zone itself or of a zone above it. An authoritative reply
// may list the servers of the zone itself, so there only zones above count.
func refersUp(zone dnsname.Name, m *dns.Msg) bool {
	return slices.ContainsFunc(m.Ns, func(rec dns.RR) bool {
		owner, ok := ownerOf(rec, dns.TypeNS)
		return ok && zone.IsIn(owner) && (owner != zone || !m.Authoritative)
	})
}

// answers reports whether an answer section has the requested type, a CNAME of the name, or a DNAME above it.
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

// soaOwner returns the owner of an SOA record for name, at or below zone. It returns the zero name if there is none.
func soaOwner(zone, name dnsname.Name, section []dns.RR) dnsname.Name {
	return ownerBetween(zone, name, section, dns.TypeSOA)
}

// cutBelow returns the zone cut that a section refers to: the owner of NS records strictly below zone, at or above
// name.
func cutBelow(zone, name dnsname.Name, section []dns.RR) dnsname.Name {
	if cut := ownerBetween(zone, name, section, dns.TypeNS); cut != zone {
		return cut
	}
	return dnsname.Name{}
}

// ownerBetween returns the deepest owner of records of a type from zone down to name.
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
