package simnet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// nsec3 are the parameters with which a zone hashes its names (RFC 5155).
type nsec3 struct {
	iterations uint16
	salt       string // in hex; empty: none
}

// parseNSEC3 parses "nsec3" or "nsec3=ITERATIONS,SALT".
func parseNSEC3(word string) (*nsec3, error) {
	_, data, given := strings.Cut(word, "=")
	if !given {
		return &nsec3{}, nil
	}
	number, salt, _ := strings.Cut(data, ",")
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q has no number of iterations", word)
	}
	return &nsec3{uint16(n), salt}, nil
}

func (n *nsec3) hash(name dnsname.Name) string {
	return dns.HashName(name.String(), dns.SHA1, n.iterations, n.salt)
}

// hashedLocked returns the names of a zone by their hash, and the hashes in order. Empty non-terminals have one too.
func (s *Server) hashedLocked(zone dnsname.Name, n *nsec3) (names map[string]dnsname.Name, order []string) {
	names = map[string]dnsname.Name{}
	for _, owner := range s.ownersLocked(zone) {
		for ; owner.IsIn(zone) && owner != zone; owner = owner.Parent() {
			names[n.hash(owner)] = owner
		}
	}
	names[n.hash(zone)] = zone
	for h := range names {
		order = append(order, h)
	}
	slices.Sort(order)
	return names, order
}

// denyHashedLocked returns the NSEC3 records that match a name, or that match its closest encloser and cover the next
// name below that (RFC 5155 §7.2).
func (s *Server) denyHashedLocked(zone, name dnsname.Name, n *nsec3) []dns.RR {
	names, order := s.hashedLocked(zone, n)
	record := func(at int) dns.RR {
		owner := names[order[at]]
		types := slices.DeleteFunc(s.bitmapLocked(zone, owner), func(t uint16) bool { return t == dns.TypeNSEC })
		if !s.hasLocked(owner) {
			types = nil
		}
		salt := n.salt
		if salt == "" {
			salt = "-"
		}
		return &dns.NSEC3{Hdr: header(order[at]+"."+zone.String(), dns.TypeNSEC3, negative(s.zones[zone]).Header().Ttl),
			Hash: dns.SHA1, Iterations: n.iterations, SaltLength: uint8(len(n.salt) / 2), Salt: salt, HashLength: 20,
			NextDomain: order[(at+1)%len(order)], TypeBitMap: types}
	}
	at := func(name dnsname.Name) (int, bool) { return slices.BinarySearch(order, n.hash(name)) }
	if i, ok := at(name); ok {
		return []dns.RR{record(i)}
	}
	for below := name; below != zone && !below.IsRoot(); below = below.Parent() {
		if i, ok := at(below.Parent()); ok {
			j, _ := at(below)
			return []dns.RR{record(i), record((j + len(order) - 1) % len(order))}
		}
	}
	return nil
}
