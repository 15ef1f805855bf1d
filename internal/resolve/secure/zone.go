package secure

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// zone is a zone while it is validated.
type zone struct {
	name   dnsname.Name
	parent *zone
	judgement
	ds    []*dns.DS     // the trusted DS records
	keys  []*dns.DNSKEY // the trusted keys if the zone is secure; otherwise all keys, to judge signatures with
	shown Zone
}

// keySet is the DNSKEY set of a server; set is nil if the server has no keys.
type keySet struct {
	from netip.Addr
	set  *set
}

// zone follows the chain of trust to a zone: its DS records, then its keys.
func (v *validation) zone(t *iterate.Zone) {
	z := &zone{name: t.Name, parent: v.zones[t.Parent]}
	z.shown = Zone{Name: t.Name, Parent: t.Parent}
	v.zones[z.name], v.order = z, append(v.order, z)
	sets := v.keySets(z)
	for _, k := range sets {
		z.keys = append(z.keys, newKeys(z.keys, keysOf(k.set))...)
	}
	z.judgement = v.delegation(z, len(sets) > 0)
	if z.ok() {
		z.judgement = v.trust(z, sets)
	} else {
		for _, k := range sets {
			z.showSet(k, judgement{z.state, Above, ""})
		}
	}
	v.showKeys(z, sets)
	v.childDS(z)
}

// newKeys returns the found keys that are not known yet, up to the limit of a zone.
func newKeys(known, found []*dns.DNSKEY) (out []*dns.DNSKEY) {
	for _, k := range found {
		same := func(o *dns.DNSKEY) bool { return dns.IsDuplicate(k, o) }
		if len(known)+len(out) < maxZoneKeys && !slices.ContainsFunc(known, same) && !slices.ContainsFunc(out, same) {
			out = append(out, k)
		}
	}
	return out
}

// keySets returns the DNSKEY set of each server of a zone.
func (v *validation) keySets(z *zone) (out []keySet) {
	for _, r := range v.replies {
		if r.zone != z.name || r.q.Name != z.name || uint16(r.q.Type) != dns.TypeDNSKEY || r.class == iterate.Referral ||
			slices.ContainsFunc(out, func(k keySet) bool { return k.from == r.server }) {
			continue
		}
		s := pick(r.answer, z.name, dns.TypeDNSKEY)
		if len(keysOf(s)) == 0 {
			s = nil
		}
		out = append(out, keySet{r.server, s})
	}
	return out
}

// delegation finds the trusted DS records of a zone. The judgement is Secure if there are some. A root without a trust
// anchor and without keys is not signed; asked says whether its servers replied to the DNSKEY query.
func (v *validation) delegation(z *zone, asked bool) judgement {
	if a := v.anchors[z.name]; len(a) > 0 && a[0].Algorithm == 0 {
		return insecure(NoAnchor, "%s has no trust anchor, so nothing is validated", z.name)
	} else if len(a) > 0 {
		z.ds = a
		for _, d := range a {
			z.showDS(d, nil)
		}
		return good
	}
	if z.name.IsRoot() && asked && len(z.keys) == 0 {
		return insecure(NoAnchor, "the root is not signed, so nothing is validated")
	}
	if z.name.IsRoot() {
		return unknown(NoAnchor, "there is no trust anchor for the root")
	}
	if z.parent == nil {
		return unknown(NotSeen, "the parent zone of %s is not in the trace", z.name)
	}
	var found []judgement
	for _, r := range v.replies {
		if s, ok := v.showsDS(z, r); ok {
			found = append(found, v.dsIn(z, r, s))
		}
	}
	if p := z.parent; !p.ok() {
		words := map[State]string{Insecure: "is insecure, so all zones below it are insecure",
			Bogus: "is bogus, so all zones below it are bogus", Unknown: "could not be validated"}
		return judgement{p.state, Above, fmt.Sprintf("the parent zone %s %s", p.name, words[p.state])}
	}
	if len(found) == 0 {
		return unknown(NotSeen, "no reply shows whether %s has a DS record for %s", z.parent.name, z.name)
	}
	return best(found)
}

// best returns the best judgement: a resolver that is not satisfied with a reply queries the next server.
func best(found []judgement) judgement {
	return slices.MaxFunc(found, func(a, b judgement) int { return order[a.state] - order[b.state] })
}

var order = map[State]int{Unknown: 0, Bogus: 1, Insecure: 2, Secure: 3}

