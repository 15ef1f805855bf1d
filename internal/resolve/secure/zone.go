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

// zone is a zone at work.
type zone struct {
	name   dnsname.Name
	parent *zone
	judgement
	ds    []*dns.DS     // trusted
	keys  []*dns.DNSKEY // trusted if the zone is secure; otherwise all that were seen, to judge signatures by
	shown Zone
}

// keySet is what a server has for keys; nil if it has none.
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
		z.keys = append(z.keys, fresh(z.keys, keysOf(k.set))...)
	}
	z.judgement = v.delegation(z)
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

// fresh are the keys that are not there yet, up to as many as a zone may have.
func fresh(have, more []*dns.DNSKEY) (out []*dns.DNSKEY) {
	for _, k := range more {
		same := func(o *dns.DNSKEY) bool { return dns.IsDuplicate(k, o) }
		if len(have)+len(out) < maxZone && !slices.ContainsFunc(have, same) && !slices.ContainsFunc(out, same) {
			out = append(out, k)
		}
	}
	return out
}

// keySets are the keys of a zone as its servers have them, one set for each.
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

// delegation finds the DS records of a zone that can be trusted; it is secure if there are some.
func (v *validation) delegation(z *zone) judgement {
	if a := v.anchors[z.name]; len(a) > 0 {
		z.ds = a
		for _, d := range a {
			z.showDS(d, nil)
		}
		return good
	}
	if z.name.IsRoot() {
		return unknown(NoAnchor, "there is no trust anchor for the root")
	}
	if z.parent == nil {
		return unknown(NotSeen, "the zone above %s was not looked at", z.name)
	}
	var found []judgement
	for _, r := range v.replies {
		if s, ok := v.showsDS(z, r); ok {
			found = append(found, v.dsIn(z, r, s))
		}
	}
	if p := z.parent; !p.ok() {
		words := map[State]string{Insecure: "is not secured, so that nothing below it is", Bogus: "is bogus, and so all below it", Unknown: "could not be judged"}
		return judgement{p.state, Above, fmt.Sprintf("the zone above, %s, %s", p.name, words[p.state])}
	}
	if len(found) == 0 {
		return unknown(NotSeen, "no reply shows whether %s has a DS record for %s", z.parent.name, z.name)
	}
	return best(found)
}

// best is the judgement that a resolver comes to that asks on when it is not content.
func best(found []judgement) judgement {
	return slices.MaxFunc(found, func(a, b judgement) int { return order[a.state] - order[b.state] })
}

var order = map[State]int{Unknown: 0, Bogus: 1, Insecure: 2, Secure: 3}

// showsDS tells whether a reply of a server of the parent is about the DS records of a zone, and the set of them, if it has
// one: it refers to the zone, or was asked for them.
func (v *validation) showsDS(z *zone, r *reply) (*set, bool) {
	if r.zone != z.parent.name {
		return nil, false
	}
	switch {
	case r.class == iterate.Referral:
		s := pick(r.authority, z.name, dns.TypeDS)
		denies := slices.ContainsFunc(r.authority, func(s *set) bool { return s.typ == dns.TypeNSEC || s.typ == dns.TypeNSEC3 })
		return s, has(r.authority, z.name, dns.TypeNS) && (s != nil || denies)
	case r.q.Name != z.name || uint16(r.q.Type) != dns.TypeDS:
		return nil, false
	case r.class == iterate.Answer:
		s := pick(r.answer, z.name, dns.TypeDS)
		return s, s != nil
	}
	return nil, r.soa() == z.parent.name // a server that has both zones may answer for the wrong one
}

// dsIn judges the DS records of a reply, or their denial, and keeps what is good.
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
	for _, rec := range some(s.records) {
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
	for _, rec := range some(s.records) {
		if d, ok := rec.(*dns.DS); ok && len(z.ds) < maxZone {
			z.ds = append(z.ds, d)
		}
	}
	return good
}

// trust judges the keys of each server by the DS records.
func (v *validation) trust(z *zone, sets []keySet) judgement {
	ds := usableDS(z.ds)
	if len(ds) == 0 {
		for _, k := range sets {
			z.showSet(k, judgement{Insecure, Algorithm, ""})
		}
		return insecure(Algorithm, "all DS records of %s are of algorithms or digests that are not verified", z.name)
	}
	var trusted []*dns.DNSKEY
	var found []judgement
	for _, k := range sets {
		j := v.trustSet(z, ds, k.set)
		z.showSet(k, j)
		found = append(found, j)
		if j.ok() {
			trusted = append(trusted, fresh(trusted, keysOf(k.set))...)
		}
	}
	if len(found) == 0 {
		return unknown(NotSeen, "no server of %s was seen to reply about its keys", z.name)
	}
	if len(trusted) > 0 {
		z.keys = trusted
	}
	return best(found)
}

// usableDS are the DS records that count: SHA-1 does not beside a better digest (RFC 4509 §3).
func usableDS(ds []*dns.DS) (out []*dns.DS) {
	out = slices.DeleteFunc(slices.Clone(ds), func(d *dns.DS) bool { return !supported(d.Algorithm) || !digestible(d.DigestType) })
	if slices.ContainsFunc(out, func(d *dns.DS) bool { return d.DigestType != dns.SHA1 }) {
		out = slices.DeleteFunc(out, func(d *dns.DS) bool { return d.DigestType == dns.SHA1 })
	}
	return out
}

// trustSet judges a set of keys: one that a DS record is for must have signed them all (RFC 4035 §5.2).
func (v *validation) trustSet(z *zone, ds []*dns.DS, s *set) judgement {
	if s == nil {
		return bad(Unsigned, "there are DS records for %s, but the zone has no keys", z.name)
	}
	entry := slices.DeleteFunc(keysOf(s), func(k *dns.DNSKEY) bool {
		return k.Flags&dns.ZONE == 0 || k.Flags&dns.REVOKE != 0 || !slices.ContainsFunc(ds, func(d *dns.DS) bool { return matches(d, k) })
	})
	if len(entry) == 0 {
		return bad(NoKey, "no key of %s is one that its DS records are for", z.name)
	}
	j, _ := v.verify(z, entry, s)
	if !j.ok() && (j.cause == Missing || j.cause == Mismatch) {
		return bad(KeysUnsigned, "no key of %s that a DS record is for signs the keys", z.name)
	}
	return j
}

// matches reports whether a DS record is for a key.
func matches(d *dns.DS, k *dns.DNSKEY) bool {
	if d.KeyTag != k.KeyTag() || d.Algorithm != k.Algorithm || !digestible(d.DigestType) {
		return false
	}
	own := k.ToDS(d.DigestType)
	return own != nil && strings.EqualFold(own.Digest, d.Digest)
}
