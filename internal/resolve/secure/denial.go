package secure

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// prover proves from records of one reply that something does not exist.
type prover interface {
	noData(name dnsname.Name, typ uint16) judgement
	noName(name dnsname.Name) judgement
	// noCloser proves that nothing is nearer to a name than the wildcard so many labels below the root.
	noCloser(name dnsname.Name, labels int) judgement
	// delegates tells whether a name is one of a delegation, as far as it can be told.
	delegates(name dnsname.Name) bool
}

// denial is what a reply has to deny with. Only records with good signatures count.
type denial struct {
	zone   *zone
	nsec   nsecs
	nsec3  nsec3s
	broken judgement // of the first record whose signature is not good
	any    bool      // there are records, good or not
}

// denial reads what a reply of a zone denies with.
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
				j = bad(BadDenial, "%s %s was made by a wildcard, and denies nothing", s.owner, rr.Type(s.typ))
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

// by proves with what there is.
func (d *denial) by(prove func(prover) judgement) judgement {
	var j judgement
	switch {
	case len(d.nsec.records) > 0:
		j = prove(&d.nsec)
	case len(d.nsec3.records) > 0 && d.nsec3.iterations > maxIterations:
		return insecure(Iterations, "NSEC3 of %s has %d rounds, more than validators do", d.zone.name, d.nsec3.iterations)
	case len(d.nsec3.records) > 0:
		j = prove(&d.nsec3)
	case !d.any:
		return bad(BadDenial, "%s denies something and has no proof: neither NSEC nor NSEC3 records", d.zone.name)
	}
	if !j.ok() && j.state != Insecure && !d.broken.ok() {
		return d.broken // a proof may lack just what has no good signature
	}
	return j
}

// noDS proves that a zone has no DS records. Unlike other names it must then be one of a delegation, if a referral says so
// (RFC 6840 §4.4).
func (d *denial) noDS(name dnsname.Name, referral bool) judgement {
	return d.by(func(p prover) judgement {
		j := p.noData(name, dns.TypeDS)
		if j.cause == OptOut {
			return good // what opt-out leaves out are delegations without DS
		}
		if j.ok() && referral && !p.delegates(name) {
			return bad(BadDenial, "the proof that %s has no DS records says that it is no delegation", name)
		}
		return j
	})
}

// negative judges a negative reply: it needs a signed SOA record, and a proof.
func (v *validation) negative(z *zone, r *reply) judgement {
	if s := pick(r.authority, z.name, dns.TypeSOA); s != nil {
		if j, _ := v.verify(z, z.keys, s); !j.ok() {
			return j
		}
	}
	return v.denial(z, r).by(func(p prover) judgement {
		if r.class == iterate.NXDomain {
			return p.noName(r.q.Name)
		}
		return p.noData(r.q.Name, uint16(r.q.Type))
	})
}

// judgeDenials sums up how each signed zone denies, whoever asked for what.
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
				z.sumUp(v.denial(z, r), v.negative(z, r), r.q.String())
			}
		}
	}
}

// sumUpReferral takes in the proof of a referral that a child has no DS records.
func (v *validation) sumUpReferral(z *zone, r *reply) {
	d := v.denial(z, r)
	if !d.any {
		return
	}
	for _, s := range r.authority {
		if s.typ == dns.TypeNS && !has(r.authority, s.owner, dns.TypeDS) {
			z.sumUp(d, d.noDS(s.owner, true), s.owner.String()+" DS")
			return
		}
	}
}

func (z *zone) sumUp(d *denial, j judgement, subject string) {
	own := &z.shown.Denial
	first := own.Kind == ""
	switch {
	case len(d.nsec.records) > 0:
		own.Kind = DenialNSEC
	case len(d.nsec3.records) > 0:
		own.Kind, own.Iterations, own.Salt = DenialNSEC3, max(own.Iterations, d.nsec3.iterations), d.nsec3.salt
		own.OptOut = own.OptOut || slices.ContainsFunc(d.nsec3.records, func(r nsec3) bool { return r.optOut })
	case first:
		own.Kind = DenialNone
	}
	fine := j.ok() || j.state == Insecure
	own.OK = fine && (first || own.OK)
	if !fine && own.Problem == "" {
		own.Cause, own.Problem, own.Subject = j.cause, j.why, subject
	}
}

// under is the name on the way from one above down to name, one label below it.
func under(above, name dnsname.Name) dnsname.Name {
	for !name.IsRoot() && name.Parent() != above {
		name = name.Parent()
	}
	return name
}

// star is the wildcard below a name; zero if it would be too long.
func star(name dnsname.Name) dnsname.Name {
	w, err := name.Child("*")
	if err != nil {
		return dnsname.Name{}
	}
	return w
}

// lacks judges a list of types that shall show that a name lacks one (RFC 4035 §5.4, RFC 6840 §4.1 and §4.3).
func lacks(types []uint16, name dnsname.Name, typ uint16) judgement {
	is := func(t uint16) bool { return slices.Contains(types, t) }
	switch {
	case is(typ) || is(dns.TypeCNAME):
		return bad(BadDenial, "the proof says that %s has what is denied: %s", name, rr.Type(typ))
	case typ == dns.TypeDS && is(dns.TypeSOA) && !name.IsRoot():
		return bad(BadDenial, "the proof that %s has no DS records is by the zone itself, not by its parent", name)
	case typ != dns.TypeDS && is(dns.TypeNS) && !is(dns.TypeSOA):
		return bad(BadDenial, "the proof that %s has no %s is by its parent", name, rr.Type(typ))
	}
	return good
}

// leadsAway reports whether names below one with these types are not in the zone, so that a record at it does not deny them.
func leadsAway(types []uint16) bool {
	return slices.Contains(types, dns.TypeDNAME) || slices.Contains(types, dns.TypeNS) && !slices.Contains(types, dns.TypeSOA)
}
