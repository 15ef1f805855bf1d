package explain

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Planned reports whether a server is one that the asker is about to change to, and nobody's yet.
func (s Server) Planned() bool { return slices.Contains(s.Listed, "plan") }

// PastOf is what a look leaves for those that come after it.
func PastOf(f *Facts) Past {
	p := Past{At: answered(f), Name: f.Name}
	for _, s := range f.Servers {
		if s.Zone == f.Zone && s.SOA != nil && !s.Planned() && (p.Serial == 0 || int32(s.SOA.Serial-p.Serial) > 0) { // RFC 1982
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
	for _, r := range f.Registrations {
		if !f.Domain.IsZero() && r.Domain == f.Domain.String() {
			p.Expires, p.Registrar = r.Dates.Expires, r.Registrar.Name
		}
	}
	return p
}

// at is what a look saw in the place of a set: the set, or what cannot stand beside it, as an alias cannot beside anything. Of several that
// an alias took the place of it is the one that is kept for the longest time.
func (p Past) at(name dnsname.Name, t rr.Type) (out Set, ok bool) {
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

// maxPast is how many looks are remembered: more than an hour of the most frequent ones, should each see something else.
const maxPast = 1000

// Remember puts a look before those that were earlier. Of looks that saw the same one after the other only the first and the last are
// kept: nothing can be told from those between them.
func Remember(past []Past, p Past) []Past {
	if len(past) > 1 && alike(past[0], p) && alike(past[1], p) {
		past = past[1:]
	}
	return append([]Past{p}, past[:min(len(past), maxPast-1)]...)
}

// alike reports whether two looks saw the same records.
func alike(a, b Past) bool {
	return a.Name == b.Name && slices.Equal(a.NS, b.NS) && slices.Equal(a.Absent, b.Absent) && slices.EqualFunc(a.Sets, b.Sets, func(x, y Set) bool {
		return x.Name == y.Name && x.Type == y.Type && x.TTL == y.TTL && slices.Equal(x.Data, y.Data)
	}) && (a.DS == nil) == (b.DS == nil) && (a.DS == nil || a.DS.TTL == b.DS.TTL && slices.Equal(a.DS.Keys, b.DS.Keys))
}

func typeOf(text string) (t rr.Type) {
	_ = t.UnmarshalText([]byte(text)) // CNAME or DNAME
	return t
}
