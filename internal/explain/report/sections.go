package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// delegationOf returns the nameservers of the zone, or nil if the zone was not found.
func delegationOf(f *explain.Facts) *Delegation {
	z := f.ZoneAt(f.Zone)
	if z == nil || z.Hidden && len(z.ChildNS) == 0 {
		return nil
	}
	d := &Delegation{Zone: z.Name}
	parent, parentTTL := iterate.Join(z.ParentNS)
	child, childTTL := iterate.Join(z.ChildNS)
	d.NSTTL = [2]uint32{parentTTL, childTTL}
	// All three lists together: a row shows in which of them a nameserver is missing.
	registry := registryNS(f, z.Name)
	all := slices.Concat(parent, child, registry)
	slices.SortFunc(all, dnsname.Name.Compare)
	for _, name := range slices.Compact(all) {
		row := Nameserver{Name: name, Parent: member(parent, name), Child: member(child, name)}
		if len(registry) > 0 {
			row.Registry = member(registry, name)
		}
		for _, s := range f.Servers {
			if s.Zone == z.Name && s.Host == name && !s.Planned() {
				row.Addrs = append(row.Addrs, serverLine(f, s))
			}
		}
		d.Servers = append(d.Servers, row)
	}
	return d
}

// plannedOf returns the planned nameservers, and whether they already know the zone.
func plannedOf(f *explain.Facts) (out []Nameserver) {
	z := f.ZoneAt(f.Zone)
	for _, n := range f.PlanNS {
		row := Nameserver{Name: n, Parent: explain.Unknown, Child: explain.Unknown}
		if z != nil {
			parent, _ := iterate.Join(z.ParentNS)
			child, _ := iterate.Join(z.ChildNS)
			row.Parent, row.Child = member(parent, n), member(child, n)
		}
		for _, s := range f.Servers {
			if s.Host == n && s.Planned() {
				row.Addrs = append(row.Addrs, serverLine(f, s))
			}
		}
		out = append(out, row)
	}
	return out
}

// member reports whether a set contains a name. An empty set was not read, so the result is Unknown.
func member(set []dnsname.Name, name dnsname.Name) explain.Fact {
	switch {
	case len(set) == 0:
		return explain.Unknown
	case slices.Contains(set, name):
		return explain.Yes
	}
	return explain.No
}

// serverLine describes one address of a nameserver. An address that was not queried says so, and why.
func serverLine(f *explain.Facts, s explain.Server) ServerLine {
	l := ServerLine{Addr: s.Addr.String(), RTT: s.RTT, State: string(s.Class)}
	switch {
	case s.Class.Usable(): // negative answers are usable too
		l.State = "answers"
	case s.Class.Lame():
		l.State = "does not know the zone (" + strings.TrimPrefix(string(s.Class), "lame-") + ")"
	case s.Class.Transport():
		l.State = "no reply"
	case s.Class == iterate.Unknown:
		l.State = "not asked"
		if family := familyOf(s.Addr); slices.Contains(f.Vantage.NoRoute, family) {
			l.State = "not asked (no " + family + " here)"
		}
	}
	if s.Class.Usable() && s.Health == iterate.Flaky {
		l.State = fmt.Sprintf("answers, %d of %d queries lost", s.Lost, s.Sent)
	}
	if s.SOA != nil {
		l.Serial = s.SOA.Serial
	}
	return l
}

func familyOf(a netip.Addr) string {
	if a.Unmap().Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// soaOf returns the SOA record that most servers have, or the first of several with equal counts.
func soaOf(f *explain.Facts) *explain.SOA {
	var best *explain.SOA
	votes := map[explain.SOA]int{}
	for _, s := range f.Servers {
		if s.Zone != f.Zone || s.SOA == nil || s.Planned() {
			continue
		}
		if votes[*s.SOA]++; best == nil || votes[*s.SOA] > votes[*best] {
			best = s.SOA
		}
	}
	return best
}

// soaLines explains each field of the SOA record, because users meet these numbers in DNS panels without an
// explanation.
func soaLines(f *explain.Facts) []Line {
	s := soaOf(f)
	if s == nil {
		return nil
	}
	return []Line{
		{"primary", words.Name(s.MName), "the server that changes are made at"},
		{"contact", mailOf(s.RName), "the person or team responsible for the zone"},
		{"serial", fmt.Sprint(s.Serial), "the version of the zone" + serialDate(s.Serial)},
		{"refresh", words.Seconds(s.Refresh), "secondaries ask for a new version this often"},
		{"retry", words.Seconds(s.Retry), "secondaries try again after this time if the primary did not answer"},
		{"expire", words.Seconds(s.Expire), "secondaries stop serving the zone after this time without an answer"},
		{"minimum", words.Seconds(s.Minimum), "one limit for how long \"does not exist\" is remembered"},
		{"TTL", words.Seconds(s.TTL), "the other limit: the smaller one counts"},
	}
}

// mailOf returns the mail address of an RNAME (RFC 1035 §8).
func mailOf(rname dnsname.Name) string {
	text := strings.TrimSuffix(rname.String(), ".")
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '.':
			if strings.Contains(text[:i], "@") {
				return text // not a valid RNAME; SOA06 reports it
			}
			return strings.ReplaceAll(text[:i], `\.`, ".") + "@" + text[i+1:]
		}
	}
	return text
}

