package iterate

import (
	"maps"
	"slices"
)

// trace returns the record of the run.
func (r *run) trace() *Trace {
	t := &Trace{Question: r.q, Began: r.began.UTC().Round(0), DNSSEC: !r.opts.NoDNSSEC, Result: r.result, Chain: r.chain,
		Notes: r.notes, Exchanges: r.exchanges()}
	for _, z := range r.order {
		t.Zones = append(t.Zones, z.record())
	}
	maps.Copy(r.limits, r.ended)
	t.Unfinished = slices.Sorted(maps.Keys(r.limits))
	return t
}

func (r *run) exchanges() []Exchange {
	out := slices.Clone(r.copies)
	for _, res := range r.asked {
		out = append(out, res.exchanges...)
	}
	slices.SortFunc(out, Exchange.Compare)
	return out
}

func (z *zone) record() Zone {
	out := Zone{Name: z.name, Quick: !z.full, Hidden: z.hidden, ParentNS: z.parentNS, ChildNS: z.childNS}
	if z.parent != nil {
		out.Parent = z.parent.name
	}
	for i, n := range z.names() {
		h := z.hosts[n]
		if i >= maxServers {
			h = &host{glue: h.glue, own: h.own, problem: "not asked"}
		}
		out.Hosts = append(out.Hosts, Host{Name: n, Glue: h.glue, Found: h.own, Problem: h.problem})
	}
	slices.SortStableFunc(out.ParentNS, compareSets)
	slices.SortStableFunc(out.ChildNS, compareSets)
	return out
}

// compareSets orders NS sets by the first server that has them.
func compareSets(a, b NSSet) int { return a.From[0].Compare(b.From[0]) }
