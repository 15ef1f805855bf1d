package simnet

import (
	"fmt"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// flipTTL is that of records where there were none.
const flipTTL = 300

// Flip changes the records of a name at all authorities for the zone that it is in: to these data in presentation form, or to
// none. The TTL stays, the serial goes up. It tells how many servers that were.
func (n *Net) Flip(name dnsname.Name, typ rr.Type, data []string) (int, error) {
	var servers []*Server
	deepest := -1
	for _, addr := range n.addrs() {
		s := n.find(addr)
		switch labels := s.depth(name); {
		case labels < 0 || labels < deepest:
		case labels > deepest:
			servers, deepest = []*Server{s}, labels
		default:
			servers = append(servers, s)
		}
	}
	if len(servers) == 0 {
		return 0, fmt.Errorf("no server here is an authority for %v", name)
	}
	for _, s := range servers {
		if err := s.flip(key{name, uint16(typ)}, data); err != nil {
			return 0, err
		}
	}
	return len(servers), nil
}

// depth is how many labels the deepest zone has that a name is in and that the server does not delegate further down; -1 if there is
// none.
func (s *Server) depth(name dnsname.Name) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	apex := s.apexLocked(name)
	if apex.IsZero() || s.cutAboveLocked(name) || apex != name && len(s.sets[key{name, dns.TypeNS}]) > 0 {
		return -1
	}
	return apex.NumLabels()
}

func (s *Server) flip(k key, data []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUpLocked()
	if len(data) > 0 && k.typ != dns.TypeCNAME && len(s.sets[key{k.name, dns.TypeCNAME}]) > 0 {
		return fmt.Errorf("%v is an alias, beside which there can be no %s: change its CNAME, or remove it first", k.name, rr.Type(k.typ))
	}
	ttl := uint32(flipTTL)
	if old := s.sets[k]; len(old) > 0 {
		ttl = old[0].Header().Ttl
	}
	var set []dns.RR
	for _, d := range data {
		rec, err := dns.NewRR(fmt.Sprintf("%s %d IN %s %s", k.name, ttl, rr.Type(k.typ), d))
		if err != nil || rec == nil {
			return fmt.Errorf("%q is not what a record of type %s has", d, rr.Type(k.typ))
		}
		set = append(set, rec)
	}
	s.putLocked(k, set)
	apex := s.apexLocked(k.name)
	soa := dns.Copy(s.zones[apex]).(*dns.SOA)
	soa.Serial++
	s.zones[apex] = soa
	return nil
}
