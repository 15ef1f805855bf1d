package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// parentReply is what one server of the parent zone says about a zone.
type parentReply struct {
	server   netip.Addr
	class    iterate.Class // Referral also if the server has the zone; Answer if it answers from the parent zone
	ds       []string      // the DS records, sorted
	dsKnown  bool
	dsFails  iterate.Class // of the reply to a DS query that is no answer
	dsLost   int
	lost     int
	evidence []int
}

// parentReplies returns what each server of the parent zone says about a zone, in the order of the exchanges.
func parentReplies(f *explain.Facts, z iterate.Zone) (out []*parentReply) {
	for i, e := range f.Exchanges {
		// Questions about other names say nothing about this delegation.
		if e.Zone != z.Parent || !e.Question.Name.IsIn(z.Name) || e.Class == iterate.Unknown || !usable(f, e.Server) {
			continue
		}
		at := slices.IndexFunc(out, func(r *parentReply) bool { return r.server == e.Server })
		if at < 0 {
			at = len(out)
			out = append(out, &parentReply{server: e.Server})
		}
		out[at].add(z, e, i)
	}
	return out
}

// add records one exchange. A server that refers once knows the zone, whatever it replies to other queries.
func (r *parentReply) add(z iterate.Zone, e iterate.Exchange, index int) {
	r.evidence = append(r.evidence, index)
	if e.Class.Transport() {
		r.lost++
	}
	if e.Question == (iterate.Question{Name: z.Name, Type: rr.TypeDS}) {
		r.addDSReply(z, e)
		return
	}
	view, err := e.View()
	if err != nil {
		if r.class == "" {
			r.class = e.Class
		}
		return
	}
	class := e.Class
	switch {
	case class == iterate.Referral:
		r.addDS(z, view.Authority, view.EDNS)
	case class.Usable() && hasZone(z, e.Server, view):
		class = iterate.Referral
	}
	if r.class != iterate.Referral {
		r.class = class
	}
}

// hasZone reports whether a server of the parent zone has the zone too: it is one of its servers, or its reply shows
// the SOA or NS records of the zone. Then it answers instead of referring.
func hasZone(z iterate.Zone, server netip.Addr, view iterate.View) bool {
	return slices.ContainsFunc(z.Hosts, func(h iterate.Host) bool { return slices.Contains(h.Addrs(), server) }) ||
		slices.ContainsFunc(slices.Concat(view.Answer, view.Authority), func(rec iterate.Record) bool {
			return (rec.Type == rr.TypeSOA || rec.Type == rr.TypeNS) && rec.Name.IsIn(z.Name)
		})
}

// addDSReply records the reply to a query for the DS records. The servers of a delegated zone without DS deny them, and
// servers that have the zone too may deny them from the wrong zone.
func (r *parentReply) addDSReply(z iterate.Zone, e iterate.Exchange) {
	view, err := e.View()
	switch {
	case e.Class.Transport():
		r.dsLost++
		r.dsFails = e.Class
	case err != nil || !e.Class.Usable():
		r.dsFails = e.Class
	case e.Class == iterate.Answer:
		r.addDS(z, view.Answer, true)
	case !slices.ContainsFunc(view.Authority, func(rec iterate.Record) bool {
		return rec.Type == rr.TypeSOA && rec.Name.IsIn(z.Name)
	}):
		r.dsKnown = r.dsKnown || e.Class == iterate.NoData
	}
	if e.Class.Usable() {
		r.dsFails, r.dsLost = "", 0
	}
}

// addDS records the DS records of a section. Without EDNS, a referral has none.
func (r *parentReply) addDS(z iterate.Zone, section []iterate.Record, known bool) {
	for _, rec := range iterate.Records(section, z.Name, rr.TypeDS) {
		if data := rec.Text(); !slices.Contains(r.ds, data) {
			r.ds = append(r.ds, data)
		}
	}
	slices.Sort(r.ds)
	r.dsKnown = r.dsKnown || known
}

// denies reports whether the server says that the zone does not exist or is not delegated.
func (r *parentReply) denies() bool { return negative(r.class) }

// answers reports whether the server answers from the parent zone, as with a wildcard, and does not refer to the zone.
func (r *parentReply) answers() bool { return r.class == iterate.Answer }

// fails reports whether the server does not answer. One lost packet is not enough.
func (r *parentReply) fails() bool {
	return lame(r.class) || r.class.Transport() && r.lost >= 2
}

// failsDS reports whether the server refers to the zone, but does not answer queries for its DS records.
func (r *parentReply) failsDS() bool {
	return r.class == iterate.Referral && (lame(r.dsFails) || r.dsFails.Transport() && r.dsLost >= 2)
}

// parentsAgree is check DEL19: All servers of the parent zone say the same about the zone. For the zones above the
// domain, only differences are reported.
func parentsAgree(f *explain.Facts) []explain.Finding {
	out := perZone(f, func(z iterate.Zone) []explain.Finding {
		// A zone on the servers of its parent has no referral.
		if z.Hidden || z.Name.IsRoot() {
			return nil
		}
		zone, above := text(z.Name), text(z.Parent)
		switch out := parentDifferences(f, z, explain.Warning); {
		case len(out) > 0:
			return out
		case len(z.ParentNS) == 0:
			return unknown(zone, "What the servers of %s say about %s is not known.", above, zone)
		}
		return pass(zone, "All servers of %s that were asked say the same about %s.", above, zone)
	})
	zones := judged(f)
	for _, z := range f.Zones {
		checked := slices.ContainsFunc(zones, func(o iterate.Zone) bool { return o.Name == z.Name })
		if !z.Quick && !z.Hidden && !z.Name.IsRoot() && !checked && f.Name.IsIn(z.Name) {
			out = append(out, parentDifferences(f, z, explain.Notice)...)
		}
	}
	return worst(out)
}

