package secure

import (
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// prover proves with the records of one reply that something does not exist.
type prover interface {
	// noData proves that a name has no records of a type.
	noData(name dnsname.Name, typ uint16) judgement
	// noName proves that a name does not exist.
	noName(name dnsname.Name) judgement
	// noCloser proves that no existing name is closer to name than the parent of the wildcard, which has this number
	// of labels.
	noCloser(name dnsname.Name, labels int) judgement
	// delegates reports whether a record shows that name is a delegation.
	delegates(name dnsname.Name) bool
}

// denial has the NSEC and NSEC3 records of a reply. Only records with valid signatures count.
type denial struct {
	zone   *zone
	nsec   nsecs
	nsec3  nsec3s
	broken judgement // the judgement of the first record without a valid signature
	any    bool      // the reply has such records, valid or not
}

// denial reads the NSEC and NSEC3 records of a reply of a zone.
func (v *validation) denial(z *zone, r *reply) *denial {
	d := &denial{zone: z, broken: good, nsec3: nsec3s{zone: z.name, memo: v.hashes}}
	for _, s := range r.authority {
		if s.typ != dns.TypeNSEC && s.typ != dns.TypeNSEC3 || len(s.records) == 0 {
			continue
		}
		d.any = true
		j, sig := v.verify(z, z.keys, s)
		if j.ok() {
			if _, yes := expanded(s, sig); yes {
				j = bad(BadDenial, "%s %s was expanded from a wildcard, so it proves nothing", s.owner, rr.Type(s.typ))
			}
		}
		if !j.ok() {
			if d.broken.ok() {
				d.broken = j
			}
			continue
		}
		for _, rec := range s.records {
			switch rec := rec.(type) {
			case *dns.NSEC:
				d.nsec.add(z.name, s.owner, rec)
			case *dns.NSEC3:
				d.nsec3.add(s.owner, rec)
			}
		}
	}
	return d
}

// prove calls prove with the records that the reply has.
func (d *denial) prove(prove func(prover) judgement) judgement {
	var j judgement
	switch {
	case len(d.nsec.records) > 0:
		j = prove(&d.nsec)
	case len(d.nsec3.records) > 0 && d.nsec3.iterations > maxIterations:
		return insecure(Iterations, "NSEC3 of %s has %d iterations, more than validators accept", d.zone.name,
			d.nsec3.iterations)
	case len(d.nsec3.records) > 0:
		j = prove(&d.nsec3)
	case !d.any:
		return bad(BadDenial, "a negative reply of %s has no proof: neither NSEC nor NSEC3 records", d.zone.name)
	default: // validators ignore NSEC3 records with unknown flags or another hash (RFC 5155 §8.1 and §8.2)
		j = bad(BadDenial, "a negative reply of %s has no NSEC or NSEC3 record that validators accept", d.zone.name)
	}
	if !j.ok() && j.state != Insecure && !d.broken.ok() {
		return d.broken // the record that the proof lacks may be the one without a valid signature
	}
	return j
}

// noDS proves that a zone has no DS records. If a referral denies them, the proof must also show that the name is a
// delegation (RFC 6840 §4.4).
func (d *denial) noDS(name dnsname.Name, referral bool) judgement {
	return d.prove(func(p prover) judgement {
		j := p.noData(name, dns.TypeDS)
		if j.cause == OptOut {
			return good // opt-out spans leave out only delegations without DS records
		}
		if j.ok() && referral && !p.delegates(name) {
			return bad(BadDenial, "the proof that %s has no DS records says that it is not a delegation", name)
		}
		return j
	})
}

// negative judges a negative reply. It needs a signed SOA record and a proof.
func (v *validation) negative(z *zone, r *reply) judgement {
	if s := pick(r.authority, z.name, dns.TypeSOA); s != nil {
		if j, _ := v.verify(z, z.keys, s); !j.ok() {
			return j
		}
	}
	return v.denial(z, r).prove(func(p prover) judgement {
		if r.class == iterate.NXDomain {
			return p.noName(r.q.Name)
		}
		return p.noData(r.q.Name, uint16(r.q.Type))
	})
}

// judgeDenials summarizes how each signed zone denies, over all negative replies and referrals of the trace.
func (v *validation) judgeDenials() {
	for _, z := range v.order {
		if len(z.keys) == 0 {
			continue
		}
		for _, r := range v.replies {
			if r.zone != z.name {
				continue
			}
			switch {
			case r.class == iterate.Referral:
				v.sumUpReferral(z, r)
			case r.negative() && r.soa() == z.name && pick(r.answer, r.q.Name, dns.TypeCNAME) == nil:
				z.sumUp(v.denial(z, r), v.negative(z, r), r.q.String(), r.server)
			}
		}
	}
}

// sumUpReferral adds the proof in a referral that the child has no DS records.
func (v *validation) sumUpReferral(z *zone, r *reply) {
	d := v.denial(z, r)
	if !d.any {
		return
	}
	for _, s := range r.authority {
		if s.typ == dns.TypeNS && !has(r.authority, s.owner, dns.TypeDS) {
			z.sumUp(d, d.noDS(s.owner, true), s.owner.String()+" DS", r.server)
			return
		}
	}
}

// sumUp adds one denial of a server to the summary of the zone.
func (z *zone) sumUp(d *denial, j judgement, subject string, server netip.Addr) {
	own := &z.shown.Denial
	first := own.Kind == ""
	switch {
	case len(d.nsec.records) > 0:
		own.Kind, own.NSEC = DenialNSEC, iterate.Union(own.NSEC, []netip.Addr{server})
	case len(d.nsec3.records) > 0:
		own.Kind, own.Iterations, own.Salt = DenialNSEC3, max(own.Iterations, d.nsec3.iterations), d.nsec3.salt
		own.OptOut = own.OptOut || slices.ContainsFunc(d.nsec3.records, func(r nsec3) bool { return r.optOut })
		own.addParams(d.nsec3.iterations, d.nsec3.salt, server)
	case first:
		own.Kind = DenialNone
	}
	fine := j.ok() || j.state == Insecure
	own.OK = fine && (first || own.OK)
	servers := &own.Proving
	if !fine {
		servers = &own.Failing
	}
	*servers = iterate.Union(*servers, []netip.Addr{server})
	if !fine && own.Problem == "" {
		own.Cause, own.Problem, own.Subject = j.cause, j.why, subject
	}
}

// addParams adds the parameters that a server uses.
func (d *Denial) addParams(iterations uint16, salt string, server netip.Addr) {
	i := slices.IndexFunc(d.Params, func(p NSEC3Params) bool { return p.Iterations == iterations && p.Salt == salt })
	if i < 0 {
		i = len(d.Params)
		d.Params = append(d.Params, NSEC3Params{Iterations: iterations, Salt: salt})
	}
	if p := &d.Params[i]; !slices.Contains(p.From, server) {
		p.From = append(p.From, server)
	}
}

// childToward returns the child of above on the path down to name.
func childToward(above, name dnsname.Name) dnsname.Name {
	for !name.IsRoot() && name.Parent() != above {
		name = name.Parent()
	}
	return name
}

// wildcardOf returns the wildcard below a name, or the zero name if it would be too long.
func wildcardOf(name dnsname.Name) dnsname.Name {
	w, err := name.Child("*")
	if err != nil {
		return dnsname.Name{}
	}
	return w
}

// lacksType judges a type list that must show that a name lacks a type (RFC 4035 §5.4, RFC 6840 §4.1 and §4.3).
func lacksType(types []uint16, name dnsname.Name, typ uint16) judgement {
	is := func(t uint16) bool { return slices.Contains(types, t) }
	switch {
	case is(typ) || is(dns.TypeCNAME):
		return bad(BadDenial, "the proof for %s does not deny %s: the name has the type or a CNAME", name, rr.Type(typ))
	case typ == dns.TypeDS && is(dns.TypeSOA) && !name.IsRoot():
		return bad(BadDenial, "the proof that %s has no DS records comes from the zone itself, not from its parent", name)
	case typ != dns.TypeDS && is(dns.TypeNS) && !is(dns.TypeSOA):
		return bad(BadDenial, "the proof that %s has no %s comes from its parent", name, rr.Type(typ))
	}
	return good
}

// leadsAway reports whether names below a name with these types are outside the zone. A record at such a name does
// not deny them.
func leadsAway(types []uint16) bool {
	return slices.Contains(types, dns.TypeDNAME) ||
		slices.Contains(types, dns.TypeNS) && !slices.Contains(types, dns.TypeSOA)
}
