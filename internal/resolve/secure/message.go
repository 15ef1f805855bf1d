package secure

import (
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// reply is one reply of a server, with its records grouped into sets.
type reply struct {
	zone      dnsname.Name // the zone that the server was queried for
	server    netip.Addr
	q         iterate.Question
	class     iterate.Class
	answer    []*set
	authority []*set
}

// set is a record set with its signatures. A set of signatures alone has no records.
type set struct {
	owner   dnsname.Name
	typ     uint16
	records []dns.RR
	sigs    []*dns.RRSIG
	joined  string // cache of content
}

// usable reports whether a reply is evidence. Servers without EDNS support cannot be asked for signatures, so missing
// signatures prove nothing there.
func usable(e *iterate.Exchange) bool { return e.EDNS && e.Class.Usable() && len(e.Reply) > 0 }

// readReplies returns the replies of a trace that are evidence.
func readReplies(trace *iterate.Trace) (out []*reply) {
	for i := range trace.Exchanges {
		e := &trace.Exchanges[i]
		if !usable(e) {
			continue
		}
		m, err := e.Message()
		if err != nil || m == nil {
			continue
		}
		out = append(out, &reply{zone: e.Zone, server: e.Server, q: e.Question, class: e.Class, answer: groupSets(m.Answer),
			authority: groupSets(m.Ns)})
	}
	return out
}

// groupSets groups the records of a section into sets, in the order of their first records.
func groupSets(section []dns.RR) (out []*set) {
	type id struct {
		owner dnsname.Name
		typ   uint16
	}
	known := map[id]*set{}
	find := func(owner dnsname.Name, typ uint16) *set {
		s := known[id{owner, typ}]
		if s == nil {
			s = &set{owner: owner, typ: typ}
			known[id{owner, typ}] = s
			out = append(out, s)
		}
		return s
	}
	for _, rec := range section {
		h := rec.Header()
		owner, err := dnsname.Parse(h.Name)
		if err != nil || h.Class != dns.ClassINET || rr.IsCut(rec) {
			continue
		}
		h.Name = owner.String() // use one spelling: the library compares the owners of a set as text
		if sig, ok := rec.(*dns.RRSIG); ok {
			if s := find(owner, sig.TypeCovered); len(s.sigs) < maxPerSet {
				s.sigs = append(s.sigs, sig)
			}
			continue
		}
		s := find(owner, h.Rrtype)
		s.records = append(s.records, rec)
	}
	return out
}

// pick returns the set of an owner and type, or nil.
func pick(sets []*set, owner dnsname.Name, typ uint16) *set {
	i := slices.IndexFunc(sets, func(s *set) bool { return s.owner == owner && s.typ == typ })
	if i < 0 {
		return nil
	}
	return sets[i]
}

// has reports whether a section has records of an owner and type.
func has(sets []*set, owner dnsname.Name, typ uint16) bool {
	s := pick(sets, owner, typ)
	return s != nil && len(s.records) > 0
}

// soa returns the owner of the SOA record in a negative reply: the zone that sent it.
func (r *reply) soa() dnsname.Name {
	i := slices.IndexFunc(r.authority, func(s *set) bool { return s.typ == dns.TypeSOA && len(s.records) > 0 })
	if i < 0 {
		return dnsname.Name{}
	}
	return r.authority[i].owner
}

func (r *reply) negative() bool { return r.class == iterate.NoData || r.class == iterate.NXDomain }

// keysOf returns the DNSKEY records of a set, at most maxKeys.
func keysOf(s *set) (out []*dns.DNSKEY) {
	if s == nil {
		return nil
	}
	for _, rec := range s.records {
		if k, ok := rec.(*dns.DNSKEY); ok && len(out) < maxKeys {
			out = append(out, k)
		}
	}
	return out
}

// atMostKeys returns the first maxKeys records.
func atMostKeys(records []dns.RR) []dns.RR { return records[:min(len(records), maxKeys)] }