// showsDS reports whether a reply of the parent is about the DS records of a zone: it is a referral to the zone or
// the reply to a DS query. It also returns the DS set, if the reply has one.
func (v *validation) showsDS(z *zone, r *reply) (*set, bool) {
	if r.zone != z.parent.name {
		return nil, false
	}
	switch {
	case r.class == iterate.Referral:
		s := pick(r.authority, z.name, dns.TypeDS)
		denies := slices.ContainsFunc(r.authority, func(s *set) bool {
			return s.typ == dns.TypeNSEC || s.typ == dns.TypeNSEC3
		})
		return s, has(r.authority, z.name, dns.TypeNS) && (s != nil || denies)
	case r.q.Name != z.name || uint16(r.q.Type) != dns.TypeDS:
		return nil, false
	case r.class == iterate.Answer:
		s := pick(r.answer, z.name, dns.TypeDS)
		return s, s != nil
	}
	return nil, r.soa() == z.parent.name // a server that has both zones may reply from the wrong one
}

// dsIn judges the DS records of a reply or their denial. It adds the valid records to the zone.
func (v *validation) dsIn(z *zone, r *reply, s *set) judgement {
	p := z.parent
	if s == nil || len(s.records) == 0 {
		if !p.ok() {
			return good
		}
		j := v.denial(p, r).noDS(z.name, r.class == iterate.Referral)
		if j.ok() {
			return insecure(NoDS, "%s has no DS record for %s", p.name, z.name)
		}
		return j
	}
	for _, rec := range atMostKeys(s.records) {
		if d, ok := rec.(*dns.DS); ok {
			z.showDS(d, []netip.Addr{r.server})
		}
	}
	if !p.ok() {
		return good
	}
	j, _ := v.verify(p, p.keys, s)
	if !j.ok() {
		return j
	}
	for _, rec := range atMostKeys(s.records) {
		if d, ok := rec.(*dns.DS); ok && len(z.ds) < maxZoneKeys {
			z.ds = append(z.ds, d)
		}
	}
	return good
}

// trust judges the keys of each server with the DS records.
func (v *validation) trust(z *zone, sets []keySet) judgement {
	ds := usableDS(z.ds)
	if len(ds) == 0 {
		for _, k := range sets {
			z.showSet(k, judgement{Insecure, Algorithm, ""})
		}
		return insecure(Algorithm, "all DS records of %s have unsupported algorithms or digest types", z.name)
	}
	var trusted []*dns.DNSKEY
	var found []judgement
	for _, k := range sets {
		j := v.trustSet(z, ds, k.set)
		z.showSet(k, j)
		found = append(found, j)
		if j.ok() {
			trusted = append(trusted, newKeys(trusted, keysOf(k.set))...)
		}
	}
	if len(found) == 0 {
		return unknown(NotSeen, "no server of %s replied to the DNSKEY query", z.name)
	}
	if len(trusted) > 0 {
		z.keys = trusted
	}
	return best(found)
}

// usableDS returns the DS records that count. SHA-1 is ignored if a better digest exists (RFC 4509 §3).
func usableDS(ds []*dns.DS) (out []*dns.DS) {
	unsupported := func(d *dns.DS) bool { return !supported(d.Algorithm) || !supportedDigest(d.DigestType) }
	out = slices.DeleteFunc(slices.Clone(ds), unsupported)
	if slices.ContainsFunc(out, func(d *dns.DS) bool { return d.DigestType != dns.SHA1 }) {
		out = slices.DeleteFunc(out, func(d *dns.DS) bool { return d.DigestType == dns.SHA1 })
	}
	return out
}

// trustSet judges a set of keys: a key that matches a DS record must have signed the whole set (RFC 4035 §5.2).
func (v *validation) trustSet(z *zone, ds []*dns.DS, s *set) judgement {
	if s == nil {
		return bad(Unsigned, "there are DS records for %s, but the zone has no keys", z.name)
	}
	entry := slices.DeleteFunc(keysOf(s), func(k *dns.DNSKEY) bool {
		matching := slices.ContainsFunc(ds, func(d *dns.DS) bool { return matches(d, k) })
		return k.Flags&dns.ZONE == 0 || k.Flags&dns.REVOKE != 0 || !matching
	})
	if len(entry) == 0 {
		return bad(NoKey, "the DS records of %s match none of its keys", z.name)
	}
	j, _ := v.verify(z, entry, s)
	if !j.ok() && (j.cause == Missing || j.cause == Mismatch) {
		return bad(KeysUnsigned, "no key of %s that matches a DS record signs the DNSKEY set", z.name)
	}
	return j
}

// matches reports whether a DS record matches a key.
func matches(d *dns.DS, k *dns.DNSKEY) bool {
	if d.KeyTag != k.KeyTag() || d.Algorithm != k.Algorithm || !supportedDigest(d.DigestType) {
		return false
	}
	own := k.ToDS(d.DigestType)
	return own != nil && strings.EqualFold(own.Digest, d.Digest)
}