// parentDifferences returns the findings about the servers of the parent of a zone. failing is the severity of servers
// that do not answer.
func parentDifferences(f *explain.Facts, z iterate.Zone, failing explain.Severity) (out []explain.Finding) {
	replies := parentReplies(f, z)
	actor := explain.Parent
	if !f.Name.IsIn(z.Name) {
		actor = actorFor(f, z.Name, actor)
	}
	if sets := byNames(z.ParentNS); len(sets) > 1 {
		out = append(out, fail(explain.Warning, actor, text(z.Name), "The servers of %s hand out different nameservers for "+
			"%s: %s.", text(z.Parent), text(z.Name), nsShares(f, z.Parent, sets)))
	}
	out = slices.Concat(out, parentDS(f, z, replies), someParents(f, z, replies, (*parentReply).denies, explain.Error,
		"say that %s is not delegated: %s. The others delegate it. %s fail, and resolvers keep the denial."),
		someParents(f, z, replies, (*parentReply).answers, explain.Error,
			"answer for %s themselves: %s. The others delegate it. %s get records that are not those of the zone."),
		someParents(f, z, replies, (*parentReply).failsDS, failing, "do not answer queries for the DS records of %s: %s. "+
			"%s by validating resolvers take longer, because they must try another server."))
	// If the parent zone is checked itself, DEL04 and DEL05 report servers that do not answer.
	if !slices.ContainsFunc(judged(f), func(p iterate.Zone) bool { return p.Name == z.Parent }) {
		out = append(out, someParents(f, z, replies, (*parentReply).fails, failing, "do not answer for %s: %s. %s take "+
			"longer, because resolvers must try another server.")...)
	}
	for i := range out {
		out[i].Actor = actor
		if out[i].Visible.IsZero() {
			out[i].Visible = nsVisible(f, z)
		}
	}
	return out
}

// byNames joins the sets with the same nameservers. Another TTL is no other list.
func byNames(sets []iterate.NSSet) (out []iterate.NSSet) {
	for _, s := range sets {
		i := slices.IndexFunc(out, func(o iterate.NSSet) bool { return slices.Equal(sorted(o.NS), sorted(s.NS)) })
		if i < 0 {
			out = append(out, s)
			continue
		}
		out[i].From = iterate.Union(out[i].From, s.From)
	}
	return out
}

// nsShares lists which servers of a zone hand out which nameservers, and to what share of lookups.
func nsShares(f *explain.Facts, zone dnsname.Name, sets []iterate.NSSet) string {
	total := 0
	for _, s := range sets {
		total += len(s.From)
	}
	return strings.Join(words.Each(sets, func(s iterate.NSSet) string {
		return fmt.Sprintf("%s to about %s: %s", words.Some(servers(f, zone, s.From)), share(len(s.From), total),
			words.Some(texts(sorted(s.NS))))
	}), "; ")
}

// share returns the part of all lookups that some of a zone's servers get.
func share(some, all int) string { return fmt.Sprintf("%d %% of lookups", 100*some/all) }

// someParents returns a finding if is returns true for some servers of the parent zone, and not for all. The sentence
// continues "1 of the 2 servers of org", and has verbs for the zone, the servers and the share of lookups.
func someParents(f *explain.Facts, z iterate.Zone, all []*parentReply, is func(*parentReply) bool,
	severity explain.Severity, sentence string) []explain.Finding {
	some := only(all, is)
	if len(some) == 0 || len(some) == len(all) {
		return nil
	}
	names := words.Each(some, func(r *parentReply) string { return serverAt(f, z.Parent, r.server) })
	x := fail(severity, "", text(z.Name), "%d of the %d servers of %s "+sentence, len(some), len(all), text(z.Parent),
		text(z.Name), words.Some(names), "About "+share(len(some), len(all)))
	for _, r := range some {
		x.Evidence = append(x.Evidence, r.evidence...)
	}
	return []explain.Finding{x}
}

// parentDS returns a finding if servers of the parent have different DS records.
func parentDS(f *explain.Facts, z iterate.Zone, replies []*parentReply) []explain.Finding {
	known := only(replies, func(r *parentReply) bool { return r.dsKnown && r.class == iterate.Referral })
	total := len(known)
	var parts []string
	x := fail(explain.Error, "", text(z.Name), "")
	if secured, ok := securedZone(f, z.Name); ok {
		x.Visible = dsVisible(f, secured)
	}
	for len(known) > 0 {
		same := only(known, func(r *parentReply) bool { return slices.Equal(r.ds, known[0].ds) })
		known = only(known, func(r *parentReply) bool { return !slices.Contains(same, r) })
		what := "none"
		if len(same[0].ds) > 0 {
			what = words.Some(words.Each(same[0].ds, shortDS))
		}
		parts = append(parts, fmt.Sprintf("%s to about %s: %s", words.Some(words.Each(same, func(r *parentReply) string {
			return serverAt(f, z.Parent, r.server)
		})), share(len(same), total), what))
		for _, r := range same {
			x.Evidence = append(x.Evidence, r.evidence...)
		}
	}
	if len(parts) < 2 {
		return nil
	}
	x.Words = fmt.Sprintf("The servers of %s have different DS records for %s: %s. Validating resolvers reject the zone, "+
		"or do not validate it, depending on the server that they ask.", text(z.Parent), text(z.Name),
		strings.Join(parts, "; "))
	return []explain.Finding{x}
}

// shortDS returns a DS record with a shortened digest.
func shortDS(data string) string {
	fields := strings.Fields(data)
	if len(fields) < 4 || len(fields[3]) <= 12 {
		return data
	}
	return strings.Join(fields[:3], " ") + " " + fields[3][:12] + "…"
}
