// Package learn decides what a DNS reply shows about a name of an egress rule, and how that changes the stored status.
//
// Start with Rules.FromReply in learn.go, which turns a reply into an Observation. Rules.Note in memory.go adds an
// observation to the Memory of a name. Rules.Merge in merge.go merges memories into the stored entries. Policy in
// policy.go decides which addresses must not be learned.
package learn

import (
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Observation is the information that one reply gives about the queried name.
type Observation struct {
	Name    string // lower case, with the final dot
	Type    uint16 // the query type
	Addrs   []Address
	Partial bool // the reply was truncated (TC): a missing address may be one that did not fit
	Rcode   int
	Failed  bool // the lookup counts as a failure of the name
}

// Address is an address in a reply and the time for which a client may use it.
type Address struct {
	Addr netip.Addr
	TTL  time.Duration
}

// maxChain is the number of CNAMEs and DNAMEs that are followed in one reply. Resolvers give up between 8 and 16.
const maxChain = 32

// Learnable reports whether an answer to q can contain addresses or address hints.
func Learnable(q dns.Question) bool {
	return q.Qclass == dns.ClassINET &&
		(q.Qtype == dns.TypeA || q.Qtype == dns.TypeAAAA || q.Qtype == dns.TypeHTTPS || q.Qtype == dns.TypeSVCB)
}

// FromReply returns the observation that the reply to q contains. It returns false if there is nothing to learn from
// the reply.
//
// An address counts only if its owner is on the chain of CNAMEs and DNAMEs that begins at the question. Otherwise a
// server could add a record of another owner to the reply and open a firewall with it. A TTL of zero becomes MinTTL,
// and so does a TTL that RFC 2181 §8 treats as zero. A TTL larger than MaxTTL becomes MaxTTL.
func (r Rules) FromReply(q dns.Question, reply *dns.Msg) (Observation, bool) {
	name, err := dnsname.Parse(q.Name)
	if reply == nil || err != nil || !Learnable(q) {
		return Observation{}, false
	}
	if reply.Rcode != dns.RcodeSuccess {
		return FromFailure(q, reply.Rcode)
	}
	l := Observation{Name: name.String(), Type: q.Qtype, Partial: reply.Truncated}
	in := newReader(reply.Answer, r)
	var seen []dnsname.Name // names already read, so that the names of a loop are read once
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

// FromFailure is FromReply for a lookup that ended without a message. Only queries for addresses count: a name without
// a working HTTPS record may still have addresses.
func FromFailure(q dns.Question, rcode int) (Observation, bool) {
	name, err := dnsname.Parse(q.Name)
	if err != nil || q.Qclass != dns.ClassINET || q.Qtype != dns.TypeA && q.Qtype != dns.TypeAAAA {
		return Observation{}, false
	}
	return Observation{Name: name.String(), Type: q.Qtype, Rcode: rcode, Failed: true}, true
}

// Family reports whether l is about IPv4 addresses, IPv6 addresses, or both.
func (l Observation) Family() (v4, v6 bool) {
	return l.Type != dns.TypeAAAA, l.Type != dns.TypeA
}

// reader finds the records of one owner. It parses each owner once, although the records are read for each name of the
// chain.
type reader struct {
	answer []dns.RR
	owners []dnsname.Name // owners of the records in answer
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

// at returns the addresses of name in the reply, and the next name of the chain. next is the zero Name at the end of
// the chain.
func (r *reader) at(name dnsname.Name, qtype uint16) (found []Address, next dnsname.Name) {
	var dname *dns.DNAME // the last one: a correct reply has only one
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
	if next.IsZero() && dname != nil { // a server sends the CNAME that it synthesised from the DNAME too (RFC 6672 §3.1)
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

// addresses returns the addresses in a record of the query type. If the record is an alias, it returns the target.
func addresses(rr dns.RR, qtype uint16) ([]netip.Addr, dnsname.Name) {
	switch rr := rr.(type) {
	case *dns.A:
		if a, ok := netip.AddrFromSlice(rr.A.To4()); ok && qtype == dns.TypeA {
			return []netip.Addr{a}, dnsname.Name{}
		}
	case *dns.AAAA:
		// An IPv4-mapped address stays an IPv6 address here. Policy decides about it.
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

// hints returns the addresses that a client may use before it has resolved the target (RFC 9460 §7.3). A record of
// priority zero has no hints: it is an alias (§2.4.2).
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

// substitute returns the name to which a DNAME at owner redirects name (RFC 6672 §2.2). It returns the zero Name if the
// result is too long.
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

// merge removes duplicate addresses. An address keeps its largest TTL.
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
