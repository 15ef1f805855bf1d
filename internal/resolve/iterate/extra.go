package iterate

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// probe queries a sibling of a name that has an answer. Nobody can have created a record for its label. If there is
// an answer, it comes from a wildcard, and perhaps the first answer does too. A denial shows how the zone denies
// names. The apex has no sibling in the zone, so probe uses a child of it.
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

// askDNSSEC queries the DNSSEC data of the walked zones that no reply had so far. These are DS records at the
// parents, and the DS records that signed children request from their parents (CDS and CDNSKEY, RFC 7344).
func (r *run) askDNSSEC() {
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
		if !r.thorough(z) {
			continue
		}
		servers := r.addrs(z)
		r.askOne(z, servers, Question{z.name, rr.Type(dns.TypeCDS)})
		r.askOne(z, servers, Question{z.name, rr.Type(dns.TypeCDNSKEY)})
	}
}

// hasDS reports whether a referral has DS records or a proof that there are none. Servers of an unsigned parent send
// neither, so they get a DS query. The same applies to servers that have the child zone too: they send no referral.
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
	if !hasOwner(m.Ns, zone, dns.TypeNS) {
		return false
	}
	return hasOwner(m.Ns, zone, dns.TypeDS) || slices.ContainsFunc(m.Ns, isType(dns.TypeNSEC)) ||
		slices.ContainsFunc(m.Ns, isType(dns.TypeNSEC3))
}

// hasOwner reports whether a section has a record with an owner and a type.
func hasOwner(section []dns.RR, name dnsname.Name, typ uint16) bool {
	return slices.ContainsFunc(section, func(rec dns.RR) bool {
		owner, ok := ownerOf(rec, typ)
		return ok && owner == name
	})
}
