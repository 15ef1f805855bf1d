package simnet

import (
	"fmt"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// flipTTL is the TTL of new record sets.
const flipTTL = 300

// Flip replaces the records of a name at all authorities for its zone. data is in presentation format; empty data
// removes the records. The TTL is kept and the serial is incremented. Flip returns the number of changed servers.
func (n *Net) Flip(name dnsname.Name, typ rr.Type, data []string) (int, error) {
	var servers []*Server
	deepest := -1
	for _, addr := range n.Addrs() {
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
		return 0, fmt.Errorf("no server is an authority for %v", name)
	}
	for _, s := range servers {
		if err := s.flip(key{name, uint16(typ)}, data); err != nil {
			return 0, err
		}
	}
	return len(servers), nil
}

// depth returns the number of labels of the deepest zone that contains a name. It returns -1 if there is none, or if
// the server delegates the name.
func (s *Server) depth(name dnsname.Name) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	apex := s.apexLocked(name)
	if apex.IsZero() || s.cutAboveLocked(name) || apex != name && len(s.sets[key{name, dns.TypeNS}]) > 0 {
		return -1
	}
	return apex.NumLabels()
}

// flip changes the records of a name and increments the serial of its zone.
func (s *Server) flip(k key, data []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUpLocked()
	if len(data) > 0 && k.typ != dns.TypeCNAME && len(s.sets[key{k.name, dns.TypeCNAME}]) > 0 {
		return fmt.Errorf("%v has a CNAME, so it cannot have %s records: change or remove the CNAME first",
			k.name, rr.Type(k.typ))
	}
	ttl := uint32(flipTTL)
	if old := s.sets[k]; len(old) > 0 {
		ttl = old[0].Header().Ttl
	}
	var set []dns.RR
	for _, d := range data {
		rec, err := dns.NewRR(fmt.Sprintf("%s %d IN %s %s", k.name, ttl, rr.Type(k.typ), d))
		if err != nil || rec == nil {
			return fmt.Errorf("%q is not valid data for a record of type %s", d, rr.Type(k.typ))
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
