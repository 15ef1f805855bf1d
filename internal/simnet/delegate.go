package simnet

import (
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// referLocked replies with a referral if the name is at or below a zone cut: NS records below the apex of a zone. DS
// queries are answered by the parent (RFC 4035 §3.1.4.1).
func (s *Server) referLocked(k key, r *dns.Msg) bool {
	for n := k.name; !n.IsZero() && s.zones[n] == nil; n = n.Parent() {
		set := s.sets[key{n, dns.TypeNS}]
		if len(set) == 0 || n == k.name && k.typ == dns.TypeDS || s.cutAboveLocked(n) {
			continue
		}
		if len(r.Answer) == 0 {
			r.Authoritative = false
		}
		for _, rec := range set {
			r.Ns = append(r.Ns, dns.Copy(rec))
			s.glueLocked(rec.(*dns.NS).Ns, r)
		}
		for _, rec := range s.sets[key{n, dns.TypeDS}] {
			r.Ns = append(r.Ns, dns.Copy(rec))
		}
		return true
	}
	return false
}

// cutAboveLocked reports whether a name is below a zone cut, so that its records are glue.
func (s *Server) cutAboveLocked(name dnsname.Name) bool {
	for n := name.Parent(); !n.IsZero() && s.zones[n] == nil; n = n.Parent() {
		if len(s.sets[key{n, dns.TypeNS}]) > 0 {
			return true
		}
	}
	return false
}

// glueLocked adds the addresses of a name server that this server knows.
func (s *Server) glueLocked(server string, r *dns.Msg) {
	for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA} {
		for _, rec := range s.sets[key{dnsname.MustParse(server), typ}] {
			r.Extra = append(r.Extra, dns.Copy(rec))
		}
	}
}

// dnameLocked returns the DNAME record above a name and the CNAME record that it synthesizes (RFC 6672 §3.1).
func (s *Server) dnameLocked(name dnsname.Name) []dns.RR {
	for n := name.Parent(); !n.IsZero(); n = n.Parent() {
		if set := s.sets[key{n, dns.TypeDNAME}]; len(set) > 0 {
			target := dnsname.MustParse(set[0].(*dns.DNAME).Target)
			to, _, err := dnsname.FromWire([]byte(name.In(n) + target.Wire()))
			if err != nil {
				return nil
			}
			hdr := header(name.String(), dns.TypeCNAME, set[0].Header().Ttl)
			return []dns.RR{set[0], &dns.CNAME{Hdr: hdr, Target: to.String()}}
		}
	}
	return nil
}

// primeLocked adds the addresses of the servers in an NS answer.
func (s *Server) primeLocked(set []dns.RR, r *dns.Msg) {
	for _, rec := range set {
		if ns, ok := rec.(*dns.NS); ok {
			s.glueLocked(ns.Ns, r)
		}
	}
}
