package iterate

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// probe asks for a name beside one that has an answer, which nobody can have made a record for: if there is an answer, a
// wildcard made it, and perhaps the other one, too. The denial shows how the zone denies. At the apex, where there is nothing
// beside it, it is a name below.
func (r *run) probe(e end, q Question) {
	if e.class != Answer || q.Name.IsRoot() {
		return
	}
	parent := q.Name.Parent()
	if q.Name == e.zone.name || !parent.IsIn(e.zone.name) {
		parent = q.Name
	}
	name, err := parent.Child(r.opts.Probe)
	if err != nil || q.Name.Label() == r.opts.Probe {
		return
	}
	r.askOne(e.zone, r.addrs(e.zone), Question{name, q.Type})
}

// secure asks for what shows whether the zones that were looked at can be trusted, and that no reply so far had: DS records
// at the parents, and what children want their parents to have for DS (RFC 7344).
func (r *run) secure() {
	if r.opts.NoDNSSEC {
		return
	}
	for _, z := range r.order {
		if !z.full || z.parent == nil {
			continue
		}
		if !r.hasDS(z) {
			r.askOne(z.parent, r.addrs(z.parent), Question{z.name, rr.Type(dns.TypeDS)})
		}
		if !r.thorough(z) || !r.signed(z) {
			continue
		}
		servers := r.addrs(z)
		r.askOne(z, servers, Question{z.name, rr.Type(dns.TypeCDS)})
		r.askOne(z, servers, Question{z.name, rr.Type(dns.TypeCDNSKEY)})
	}
}

// hasDS reports whether a referral has DS records, or a proof that there are none. Servers of a parent that is not signed send
// neither, and are asked once more; so are those that have the child, too, and refer nobody to it.
func (r *run) hasDS(z *zone) bool {
	for _, from := range z.parentNS {
		for _, s := range from.From {
			for k, res := range r.asked {
				if k.server == s && res.isDone() && res.reply != nil && showsDS(z.name, res.reply) {
					return true
				}
			}
		}
	}
	return false
}

func showsDS(zone dnsname.Name, m *dns.Msg) bool {
	if _, refers := ownerIn(m.Ns, zone, dns.TypeNS); !refers {
		return false
	}
	_, has := ownerIn(m.Ns, zone, dns.TypeDS)
	return has || slices.ContainsFunc(m.Ns, isType(dns.TypeNSEC)) || slices.ContainsFunc(m.Ns, isType(dns.TypeNSEC3))
}

// ownerIn finds a record of an owner and type.
func ownerIn(section []dns.RR, name dnsname.Name, typ uint16) (dns.RR, bool) {
	i := slices.IndexFunc(section, func(rec dns.RR) bool {
		owner, ok := ownerOf(rec, typ)
		return ok && owner == name
	})
	if i < 0 {
		return nil, false
	}
	return section[i], true
}

// signed reports whether a server of a zone has keys for it. It waits for the replies, which nobody has waited for yet.
func (r *run) signed(z *zone) bool {
	keys := Question{z.name, rr.Type(dns.TypeDNSKEY)}
	var waiting []*result
	for _, s := range r.addrs(z) {
		if res, ok := r.asked[askKey{s, keys}]; ok {
			waiting = append(waiting, res)
		}
	}
	return has(r.collect(z, waiting), Answer)
}
