package gather

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// askNonexistent asks every server of the zone for a random name that does not exist. It also asks over TCP those
// servers whose address the walk learned too late to try TCP.
func (r *run) askNonexistent() {
	z := r.zoneAt(r.facts.Zone)
	name, err := z.Name.Child(r.probeLabel)
	if err != nil {
		return
	}
	var qs []iterate.Query
	for _, s := range r.usableServers(z) {
		qs = append(qs, newQuery(z.Name, s, name, rr.TypeA))
		if !slices.ContainsFunc(r.trace.Exchanges, func(e iterate.Exchange) bool {
			return e.Server == s && e.Transport == resolve.TCP.String()
		}) {
			q := newQuery(z.Name, s, z.Name, rr.TypeSOA)
			q.Server.Transport = resolve.TCP
			qs = append(qs, q)
		}
	}
	r.askAll(qs)
}

// denialsOf returns how the zones of the chain, and their parents, deny that a name or type exists.
func (r *run) denialsOf(recs []record) (out []explain.Denial) {
	zones := map[dnsname.Name]bool{}
	for _, n := range r.names() {
		if z := r.zoneOf(n); z != nil {
			zones[z.Name], zones[z.Parent] = true, true
		}
	}
	relevant := func(e record) bool {
		asked := e.Question.Name
		z := r.zoneAt(asked)
		return asked.Label() == r.probeLabel || e.Class == iterate.NoSOA || slices.Contains(r.names(), asked) ||
			z != nil && z.Parent == e.Zone
	}
	for _, e := range recs {
		negative := e.Class == iterate.NXDomain || e.Class == iterate.NoData || e.Class == iterate.NoSOA
		if e.view == nil || e.unusual || !negative || !zones[e.Zone] || e.Zone.IsRoot() || !relevant(e) {
			continue
		}
		d := denialOf(e)
		i := slices.IndexFunc(out, func(o explain.Denial) bool {
			return o.Zone == d.Zone && o.Asked == d.Asked && o.Class == d.Class && o.TTL == d.TTL && o.Minimum == d.Minimum
		})
		if i < 0 {
			out = append(out, d)
			i = len(out) - 1
		}
		out[i].Evidence = append(out[i].Evidence, e.id)
	}
	// A denial of a name that never existed comes first: it shows how names created later are denied now.
	slices.SortStableFunc(out, func(a, b explain.Denial) int {
		first := func(d explain.Denial) int {
			switch {
			case d.Zone != r.facts.Zone:
				return 2
			case d.Asked.Label() != r.probeLabel:
				return 1
			}
			return 0
		}
		return first(a) - first(b)
	})
	return out
}

// denialOf reads what resolvers cache of a denial. Its zone is that of the SOA record: a server that has the parent
// zone and the child zone answers from the child.
func denialOf(e record) explain.Denial {
	d := explain.Denial{Zone: e.Zone, Asked: e.Question.Name, Class: e.Class, Ranges: safeat.RangesNone}
	if soa := soaOf(e.view.Authority); soa != nil {
		d.Zone, d.TTL, d.Minimum = soa.Owner, soa.TTL, soa.Minimum
	}
	for _, rec := range e.view.Authority {
		switch rec.Type {
		case rr.TypeNSEC:
			addNSEC(&d, e.Question.Name, rec)
		case typeNSEC3:
			d.NSECTTL = rec.TTL
			// Which names an NSEC3 record covers is visible only by hashing each of them, so its range stays unknown.
			if len(rec.Data) > 1 && rec.Data[1]&1 == 0 { // no opt-out (RFC 5155 §3.1.2)
				d.Ranges = safeat.RangesUnknown
			}
		}
	}
	return d
}

// addNSEC adds an NSEC record to the denial, if it covers the name.
func addNSEC(d *explain.Denial, asked dnsname.Name, rec iterate.Record) {
	next, _, err := dnsname.FromWire([]byte(rec.Data))
	if err != nil {
		return
	}
	d.NSECTTL = max(d.NSECTTL, rec.TTL)
	after := next.Compare(rec.Name) <= 0 // the last record of a zone points back to the apex
	if asked.Compare(rec.Name) < 0 || !after && asked.Compare(next) >= 0 {
		return
	}
	d.Covers = []string{rec.Name.String(), next.String()}
	if !narrow(rec.Name, asked, next) {
		d.Ranges = safeat.RangesNSEC
	}
}

// narrow reports whether an NSEC record was generated for one name and so covers no other names: it begins at the
// name or just before it, and ends just after it (RFC 4470, RFC 9824).
func narrow(from, asked, next dnsname.Name) bool {
	if next.Label() == "\x00" && next.Parent() == asked {
		return true
	}
	stem := asked.Label()
	stem = stem[:max(len(stem)-1, 0)]
	return len(stem) > 2 && strings.HasPrefix(from.Label(), stem) && strings.HasPrefix(next.Label(), stem)
}

// wildcardOf returns the answer to a random name beside the requested name, or below it at an apex; nil if that was
// not asked.
func (r *run) wildcardOf(recs []record) *explain.Wildcard {
	name := r.facts.Name
	var out *explain.Wildcard
	for _, e := range recs {
		asked := e.Question.Name
		beside := asked.Label() == r.probeLabel && (asked.Parent() == name ||
			asked.Parent() == name.Parent() && name != r.facts.Zone)
		if !beside || e.view == nil || !e.Class.Usable() || e.Class == iterate.Referral {
			continue
		}
		w := &explain.Wildcard{Asked: asked, Class: e.Class, Sets: setsOf(e.view.Answer), Evidence: []int{e.id}}
		w.Same = e.Class == iterate.Answer && r.sameAs(w.Sets, asked, e.Question.Type)
		if out == nil || ranks[w.Class] > ranks[out.Class] || w.Same && !out.Same {
			out = w
		}
	}
	return out
}

// sameAs reports whether a server gives the name the same data as the other name: of the type asked for, or as an
// alias.
func (r *run) sameAs(sets []explain.Set, other dnsname.Name, t rr.Type) bool {
	name := r.facts.Name
	for _, a := range r.facts.Answers {
		for _, t := range []rr.Type{t, rr.TypeCNAME} {
			mine, ok := explain.Find(a.Sets, name, t)
			theirs, has := explain.Find(sets, other, t)
			if ok && has && a.Question.Name == name && slices.Equal(mine.Data, theirs.Data) {
				return true
			}
		}
	}
	return false
}
