package gather

import (
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// place is a server of a zone.
type place struct {
	zone   dnsname.Name
	server netip.Addr
}

// settle asks servers that have an older version of a zone than others for it again, after a while: right after a change that is
// how it spreads (RFC 1996), and no fault. What a server said before it caught up is not what it says now, and is asked for again.
func (r *run) settle() {
	late, first := r.behind()
	if len(late) == 0 || !r.pause(first+r.opts.Settle) {
		return
	}
	var qs []iterate.Query
	for _, s := range late {
		qs = append(qs, to(s.Zone, s.Addr, s.Zone, rr.TypeSOA))
	}
	var again []iterate.Query
	for i, reply := range r.askAll(qs) {
		if reply.view == nil || reply.class() != iterate.Answer {
			continue
		}
		r.facts.Settled = max(r.facts.Settled, reply.last.At-first)
		if soa := soaOf(reply.view.Answer); soa != nil && soa.Serial != late[i].SOA.Serial {
			r.fresh[place{late[i].Zone, late[i].Addr}] = reply.last.At
			again = append(again, r.questions(late[i])...)
		}
	}
	r.askAll(again)
}

// behind are the servers of the zones that are judged, of which others have a newer version, and when the first of them told.
func (r *run) behind() (late []explain.Server, first time.Duration) {
	servers := r.serversOf(r.records())
	type line struct{ zone, primary dnsname.Name } // each primary numbers versions by itself
	newest := map[line]uint32{}
	for _, s := range servers {
		if s.SOA == nil || !r.counts(s) {
			continue
		}
		of := line{s.Zone, s.SOA.MName}
		if serial, ok := newest[of]; !ok || int32(s.SOA.Serial-serial) > 0 { // RFC 1982
			newest[of] = s.SOA.Serial
		}
	}
	for _, s := range servers {
		if s.SOA == nil || !r.counts(s) || s.SOA.Serial == newest[line{s.Zone, s.SOA.MName}] || !r.family(s.Addr) {
			continue
		}
		i := slices.IndexFunc(r.exchanges, func(e iterate.Exchange) bool {
			return e.Server == s.Addr && e.Zone == s.Zone && e.Class == iterate.Answer && e.Question == (iterate.Question{Name: s.Zone, Type: rr.TypeSOA})
		})
		if i < 0 || slices.ContainsFunc(late, func(o explain.Server) bool { return o.Zone == s.Zone && o.Addr == s.Addr }) {
			continue
		}
		if at := r.exchanges[i].At; len(late) == 0 || at < first {
			first = at
		}
		late = append(late, s)
	}
	return late, first
}

// counts reports whether a server is one of a zone that whoever asks has to do with: of the domain, or one that the name, or what its
// aliases lead to, is in. Those of registries always have several versions.
func (r *run) counts(s explain.Server) bool {
	if !slices.Contains(s.Listed, "parent") && !slices.Contains(s.Listed, "child") {
		return false
	}
	if domain := r.facts.Domain; !domain.IsZero() && s.Zone.IsIn(domain) {
		return true
	}
	return slices.ContainsFunc(r.names(), func(n dnsname.Name) bool {
		z := r.zoneOf(n)
		return z != nil && z.Name == s.Zone && (z.Name.NumLabels() > 1 || n == z.Name)
	})
}

// pause waits until a moment, counted from the beginning. It does not if there is then no time left to ask anything.
func (r *run) pause(until time.Duration) bool {
	wait := time.Until(r.facts.At.Add(until))
	end, _ := r.ctx.Deadline()
	if time.Until(end) < wait+r.opts.Timeouts[0] {
		return false
	}
	r.tell(StageSettle, r.facts.Zone.String(), 0, 0)
	return resolve.Sleep(r.ctx, wait) == nil
}

// questions are those about the names of the chain that a server is asked.
func (r *run) questions(s explain.Server) (out []iterate.Query) {
	for _, n := range r.names() {
		for _, t := range r.types {
			if z := r.zoneFor(iterate.Question{Name: n, Type: t}); z != nil && z.Name == s.Zone && t != rr.TypeSOA {
				out = append(out, to(s.Zone, s.Addr, n, t))
			}
		}
	}
	return out
}

// outdated reports whether a server has come to a newer version of the zone since a reply.
func (r *run) outdated(e record) bool { return e.At < r.fresh[place{e.Zone, e.Server}] }
