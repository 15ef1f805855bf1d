package simnet

import (
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// view is a record set that only some clients get.
type view struct {
	clients netip.Prefix
	key     key
	set     []dns.RR
}

// zoneLocked returns the SOA record of the deepest zone that contains a name, or nil. Callers of functions with the
// suffix Locked hold mu.
func (s *Server) zoneLocked(name dnsname.Name) *dns.SOA { return s.zones[s.apexLocked(name)] }

// apexLocked returns the deepest zone that contains a name, or the zero name.
func (s *Server) apexLocked(name dnsname.Name) dnsname.Name {
	for n := name; !n.IsZero(); n = n.Parent() {
		if s.zones[n] != nil {
			return n
		}
	}
	return dnsname.Name{}
}

// answerLocked answers as an authority (RFC 1034 §4.3.2). It is independent of package lookup on purpose: tests need an
// authority that can be wrong, and a mistake in lookup must not appear on both sides of a test.
func (s *Server) answerLocked(q *query) {
	r, k := q.reply, q.key
	r.Authoritative = true
	switch {
	case q.msg.Question[0].Qclass == dns.ClassCHAOS:
		s.chaosLocked(q)
		return
	case s.zoneLocked(k.name) == nil:
		r.Authoritative, r.Rcode = false, dns.RcodeRefused
		return
	case k.typ == dns.TypeAXFR:
		s.transferLocked(q)
		return
	}
	for seen := map[dnsname.Name]bool{}; !seen[k.name]; {
		seen[k.name] = true
		if s.zoneLocked(k.name) == nil { // a CNAME points outside the zones of this server
			break
		}
		next, more := s.stepLocked(q, k)
		if !more {
			break
		}
		k.name = next
	}
	s.signLocked(q)
}

// stepLocked adds the records for one name of an alias chain. It returns the next name of the chain.
func (s *Server) stepLocked(q *query, k key) (next dnsname.Name, more bool) {
	r := q.reply
	if s.referLocked(k, r) {
		return next, false
	}
	if set := s.setLocked(q, k); len(set) > 0 {
		s.addLocked(q, k, set)
		s.primeLocked(set, r)
		return next, false
	}
	if alias := s.setLocked(q, key{k.name, dns.TypeCNAME}); len(alias) > 0 {
		s.addLocked(q, key{k.name, dns.TypeCNAME}, alias)
		return dnsname.MustParse(alias[0].(*dns.CNAME).Target), !s.behavior.lazy
	}
	if set := s.dnameLocked(k.name); set != nil {
		r.Answer = append(r.Answer, dns.Copy(set[0]), set[1])
		return dnsname.MustParse(set[1].(*dns.CNAME).Target), true
	}
	if !s.existsLocked(k.name) && len(s.wildcardLocked(k.name)) == 0 || s.behavior.hollow && !s.hasLocked(k.name) {
		r.Rcode = dns.RcodeNameError
	}
	switch soa := s.zones[s.signingLocked(k.name, k.typ)]; {
	case s.behavior.loose:
		r.Ns = append(r.Ns, dns.Copy(soa))
	case !s.behavior.bare:
		r.Ns = append(r.Ns, negative(soa))
	}
	return next, false
}

// existsLocked reports whether a name or a name below it has records.
func (s *Server) existsLocked(name dnsname.Name) bool {
	return s.names[name] > 0 || s.zones[name] != nil
}

// setLocked returns the records of a name and type for the client. Each zone has an SOA record even without a
// command. A name that does not exist has the records of the wildcard at its closest encloser (RFC 4592 §3.3.1).
func (s *Server) setLocked(q *query, k key) []dns.RR {
	if set := s.viewLocked(q, k); set != nil {
		return set
	}
	if soa := s.zones[k.name]; soa != nil && k.typ == dns.TypeSOA {
		return []dns.RR{soa}
	}
	if key := s.signers[k.name]; key != nil && k.typ == dns.TypeDNSKEY {
		if key.extra != nil {
			return []dns.RR{key.public, key.extra}
		}
		return []dns.RR{key.public}
	}
	if s.existsLocked(k.name) {
		return s.sets[k]
	}
	star := s.wildcardLocked(k.name)
	var set []dns.RR
	for _, rec := range star {
		if rec.Header().Rrtype == k.typ {
			if q.wild == nil {
				q.wild = map[dnsname.Name]dnsname.Name{}
			}
			q.wild[k.name] = dnsname.MustParse(rec.Header().Name)
			rec = dns.Copy(rec)
			rec.Header().Name = k.name.String()
			set = append(set, rec)
		}
	}
	return set
}

// viewLocked returns the records of a name and type from the view of the client, if there is one.
func (s *Server) viewLocked(q *query, k key) (set []dns.RR) {
	for _, v := range s.views {
		if v.key != k {
			continue
		}
		q.scope = max(q.scope, v.clients.Bits())
		if v.clients.Contains(q.client.Addr()) && v.clients.Bits() <= q.client.Bits() {
			set = v.set
		}
	}
	return set
}

// wildcardLocked returns all records of the wildcard that matches a name that does not exist.
func (s *Server) wildcardLocked(name dnsname.Name) (all []dns.RR) {
	star, err := s.encloserLocked(name).Child("*")
	if err != nil || s.names[star] == 0 {
		return nil
	}
	for k, set := range s.sets {
		if k.name == star {
			all = append(all, set...)
		}
	}
	return all
}

// encloserLocked returns the closest encloser of a name: its nearest existing ancestor.
func (s *Server) encloserLocked(name dnsname.Name) dnsname.Name {
	n := name.Parent()
	for !n.IsZero() && !s.existsLocked(n) {
		n = n.Parent()
	}
	return n
}

// hasLocked reports whether a name itself has records.
func (s *Server) hasLocked(name dnsname.Name) bool {
	for k := range s.sets {
		if k.name == name {
			return true
		}
	}
	return s.zones[name] != nil
}

// addLocked adds copies of the records of a set, so that callers cannot change the originals.
func (s *Server) addLocked(q *query, k key, set []dns.RR) {
	first := 0
	if s.behavior.rotate {
		first = q.nth % len(set)
	}
	ttls, part := s.behavior.ttls[k], s.behavior.parts[k]
	if part > 0 {
		set = slices.Concat(set[q.nth%len(set):], set[:q.nth%len(set)])[:min(part, len(set))]
		first = 0
	}
	for i := range set {
		rec := dns.Copy(set[(first+i)%len(set)])
		if len(ttls) > 0 {
			rec.Header().Ttl = ttls[(q.nth-1)%len(ttls)]
		}
		q.reply.Answer = append(q.reply.Answer, rec)
	}
}

// negative returns the SOA record of a negative answer (RFC 2308 §3).
func negative(soa *dns.SOA) dns.RR {
	c := dns.Copy(soa).(*dns.SOA)
	c.Hdr.Ttl = min(c.Hdr.Ttl, c.Minttl)
	return c
}

// transferLocked sends the whole zone in one message over TCP (RFC 5936), or refuses.
func (s *Server) transferLocked(q *query) {
	soa := s.zones[q.name]
	if !s.behavior.transfers || soa == nil || q.via.transport == resolve.UDP {
		q.reply.Rcode, q.reply.Authoritative = dns.RcodeRefused, false
		return
	}
	q.reply.Answer = []dns.RR{soa}
	for k, set := range s.sets {
		if s.apexLocked(k.name) == q.name {
			q.reply.Answer = append(q.reply.Answer, set...)
		}
	}
	q.reply.Answer = append(q.reply.Answer, soa)
}

// chaosLocked answers queries for the identity of the server (RFC 4892).
func (s *Server) chaosLocked(q *query) {
	q.reply.Authoritative = false
	if id := s.behavior.nsid; id != "" && q.typ == dns.TypeTXT && (q.name.String() == "id.server." ||
		q.name.String() == "hostname.bind.") {
		head := dns.RR_Header{Name: q.msg.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassCHAOS}
		q.reply.Answer = []dns.RR{&dns.TXT{Hdr: head, Txt: []string{id}}}
		return
	}
	q.reply.Rcode = dns.RcodeRefused
}

// putLocked replaces the records of a name and type. An empty set removes them.
func (s *Server) putLocked(k key, set []dns.RR) {
	if soa := s.zones[k.name]; soa != nil && k.typ == dns.TypeSOA && len(set) > 0 {
		s.zones[k.name] = set[len(set)-1].(*dns.SOA)
		return
	}
	was := len(s.sets[k]) > 0
	s.sets[k] = slices.Clip(set)
	step := 0
	switch is := len(set) > 0; {
	case is && !was:
		step = 1
	case !is && was:
		step = -1
		delete(s.sets, k)
	}
	for n := k.name; step != 0 && !n.IsZero(); n = n.Parent() {
		s.names[n] += step
	}
}
