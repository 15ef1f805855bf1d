// Package learn says what a DNS reply teaches about a name of an egress rule, and what that changes in the stored status.
package learn

import (
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Lesson is what one reply says about the name that was asked for.
type Lesson struct {
	Name    string // lower case, with its final dot
	Type    uint16 // what was asked
	Addrs   []Address
	Partial bool // the reply was cut (TC): an address that is missing may be one that did not fit
	Rcode   int
	Failed  bool // the lookup counts as a failure of the name
}

// Address is one of them, and for how long it may be used.
type Address struct {
	Addr netip.Addr
	TTL  time.Duration
}

// maxChain is how many CNAMEs and DNAMEs are followed in one reply. Resolvers give up between 8 and 16.
const maxChain = 32

// Asks reports whether answers to q can teach something: addresses, or hints of them.
func Asks(q dns.Question) bool {
	return q.Qclass == dns.ClassINET &&
		(q.Qtype == dns.TypeA || q.Qtype == dns.TypeAAAA || q.Qtype == dns.TypeHTTPS || q.Qtype == dns.TypeSVCB)
}

// FromReply reads the reply to q. It reports false when there is nothing to learn from it at all.
//
// Addresses count only when their owner is on the chain of CNAMEs and DNAMEs that begins at the question: whoever can put a
// record of another owner into a reply must not open a firewall with it. A TTL of zero, or one that RFC 2181 §8 says is to be
// read as zero, becomes MinTTL; a larger one than MaxTTL becomes that.
func (r Rules) FromReply(q dns.Question, reply *dns.Msg) (Lesson, bool) {
	name, err := dnsname.Parse(q.Name)
	if reply == nil || err != nil || !Asks(q) {
		return Lesson{}, false
	}
	if reply.Rcode != dns.RcodeSuccess {
		return FromFailure(q, reply.Rcode)
	}
	l := Lesson{Name: name.String(), Type: q.Qtype, Partial: reply.Truncated}
	in := newReader(reply.Answer, r)
	var seen []dnsname.Name // so that what stands on a loop is read once
	for range maxChain {
		seen = append(seen, name)
		found, next := in.at(name, q.Qtype)
		l.Addrs = append(l.Addrs, found...)
		if next.IsZero() || slices.Contains(seen, next) {
			break
		}
		name = next
	}
	l.Addrs = merge(l.Addrs)
	return l, true
}

// FromFailure is FromReply for a lookup that ended without a message. Only questions for addresses count: that a name has no
// working HTTPS record says nothing about its addresses.
func FromFailure(q dns.Question, rcode int) (Lesson, bool) {
	name, err := dnsname.Parse(q.Name)
	if err != nil || q.Qclass != dns.ClassINET || q.Qtype != dns.TypeA && q.Qtype != dns.TypeAAAA {
		return Lesson{}, false
	}
	return Lesson{Name: name.String(), Type: q.Qtype, Rcode: rcode, Failed: true}, true
}

// Family is whether l is about IPv4 addresses, IPv6 addresses, or both.
func (l Lesson) Family() (v4, v6 bool) {
	return l.Type != dns.TypeAAAA, l.Type != dns.TypeA
}

// reader looks for records of one owner. Owners are parsed once, though the records are read for each name of the chain.
type reader struct {
	answer []dns.RR
	owners []dnsname.Name // of answer
	rules  Rules
}

func newReader(answer []dns.RR, rules Rules) *reader {
	r := &reader{answer: answer, owners: make([]dnsname.Name, len(answer)), rules: rules}
	for i, rr := range answer {
		if i > 0 && rr.Header().Name == answer[i-1].Header().Name {
			r.owners[i] = r.owners[i-1]
			continue
		}
		r.owners[i], _ = dnsname.Parse(rr.Header().Name)
	}
	return r
}

// at collects what the reply says of name, and where the chain goes on from there; the zero Name when it ends.
func (r *reader) at(name dnsname.Name, qtype uint16) (found []Address, next dnsname.Name) {
	var dname *dns.DNAME // the last of them: there is one, or somebody has nothing good in mind
	var above dnsname.Name
	for i, rr := range r.answer {
		h, owner := rr.Header(), r.owners[i]
		if h.Class != dns.ClassINET {
			continue
		}
		if d, ok := rr.(*dns.DNAME); ok && owner != name && name.IsIn(owner) {
			dname, above = d, owner
			continue
		}
		if owner != name {
			continue
		}
		if c, ok := rr.(*dns.CNAME); ok {
			next, _ = dnsname.Parse(c.Target)
			continue
		}
		addrs, alias := addresses(rr, qtype)
		for _, a := range addrs {
			found = append(found, Address{a, r.ttl(h.Ttl)})
		}
		if !alias.IsZero() {
			next = alias
		}
	}
	if next.IsZero() && dname != nil { // a DNAME comes with the CNAME made of it (RFC 6672 §3.1), which says the same
		next = substitute(name, above, dname.Target)
	}
	return found, next
}

func (r *reader) ttl(seconds uint32) time.Duration {
	if seconds >= 1<<31 || seconds == 0 {
		return r.rules.MinTTL
	}
	return min(time.Duration(seconds)*time.Second, r.rules.MaxTTL)
}

// addresses are those in one record of the type that was asked for, and the name that it is an alias of, if it is one.
func addresses(rr dns.RR, qtype uint16) ([]netip.Addr, dnsname.Name) {
	switch rr := rr.(type) {
	case *dns.A:
		if a, ok := netip.AddrFromSlice(rr.A.To4()); ok && qtype == dns.TypeA {
			return []netip.Addr{a}, dnsname.Name{}
		}
	case *dns.AAAA:
		// An IPv4 address in IPv6 clothes stays one of IPv6 here, and Policy judges it.
		if a, ok := netip.AddrFromSlice(rr.AAAA.To16()); ok && qtype == dns.TypeAAAA {
			return []netip.Addr{a}, dnsname.Name{}
		}
	case *dns.HTTPS:
		if qtype == dns.TypeHTTPS {
			return hints(&rr.SVCB)
		}
	case *dns.SVCB:
		if qtype == dns.TypeSVCB {
			return hints(rr)
		}
	}
	return nil, dnsname.Name{}
}

// hints are the addresses a client may use before it has asked for the target's (RFC 9460 §7.3). A record of priority zero
// has none: it is an alias (§2.4.2).
func hints(rr *dns.SVCB) ([]netip.Addr, dnsname.Name) {
	if rr.Priority == 0 {
		if rr.Target == "." {
			return nil, dnsname.Name{}
		}
		target, _ := dnsname.Parse(rr.Target)
		return nil, target
	}
	var out []netip.Addr
	for _, kv := range rr.Value {
		switch kv := kv.(type) {
		case *dns.SVCBIPv4Hint:
			for _, ip := range kv.Hint {
				if a, ok := netip.AddrFromSlice(ip.To4()); ok {
					out = append(out, a)
				}
			}
		case *dns.SVCBIPv6Hint:
			for _, ip := range kv.Hint {
				if a, ok := netip.AddrFromSlice(ip.To16()); ok {
					out = append(out, a)
				}
			}
		}
	}
	return out, dnsname.Name{}
}

// substitute is where a DNAME at owner leads name to (RFC 6672 §2.2). A result that is too long is none.
func substitute(name, owner dnsname.Name, target string) dnsname.Name {
	t, err := dnsname.Parse(target)
	if err != nil {
		return dnsname.Name{}
	}
	n, _, err := dnsname.FromWire([]byte(name.In(owner) + t.Wire()))
	if err != nil {
		return dnsname.Name{}
	}
	return n
}

// merge leaves each address once, with the larger of its lifetimes.
func merge(addrs []Address) []Address {
	slices.SortStableFunc(addrs, func(a, b Address) int { return a.Addr.Compare(b.Addr) })
	out := addrs[:0]
	for _, a := range addrs {
		if n := len(out); n > 0 && out[n-1].Addr == a.Addr {
			out[n-1].TTL = max(out[n-1].TTL, a.TTL)
			continue
		}
		out = append(out, a)
	}
	return out
}
