package explain

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Planned reports whether the user plans to change to this server, which no NS record lists yet.
func (s Server) Planned() bool { return slices.Contains(s.Listed, "plan") }

// PastOf returns the part of f that later scans compare with.
func PastOf(f *Facts) Past {
	p := Past{At: answered(f), Name: f.Name}
	for _, s := range f.Servers {
		// RFC 1982
		if s.Zone == f.Zone && s.SOA != nil && !s.Planned() && (p.Serial == 0 || int32(s.SOA.Serial-p.Serial) > 0) {
			p.Serial = s.SOA.Serial
		}
	}
	parent, _, _ := nsSets(f)
	p.NS = parent.NS
	p.DS = dsOf(f)
	for _, o := range f.Outcomes {
		p.Sets = append(p.Sets, o.Sets...)
		if absent(o) && o.End == f.Name {
			p.Absent = append(p.Absent, o.Type)
		}
	}
	for _, h := range f.Chain {
		p.Sets = append(p.Sets, Set{Name: h.From, Type: typeOf(h.Type), TTL: h.TTL, Data: []string{h.To.String()}})
	}
	if f.Service != nil && f.Service.proofs() != "" {
		o := OwnershipOf(f)
		p.Ownership, p.Proofs = &o, f.Service.proofs()
	}
	for _, r := range f.Registrations {
		if !f.Domain.IsZero() && r.Domain == f.Domain.String() {
			p.Expires, p.Registrar = r.Dates.Expires, r.Registrar.Name
		}
	}
	return p
}

// setAt returns the record set that the scan saw for a name and type. A CNAME excludes all other types, so a set that a
// CNAME replaced, or the CNAME that the set replaced, also counts. Of several, setAt returns the one with the longest
// TTL.
func (p Past) setAt(name dnsname.Name, t rr.Type) (out Set, ok bool) {
	for _, s := range p.Sets {
		switch {
		case s.Name != name:
		case s.Type == t:
			return s, true
		case (t == rr.TypeCNAME || s.Type == rr.TypeCNAME) && (!ok || s.TTL > out.TTL):
			out, ok = s, true
		}
	}
	return out, ok
}

// maxPast is the number of scans that are kept. It covers more than an hour of the most frequent scans even if each
// sees something new.
const maxPast = 1000

// Remember returns past with p as its first element. Of consecutive scans with the same result it keeps the first and
// the last: the ones between them add no information.
func Remember(past []Past, p Past) []Past {
	if len(past) > 1 && sameRecords(past[0], p) && sameRecords(past[1], p) {
		past = past[1:]
	}
	return append([]Past{p}, past[:min(len(past), maxPast-1)]...)
}

// sameRecords reports whether two scans saw the same records.
func sameRecords(a, b Past) bool {
	return a.Name == b.Name && slices.Equal(a.NS, b.NS) && slices.Equal(a.Absent, b.Absent) &&
		slices.EqualFunc(a.Sets, b.Sets, func(x, y Set) bool {
			return x.Name == y.Name && x.Type == y.Type && x.TTL == y.TTL && slices.Equal(x.Data, y.Data)
		}) && (a.DS == nil) == (b.DS == nil) && (a.DS == nil || a.DS.TTL == b.DS.TTL && slices.Equal(a.DS.Keys, b.DS.Keys))
}

func typeOf(text string) (t rr.Type) {
	_ = t.UnmarshalText([]byte(text)) // CNAME or DNAME
	return t
}
