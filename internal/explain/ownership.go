package explain

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// proofs returns the proofs of a service as a text, which is equal for equal proofs, or "" if none is needed.
func (s *Service) proofs() (out string) {
	if s.Proof != nil {
		out += fmt.Sprintln(s.Proof.Owner, s.Proof.Type, s.Proof.Data)
	}
	if s.Token != nil {
		out += fmt.Sprintln(s.Token.URL, s.Token.Body)
	}
	if len(s.Nameservers) > 0 {
		out += fmt.Sprintln(s.Nameservers)
	}
	return out
}

// PastOwnership returns what earlier scans found about the ownership, or nil. Scans for other proofs do not count.
func PastOwnership(past []Past, name dnsname.Name, s *Service) *service.Ownership {
	i := slices.IndexFunc(past, func(p Past) bool { return p.Name == name && p.Ownership != nil })
	if i < 0 || past[i].Proofs != s.proofs() {
		return nil
	}
	return past[i].Ownership
}

// ProvedByRecord reports whether all servers of the zone that replied have the TXT record that proves the ownership.
// with and without are the servers that have it and that lack it.
func ProvedByRecord(f *Facts) (fact Fact, with, without []netip.Addr) {
	want := f.Service.Proof
	for _, a := range f.Service.Records {
		switch {
		case !a.Class.Usable() || a.Class == iterate.Referral: // this server says nothing about the record
		case slices.ContainsFunc(valuesAt(f, a), func(d string) bool {
			return service.SameValue(want.Type, d, want.Data[0])
		}):
			with = append(with, a.Server)
		default:
			without = append(without, a.Server)
		}
	}
	switch {
	case len(with)+len(without) == 0:
		return Unknown, nil, nil
	case len(without) > 0:
		return No, with, without
	}
	return Yes, with, nil
}

// valuesAt returns the values of the proof at one server. An alias counts with the values of its target: owners may
// delegate the proof to somebody else.
func valuesAt(f *Facts, a Answer) []string {
	if s, ok := Find(a.Sets, a.Question.Name, a.Question.Type); ok {
		return s.Data
	}
	if _, ok := Find(a.Sets, a.Question.Name, rr.TypeCNAME); ok {
		l, _ := f.Service.Lookup(a.Question.Name, a.Question.Type)
		return l.Data
	}
	return nil
}

// ProofValues returns the values that the servers have at the name of the TXT record, each once.
func ProofValues(f *Facts) (out []string) {
	for _, a := range f.Service.Records {
		for _, d := range valuesAt(f, a) {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// ProvedByToken reports whether all addresses that replied have the text that proves the ownership.
func ProvedByToken(f *Facts) Fact {
	fact := Unknown
	for _, c := range f.Service.Tokens {
		switch {
		case c.Page == nil || c.Page.Status == 0: // no reply
		case c.Page.Status != 200 || !f.Service.Token.Holds(c.Page.Body):
			return No
		default:
			fact = Yes
		}
	}
	return fact
}

// ProvedByDelegation reports whether all nameservers of the zone, at its parent and in itself, are those that prove
// the ownership. others are the ones that are not. One of several nameservers proves nothing: its operator cannot know
// who operates the others.
func ProvedByDelegation(f *Facts) (fact Fact, others []dnsname.Name, total int) {
	parent, child, ok := nsSets(f)
	if !ok || !f.Domain.IsZero() && !f.Zone.IsIn(f.Domain) { // the zone is the registry's
		return Unknown, nil, 0
	}
	all := slices.Concat(parent.NS, child.NS)
	slices.SortFunc(all, dnsname.Name.Compare)
	all = slices.Compact(all)
	for _, n := range all {
		if !slices.Contains(f.Service.Nameservers, n) {
			others = append(others, n)
		}
	}
	if len(others) > 0 {
		return No, others, len(all)
	}
	return Yes, nil, len(all)
}

// Observe returns whether the facts prove the ownership. One complete proof is enough.
func Observe(f *Facts) service.Observation {
	if f.Service == nil {
		return service.ProofUnknown
	}
	var all []Fact
	if f.Service.Proof != nil {
		fact, _, _ := ProvedByRecord(f)
		all = append(all, fact)
	}
	if f.Service.Token != nil {
		all = append(all, ProvedByToken(f))
	}
	if len(f.Service.Nameservers) > 0 {
		fact, _, _ := ProvedByDelegation(f)
		all = append(all, fact)
	}
	switch {
	case slices.Contains(all, Yes):
		return service.ProofFound
	case len(all) == 0 || slices.Contains(all, Unknown):
		return service.ProofUnknown
	}
	return service.ProofMissing
}

// OwnershipOf returns the ownership after the facts: the earlier one, and what the facts show.
func OwnershipOf(f *Facts) service.Ownership {
	var before service.Ownership
	if f.Service != nil && f.Service.Ownership != nil {
		before = *f.Service.Ownership
	}
	return before.Next(Observe(f), f.At)
}
