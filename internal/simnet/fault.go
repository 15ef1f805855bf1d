package simnet

import (
	"net"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// faultKind is a kind of fault.
type faultKind string

// The faults, by their names in scripts.
const (
	none        faultKind = ""
	timeout     faultKind = "timeout"     // no reply
	unreachable faultKind = "unreachable" // nothing listens at the address
	servfail    faultKind = "servfail"
	refused     faultKind = "refused"
	formerr     faultKind = "formerr"
	nxdomain    faultKind = "nxdomain"  // denies the name, with an SOA record
	nodata      faultKind = "nodata"    // denies the type, with an SOA record
	empty       faultKind = "empty"     // no records at all, not even an SOA record
	lame        faultKind = "lame"      // refers to the root servers
	bogus       faultKind = "bogus"     // addresses of a name that is not in the question
	question    faultKind = "question"  // the reply to another question
	id          faultKind = "id"        // the reply with another ID
	malformed   faultKind = "malformed" // bytes that are not a message
	notimp      faultKind = "notimp"
	notauth     faultKind = "notauth"
	badvers     faultKind = "badvers"   // rejects all versions of EDNS
	modest      faultKind = "modest"    // the AA bit is off
	recursed    faultKind = "recursed"  // the AA bit is off and the RA bit is on
	truncate    faultKind = "truncate"  // truncated over UDP
	truncated   faultKind = "truncated" // truncated over UDP and TCP
)

var faultKinds = []faultKind{timeout, unreachable, servfail, refused, formerr, nxdomain, nodata, empty, lame, bogus,
	question, id, malformed, truncate, truncated, notimp, notauth, badvers, modest, recursed}

// fault is a fault for some questions.
type fault struct {
	kind faultKind
	key  key // zero name: any; zero type: any
}

func (f fault) fits(k key) bool {
	return (f.key.name.IsZero() || f.key.name == k.name) && (f.key.typ == 0 || f.key.typ == k.typ)
}

// fault returns the fault that applies to a question now.
func (m *behavior) fault(k key) faultKind {
	for _, f := range slices.Backward(m.faults) {
		if f.fits(k) {
			return f.kind
		}
	}
	return none
}

var rcodes = map[faultKind]int{servfail: dns.RcodeServerFailure, refused: dns.RcodeRefused,
	formerr: dns.RcodeFormatError, notimp: dns.RcodeNotImplemented, notauth: dns.RcodeNotAuth, badvers: dns.RcodeBadVers}

// apply changes a reply according to the fault.
func (f faultKind) apply(r *dns.Msg, tr resolve.Transport) {
	q := r.Question[0]
	clear := func() { r.Rcode, r.Answer, r.Ns, r.Extra = dns.RcodeSuccess, nil, nil, onlyOPT(r) }
	switch f {
	case modest, recursed:
		r.Authoritative, r.RecursionAvailable = false, f == recursed
	case badvers:
		if r.IsEdns0() != nil {
			clear()
			r.Rcode = rcodes[f]
		}
	case servfail, refused, formerr, notimp, notauth:
		clear()
		r.Rcode = rcodes[f]
	case nxdomain, nodata:
		clear()
		r.Ns = []dns.RR{soa(dnsname.Root, 60, 60)}
		if f == nxdomain {
			r.Rcode = dns.RcodeNameError
		}
	case empty:
		clear()
	case lame:
		clear()
		r.Authoritative = false
		r.Ns = []dns.RR{&dns.NS{Hdr: header(".", dns.TypeNS, 518400), Ns: "a.root-servers.test."}}
	case bogus:
		clear()
		r.Answer = []dns.RR{unrelated(q.Qtype)}
	case question:
		r.Question = []dns.Question{{Name: unrelatedName, Qtype: q.Qtype, Qclass: q.Qclass}}
		r.Rcode, r.Answer = dns.RcodeSuccess, []dns.RR{unrelated(q.Qtype)}
	case id:
		r.Id++
	case malformed:
		clear()
		r.Answer = []dns.RR{unrelated(q.Qtype)}
		r.Extra = nil
	case truncate:
		if tr == resolve.UDP {
			truncateReply(r)
		}
	case truncated:
		truncateReply(r)
	}
}

func header(name string, typ uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: typ, Class: dns.ClassINET, Ttl: ttl}
}

// soa returns the SOA record of a zone.
func soa(zone dnsname.Name, ttl, minimum uint32) *dns.SOA {
	return &dns.SOA{Hdr: header(zone.String(), dns.TypeSOA, ttl), Ns: "ns.invalid.", Mbox: "hostmaster.invalid.",
		Serial: 1, Refresh: 7200, Retry: 3600, Expire: 1209600, Minttl: minimum}
}

const unrelatedName = "stray.invalid."

// unrelated returns a record that does not match the question.
func unrelated(typ uint16) dns.RR {
	if typ == dns.TypeAAAA {
		return &dns.AAAA{Hdr: header(unrelatedName, typ, 3600), AAAA: net.ParseIP("2001:db8::bad")}
	}
	return &dns.A{Hdr: header(unrelatedName, dns.TypeA, 3600), A: net.IPv4(203, 0, 113, 66)}
}
