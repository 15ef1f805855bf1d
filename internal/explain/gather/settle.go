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

// zoneServer is an address as a server of a zone.
type zoneServer struct {
	zone   dnsname.Name
	server netip.Addr
}

// settle asks servers with an older version of a zone for the SOA again, after a while. Right after a change, an
// older version is normal: it takes time to spread (RFC 1996). Answers that a server gave before it caught up are
// outdated and asked again.
func (r *run) settle() {
	late, first := r.outdatedServers()
	if len(late) == 0 || !r.waitUntil(first+r.opts.Settle) {
		return
	}
	var qs []iterate.Query
	for _, s := range late {
		qs = append(qs, newQuery(s.Zone, s.Addr, s.Zone, rr.TypeSOA))
	}
	var again []iterate.Query
	for i, reply := range r.askAll(qs) {
		if reply.view == nil || reply.class() != iterate.Answer {
			continue
		}
		r.facts.Settled = max(r.facts.Settled, reply.last.At-first)
		if soa := soaOf(reply.view.Answer); soa != nil && soa.Serial != late[i].SOA.Serial {
			r.updatedAt[zoneServer{late[i].Zone, late[i].Addr}] = reply.last.At
			again = append(again, r.chainQueries(late[i])...)
		}
	}
	r.askAll(again)
}

// outdatedServers returns the servers that have an older version of a relevant zone than other servers, and when the
// first of them sent its SOA.
func (r *run) outdatedServers() (late []explain.Server, first time.Duration) {
	servers := r.serversOf(r.records())
	type lineage struct{ zone, primary dnsname.Name } // each primary numbers its versions independently
	newest := map[lineage]uint32{}
	for _, s := range servers {
		if s.SOA == nil || !r.isRelevant(s) {
			continue
		}
		of := lineage{s.Zone, s.SOA.MName}
		if serial, ok := newest[of]; !ok || int32(s.SOA.Serial-serial) > 0 { // RFC 1982
			newest[of] = s.SOA.Serial
		}
	}
	for _, s := range servers {
		if s.SOA == nil || !r.isRelevant(s) || s.SOA.Serial == newest[lineage{s.Zone, s.SOA.MName}] || !r.family(s.Addr) {
			continue
		}
		i := slices.IndexFunc(r.exchanges, func(e iterate.Exchange) bool {
			return e.Server == s.Addr && e.Zone == s.Zone && e.Class == iterate.Answer &&
				e.Question == (iterate.Question{Name: s.Zone, Type: rr.TypeSOA})
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

// isRelevant reports whether a server belongs to a zone that concerns the user: a zone of the domain, or one that
// contains the name or a target of its aliases. Servers of registries always have several versions.
func (r *run) isRelevant(s explain.Server) bool {
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

// waitUntil waits until a time since the start and reports whether it did. It does not wait if no time would be left
// for queries.
func (r *run) waitUntil(until time.Duration) bool {
	wait := time.Until(r.facts.At.Add(until))
	end, _ := r.ctx.Deadline()
	if time.Until(end) < wait+r.opts.Timeouts[0] {
		return false
	}
	r.reportProgress(StageSettle, r.facts.Zone.String(), 0, 0)
	return resolve.Sleep(r.ctx, wait) == nil
}

// chainQueries returns the queries about names of the chain that a server is sent.
func (r *run) chainQueries(s explain.Server) (out []iterate.Query) {
	for _, n := range r.names() {
		for _, t := range r.types {
			if z := r.zoneFor(iterate.Question{Name: n, Type: t}); z != nil && z.Name == s.Zone && t != rr.TypeSOA {
				out = append(out, newQuery(s.Zone, s.Addr, n, t))
			}
		}
	}
	return out
}

// outdated reports whether the server got a newer version of the zone after this reply.
func (r *run) outdated(e record) bool { return e.At < r.updatedAt[zoneServer{e.Zone, e.Server}] }
