package iterate

import (
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// aliasOf returns the alias that an answer section has for q: a CNAME of its name, or a DNAME above it.
func aliasOf(q Question, section []dns.RR) (link Link, ok bool) {
	if hasOwner(section, q.Name, uint16(q.Type)) {
		return Link{}, false
	}
	for _, rec := range section {
		if to, is := synthesize(q.Name, rec); is {
			return Link{From: q.Name, To: to, Type: "DNAME", TTL: rec.Header().Ttl}, true
		}
	}
	for _, rec := range section {
		alias, is := rec.(*dns.CNAME)
		owner, _ := ownerOf(rec, dns.TypeCNAME)
		if !is || owner != q.Name {
			continue
		}
		if to, err := dnsname.Parse(alias.Target); err == nil {
			return Link{From: q.Name, To: to, Type: "CNAME", TTL: rec.Header().Ttl}, true
		}
	}
	return Link{}, false
}

// synthesize returns the name that a DNAME record substitutes for name (RFC 6672 §2.2).
func synthesize(name dnsname.Name, rec dns.RR) (dnsname.Name, bool) {
	d, ok := rec.(*dns.DNAME)
	owner, _ := ownerOf(rec, dns.TypeDNAME)
	if !ok || owner == name || !name.IsIn(owner) {
		return dnsname.Name{}, false
	}
	target, err := dnsname.Parse(d.Target)
	if err != nil {
		return dnsname.Name{}, false
	}
	to, n, err := dnsname.FromWire([]byte(name.In(owner) + target.Wire()))
	return to, err == nil && n > 0
}

// lastName returns the last name of the alias chain in an answer section.
func lastName(q Question, section []dns.RR) dnsname.Name {
	for range section { // bounds the iterations if the aliases form a loop
		link, ok := aliasOf(q, section)
		if !ok {
			break
		}
		q.Name = link.To
	}
	return q.Name
}
