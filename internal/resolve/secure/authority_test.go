package secure_test

import (
	"context"
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// network has the zones of each server by address.
type network map[string][]*signed

// Exchange implements resolve.Exchanger.
func (w network) Exchange(_ context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	r := new(dns.Msg).SetReply(query)
	r.SetEdns0(1232, true)
	name := dnsname.MustParse(query.Question[0].Name)
	var at *signed
	for _, z := range w[server.Addr.Addr().String()] {
		parentsDS := query.Question[0].Qtype == dns.TypeDS && name == z.origin && !name.IsRoot()
		if name.IsIn(z.origin) && !parentsDS && (at == nil || z.origin.IsIn(at.origin)) {
			at = z
		}
	}
	if at == nil {
		r.Rcode = dns.RcodeRefused
		return r, nil
	}
	at.answer(r, name, query.Question[0].Qtype)
	return r, nil
}

func addrs(list ...string) (out []netip.Addr) {
	for _, a := range list {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// with returns the records of a set and their signatures.
func (z *signed) with(k rrKey) (out []dns.RR) {
	for _, rec := range slices.Concat(z.sets[k], z.sigs[k]) {
		out = append(out, dns.Copy(rec))
	}
	return out
}

func (z *signed) answer(r *dns.Msg, name dnsname.Name, typ uint16) {
	cut := z.cut(name)
	if !cut.IsZero() && !(cut == name && typ == dns.TypeDS) {
		z.refer(r, cut)
		return
	}
	r.Authoritative = true
	switch k := (rrKey{name, typ}); {
	case len(z.sets[k]) > 0:
		r.Answer = z.with(k)
	case len(z.sets[rrKey{name, dns.TypeCNAME}]) > 0:
		r.Answer = z.with(rrKey{name, dns.TypeCNAME})
	case z.exists(name):
		r.Ns = append(z.with(rrKey{z.origin, dns.TypeSOA}), z.proof(r, z.at(name))...)
		if len(z.order) > 0 && z.at(name) == nil { // an empty non-terminal, or a delegation in an opt-out span
			r.Ns = append(r.Ns, z.enclosed(r, name, false)...)
		}
	default:
		z.absent(r, name, typ)
	}
}

func (z *signed) exists(name dnsname.Name) bool { return slices.Contains(z.names, name) }

func (z *signed) encloser(name dnsname.Name) dnsname.Name {
	for n := name.Parent(); ; n = n.Parent() {
		if n.IsZero() {
			panic(name.String() + " is not in " + z.origin.String())
		}
		if z.exists(n) {
			return n
		}
	}
}

// absent answers for a name that does not exist: with a DNAME record, with a wildcard, or with a denial.
func (z *signed) absent(r *dns.Msg, name dnsname.Name, typ uint16) {
	above := z.encloser(name)
	if d := z.sets[rrKey{above, dns.TypeDNAME}]; len(d) > 0 {
		r.Answer = z.with(rrKey{above, dns.TypeDNAME})
		to, _, _ := dnsname.FromWire([]byte(name.In(above) + dnsname.MustParse(d[0].(*dns.DNAME).Target).Wire()))
		hdr := dns.RR_Header{Name: name.String(), Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: 300}
		r.Answer = append(r.Answer, &dns.CNAME{Hdr: hdr, Target: to.String()})
		return
	}
	wild, _ := above.Child("*")
	switch {
	case len(z.sets[rrKey{wild, typ}]) > 0:
		r.Answer = z.with(rrKey{wild, typ})
		for _, rec := range r.Answer {
			rec.Header().Name = name.String()
		}
		r.Ns = z.proof(r, z.covering(z.next(name)))
	case z.exists(wild):
		r.Ns = slices.Concat(z.with(rrKey{z.origin, dns.TypeSOA}), z.enclosed(r, name, false), z.proof(r, z.at(wild)))
	default:
		r.Rcode = dns.RcodeNameError
		r.Ns = append(z.with(rrKey{z.origin, dns.TypeSOA}), z.enclosed(r, name, true)...)
	}
}

// next returns the name that an encloser proof denies. For NSEC that is the name itself.
func (z *signed) next(name dnsname.Name) dnsname.Name {
	if !z.how.nsec3 {
		return name
	}
	above := z.encloser(name)
	for name.Parent() != above {
		name = name.Parent()
	}
	return name
}

// enclosed denies a name, and the wildcard that could match it if wildcard is set.
func (z *signed) enclosed(r *dns.Msg, name dnsname.Name, wildcard bool) []dns.RR {
	if len(z.order) == 0 {
		return nil
	}
	recs := []dns.RR{z.covering(z.next(name))}
	above := z.encloser(name)
	if z.how.nsec3 {
		for z.at(above) == nil && above != z.origin { // opt-out may leave out empty non-terminals
			above = above.Parent()
		}
		recs = append(recs, z.at(above))
	}
	if wildcard {
		wild, _ := above.Child("*")
		recs = append(recs, z.covering(wild))
	}
	return z.proof(r, recs...)
}

// proof returns records with their signatures, without those that the reply already has.
func (z *signed) proof(r *dns.Msg, recs ...dns.RR) (out []dns.RR) {
	for _, rec := range recs {
		same := func(o dns.RR) bool { return dns.IsDuplicate(o, rec) }
		if rec == nil || slices.ContainsFunc(slices.Concat(r.Ns, out), same) {
			continue
		}
		out = append(out, dns.Copy(rec))
		for _, sig := range z.sigs[keyOf(rec)] {
			out = append(out, dns.Copy(sig))
		}
	}
	return out
}

func (z *signed) denialKey(name dnsname.Name) string {
	if z.how.nsec3 {
		return z.hash(name)
	}
	return name.String()
}

func (z *signed) at(name dnsname.Name) dns.RR {
	if rec, ok := z.denials[z.denialKey(name)]; ok {
		return rec
	}
	return nil
}

// covering returns the record that precedes a name in the chain.
func (z *signed) covering(name dnsname.Name) dns.RR {
	if len(z.order) == 0 {
		return nil
	}
	last := z.order[len(z.order)-1]
	for i, k := range z.order {
		before := k < z.denialKey(name)
		if !z.how.nsec3 {
			before = dnsname.MustParse(k).Compare(name) < 0
		}
		if !before {
			if i == 0 {
				break
			}
			return z.denials[z.order[i-1]]
		}
	}
	return z.denials[last]
}

func (z *signed) refer(r *dns.Msg, cut dnsname.Name) {
	r.Ns = z.with(rrKey{cut, dns.TypeNS})
	for _, rec := range z.sets[rrKey{cut, dns.TypeNS}] {
		for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
			r.Extra = append(z.with(rrKey{dnsname.MustParse(rec.(*dns.NS).Ns), t}), r.Extra...)
		}
	}
	switch ds := (rrKey{cut, dns.TypeDS}); {
	case len(z.sets[ds]) > 0:
		r.Ns = append(r.Ns, z.with(ds)...)
	case z.at(cut) != nil:
		r.Ns = append(r.Ns, z.proof(r, z.at(cut))...)
	case len(z.order) > 0: // opt-out
		above := cut.Parent()
		r.Ns = append(r.Ns, z.proof(r, z.covering(cut), z.at(above))...)
	}
}
