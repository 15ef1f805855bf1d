package iterate

import (
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// targets returns the names in the NS records of an owner, in canonical order.
func targets(owner dnsname.Name, section []dns.RR) (out []dnsname.Name) {
	for _, rec := range section {
		ns, ok := rec.(*dns.NS)
		if is, _ := ownerOf(rec, dns.TypeNS); !ok || is != owner {
			continue
		}
		if name, err := dnsname.Parse(ns.Ns); err == nil {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, dnsname.Name.Compare)
	return slices.Compact(out)
}

// Join returns the union of several NS sets in canonical order, and the longest of their TTLs.
func Join(sets []NSSet) (ns []dnsname.Name, ttl uint32) {
	for _, s := range sets {
		ns = append(ns, s.NS...)
		ttl = max(ttl, s.TTL)
	}
	slices.SortFunc(ns, dnsname.Name.Compare)
	return slices.Compact(ns), ttl
}

// addresses returns the addresses of a name in a section.
func addresses(name dnsname.Name, section []dns.RR) (out []netip.Addr) {
	for _, rec := range section {
		owner, err := dnsname.Parse(rec.Header().Name)
		if err != nil || owner != name {
			continue
		}
		var ip []byte
		switch rec := rec.(type) {
		case *dns.A:
			ip = rec.A.To4()
		case *dns.AAAA:
			ip = rec.AAAA
		}
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// addSet adds the NS records of an owner that one server has. Servers with equal sets share one NSSet.
func addSet(sets []NSSet, from netip.Addr, owner dnsname.Name, section []dns.RR) []NSSet {
	set := NSSet{From: []netip.Addr{from}, NS: targets(owner, section)}
	for _, rec := range section {
		if is, ok := ownerOf(rec, dns.TypeNS); ok && is == owner {
			set.TTL = rec.Header().Ttl
		}
	}
	i := slices.IndexFunc(sets, func(s NSSet) bool { return slices.Equal(s.NS, set.NS) && s.TTL == set.TTL })
	if i < 0 {
		return append(sets, set)
	}
	sets[i].From = Union(sets[i].From, set.From)
	return sets
}