// serialDate describes serials of the form YYYYMMDDnn, which are common.
func serialDate(serial uint32) string {
	if t, err := time.Parse("20060102", fmt.Sprint(serial/100)); err == nil && t.Year() > 1990 && t.Year() < 2100 {
		return fmt.Sprintf("; change %d of %s, if it is a date", serial%100, t.Format("2006-01-02"))
	}
	return ""
}

// negativeOf returns the negative TTL of the zone, or nil if it is not known.
func negativeOf(f *explain.Facts) *Negative {
	n := Negative{}
	found := false
	for _, d := range f.Denials {
		if d.Zone != f.Zone || d.Class == iterate.NoSOA {
			continue
		}
		n.SOATTL, n.Minimum, found = max(n.SOATTL, d.TTL), max(n.Minimum, d.Minimum), true
		n.Ranges = n.Ranges || d.Ranges == safeat.RangesNSEC
	}
	// In a denial, the TTL of the SOA record may already be the smaller value (RFC 2308 §3). The SOA record of the zone
	// shows both.
	if s := soaOf(f); s != nil && (!found || min(s.TTL, s.Minimum) == min(n.SOATTL, n.Minimum)) {
		n.SOATTL, n.Minimum, found = s.TTL, s.Minimum, true
	}
	if !found {
		return nil
	}
	n.TTL = min(n.SOATTL, n.Minimum)
	asked := "This scan did not query resolvers for names that do not exist."
	if forced(f) {
		asked = "Resolvers were queried for this name anyway, and remember it now."
	}
	n.Words = []string{
		fmt.Sprintf("If someone queries a name of %s before you create it, their resolver remembers \"does not exist\" "+
			"for up to %s.", words.Name(f.Zone), words.Seconds(n.TTL)),
		fmt.Sprintf("That is the smaller of the SOA's TTL (%s) and its minimum (%s). The TTL of the new record does not "+
			"matter.", words.Seconds(n.SOATTL), words.Seconds(n.Minimum)),
		"Create records first, and share links afterwards. " + asked,
	}
	if n.Ranges {
		n.Words = append(n.Words,
			"The zone is signed with NSEC: one such answer can also hide neighbouring names that nobody queried.")
	}
	return &n
}

// forced reports whether resolvers were queried for a name that the authority does not have.
func forced(f *explain.Facts) bool {
	has := func(o explain.Outcome) bool { return o.Result == iterate.Answer }
	recursed := func(s explain.Sample) bool { return s.Recurse && s.Question.Name == f.Name }
	asked := func(c explain.Cache) bool { return slices.ContainsFunc(c.Samples, recursed) }
	return !slices.ContainsFunc(f.Outcomes, has) && slices.ContainsFunc(f.Caches, asked)
}

// manners describes why answers differ.
var manners = map[explain.Manner]string{explain.Divided: "the servers disagree",
	explain.Computed:  "each server computes its own, with the same serial (ALIAS, or by client network)",
	explain.ByNetwork: "by client network, on purpose", explain.Rotating: "in rotation, on purpose"}

// differences returns the questions to which servers give different answers, with the names of the servers.
func differences(f *explain.Facts) (out []Difference) {
	for _, d := range explain.Differences(f) {
		if d.Question.Type == rr.TypeSOA {
			continue // the table of nameservers shows the serials
		}
		row := Difference{Question: words.Name(d.Question.Name) + " " + d.Question.Type.String(), Manner: manners[d.Manner]}
		for _, g := range d.Groups {
			group := Group{Answer: cmp.Or(strings.Join(g.Data, ", "), outcome(g.Class))}
			for _, a := range g.Servers {
				group.Servers = append(group.Servers, serverName(f, d.Zone, a))
			}
			for _, p := range g.Subnets {
				group.Servers = append(group.Servers, "for "+p.String())
			}
			row.Groups = append(row.Groups, group)
		}
		out = append(out, row)
	}
	return out
}

// outcomes describes replies without records.
var outcomes = map[iterate.Class]string{iterate.NoData: "no such record", iterate.NXDomain: "does not exist",
	iterate.Timeout: "no reply", iterate.Unreachable: "no reply",
	iterate.LameRefused: "refused", iterate.LameServfail: "failed (SERVFAIL)",
	iterate.LameNotAuth: "does not know the zone", iterate.Upward: "does not know the zone",
	iterate.NoSOA: "denied without an SOA record", iterate.Unknown: "not determined"}

// outcome describes a reply without records, or returns its class if it has no description.
func outcome(c iterate.Class) string {
	return cmp.Or(outcomes[c], string(c))
}

func answerText(sets []explain.Set) string {
	return strings.Join(words.Each(sets, func(s explain.Set) string {
		return fmt.Sprintf("%s %s", s.Type, strings.Join(s.Data, ", "))
	}), "; ")
}

// serverName returns the name and the address of a server.
func serverName(f *explain.Facts, zone dnsname.Name, addr netip.Addr) string {
	i := slices.IndexFunc(f.Servers, func(s explain.Server) bool { return s.Zone == zone && s.Addr == addr })
	if i < 0 {
		return addr.String()
	}
	return fmt.Sprintf("%s (%s)", words.Name(f.Servers[i].Host), addr)
}
