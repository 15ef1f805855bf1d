package check

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// lame reports whether a server replied, but not with an answer for the zone. Other servers of the zone may answer, so
// for resolvers all these replies mean the same: ask another server.
func lame(c iterate.Class) bool {
	return c.Lame() || slices.Contains([]iterate.Class{iterate.NotImp, iterate.FormErr, iterate.BadVers,
		iterate.BadCookie, iterate.Odd, iterate.Truncated}, c)
}

// replies describes the replies of lame servers.
var replies = map[iterate.Class]string{
	iterate.LameRefused:  "it replies REFUSED",
	iterate.LameServfail: "it replies SERVFAIL",
	iterate.LameNotAuth:  "its reply is not authoritative",
	iterate.Recursed:     "it replies from a cache, as a resolver does",
	iterate.Upward:       "it refers to the root or a parent zone",
	iterate.NotImp:       "it replies NOTIMP",
	iterate.FormErr:      "it replies FORMERR, with and without EDNS",
	iterate.BadVers:      "it replies BADVERS",
	iterate.BadCookie:    "it rejects every DNS cookie",
	iterate.Odd:          "its reply does not answer the question",
	iterate.Truncated:    "it truncates its reply, and does not complete it over TCP",
}

// tally counts the servers of a zone by their replies.
type tally struct {
	all                              []explain.Server
	good, lame, down, unasked, other int // other: cannot be reached from here, or the reply decides nothing
}

// tallyOf counts the servers of a zone. A server that replies without an SOA record still knows the zone.
func tallyOf(f *explain.Facts, zone dnsname.Name) (t tally) {
	t.all = listed(f, zone)
	for _, s := range t.all {
		switch {
		case s.Class.Usable() || s.Class == iterate.NoSOA:
			t.good++
		case lame(s.Class):
			t.lame++
		case down(f, s):
			t.down++
		// The budget ended before the server was asked: it may be good.
		case (s.Class == iterate.Unknown || s.Class == "") && usable(f, s.Addr) && special(f, s.Addr) == "":
			t.unasked++
		default:
			t.other++
		}
	}
	return t
}

// down reports whether a server does not reply. One lost packet is not enough. Addresses that this machine cannot use
// are not down.
func down(f *explain.Facts, s explain.Server) bool {
	silent := s.Class == iterate.Timeout && s.Sent >= 2 || s.Class == iterate.Unreachable
	return silent && s.Source.Fact != explain.No && s.Health != iterate.Flaky && s.Health != iterate.Up &&
		usable(f, s.Addr)
}

// authoritative is check DEL04: Every nameserver knows the zone.
func authoritative(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone, t := text(z.Name), tallyOf(f, z.Name)
		// Servers that were not queried may still answer: it is critical only if no other server is left.
		severity := explain.Error
		if t.lame > 0 && t.good+t.unasked+t.other == 0 {
			severity = explain.Critical
		}
		for _, s := range t.all {
			// DEL07 reports servers that refer upwards, unless no other server is left.
			if !lame(s.Class) || s.Class == iterate.Upward && severity != explain.Critical {
				continue
			}
			x := fail(severity, actorFor(f, z.Name, explain.DNSHost), server(s),
				"%s is listed for %s but does not know the zone: %s.", server(s), zone, replies[s.Class])
			x.Visible = nsVisible(f, z)
			out = append(out, seen(x, s.Evidence))
		}
		switch {
		case len(out) > 0:
			return out
		case t.good == 0:
			return unknown(zone, "No server of %s gave a usable reply%s.", zone, unroutable(f, t.all))
		case t.unasked > 0:
			return unknown(zone, "%d of %s of %s could not be queried; the others know the zone.", t.unasked,
				words.Count(len(t.all), "server", "servers"), zone)
		}
		return pass(zone, "%s of %s that replied %s the zone.", everyOne(t.good), zone, words.Verb(t.good, "knows", "know"))
	})
}

// everyOne returns "The one server" or "All 3 servers".
func everyOne(n int) string {
	if n == 1 {
		return "The one server"
	}
	return words.All(n, "servers")
}

// notUpward is check DEL07: No nameserver refers resolvers upwards.
func notUpward(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone, asked := text(z.Name), 0
		for _, s := range listed(f, z.Name) {
			if !s.Class.Transport() && s.Class != iterate.Unknown && s.Class != "" {
				asked++
			}
			if s.Class == iterate.Upward {
				x := fail("", actorFor(f, z.Name, explain.DNSHost), server(s),
					"%s is listed for %s but refers to the root or a parent zone: it does not know the zone.", server(s), zone)
				x.Visible = nsVisible(f, z)
				out = append(out, seen(x, s.Evidence))
			}
		}
		switch {
		case len(out) > 0:
			return out
		case asked == 0:
			return unknown(zone, "No server of %s replied.", zone)
		}
		return pass(zone, "No server of %s refers upwards.", zone)
	})
}

// reachable is check DEL05: Every nameserver replies.
func reachable(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone, t := text(z.Name), tallyOf(f, z.Name)
		// Resolvers try the other servers, so one that is down costs time but breaks nothing yet.
		severity := explain.Warning
		if t.down > 0 && t.down == len(t.all) {
			severity = explain.Critical
		}
		actor := actorFor(f, z.Name, explain.DNSHost)
		for _, s := range t.all {
			var x explain.Finding
			switch {
			case down(f, s) && s.Class == iterate.Unreachable:
				x = fail(severity, actor, server(s), "%s, a server of %s, cannot be reached.", server(s), zone)
			case down(f, s):
				x = fail(severity, actor, server(s), "%s, a server of %s, does not reply: all %s were lost.", server(s), zone,
					words.Count(s.Sent, "query", "queries"))
			// Losses between this machine and the server are possible, too, so this is only a notice.
			case s.Health == iterate.Flaky && s.Lost > 0 && s.Sent > 0 && !explained(s):
				x = fail(explain.Notice, actor, server(s), "%s, a server of %s, lost %d of %d queries (%d %%).", server(s), zone,
					s.Lost, s.Sent, 100*s.Lost/s.Sent)
			default:
				continue
			}
			out = append(out, seen(x, s.Evidence))
		}
		switch {
		case len(out) > 0:
			return out
		case t.good+t.lame == 0:
			return unknown(zone, "Whether the servers of %s reply could not be determined%s.", zone, unroutable(f, t.all))
		case t.unasked+t.other > 0:
			return unknown(zone, "%d of %s of %s could not be queried from here%s; the others reply.", t.unasked+t.other,
				words.Count(len(t.all), "server", "servers"), zone, unroutable(f, t.all))
		}
		return pass(zone, "%s of %s %s.", everyOne(len(t.all)), zone, words.Verb(len(t.all), "replies", "reply"))
	})
}

// explained reports whether the losses are queries of a kind that the server never replies to. Other checks report
// these.
func explained(s explain.Server) bool {
	return slices.ContainsFunc(
		[]explain.Probe{s.TCP, s.EDNS, s.EDNSVersion, s.EDNSOption, s.EDNSFlag, s.Truncation, s.Types},
		func(p explain.Probe) bool { return p.Fact == explain.No })
}

// probe describes a check of one behaviour of servers.
type probe struct {
	of    func(explain.Server) explain.Probe
	bad   explain.Fact // the result that fails the check
	words string       // message if the check fails, with verbs for the server and the zone; judge adds the detail
	ok    string       // message if the check passes, with a verb for the zone
	open  string       // what could not be determined
}

// judge returns the findings for one behaviour of all servers. Servers that were not tested do not count.
func (p probe) judge(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) []explain.Finding { return p.judgeZone(f, z) })
}

// judgeZone returns the findings for the servers of one zone.
func (p probe) judgeZone(f *explain.Facts, z iterate.Zone) (out []explain.Finding) {
	zone, good := text(z.Name), 0
	var open []string
	for _, s := range listed(f, z.Name) {
		switch got := p.of(s); got.Fact {
		case p.bad:
			x := fail("", actorFor(f, z.Name, explain.DNSHost), server(s), p.words+"%s.", server(s), zone, detail(got))
			out = append(out, seen(x, got.Evidence))
		case explain.Unknown:
			if s.Health != iterate.Down { // DEL05 reports servers that are down
				open = append(open, server(s))
			}
		case explain.Unasked:
		default:
			good++
		}
	}
	switch {
	case len(out) > 0:
		return out
	case len(open) > 0:
		return unknown(zone, "%s could not be determined for %s.", p.open, words.Some(open))
	case good == 0:
		return nil
	}
	return pass(zone, p.ok, zone)
}

// detail returns the detail of a probe as the end of a sentence.
func detail(p explain.Probe) string {
	if p.Detail == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(p.Detail, ".")
}

// tcp is check DEL06: Every nameserver replies over TCP.
func tcp(f *explain.Facts) []explain.Finding {
	replies := func(s explain.Server) explain.Probe {
		// DEL05 reports servers that do not reply at all.
		if s.TCP.Fact == explain.No && (s.Class.Transport() || s.Health == iterate.Down || !usable(f, s.Addr)) {
			return explain.Probe{Fact: explain.Unknown}
		}
		// The last part of the error is its cause. The parts before describe the query.
		s.TCP.Detail = strings.TrimSpace(s.TCP.Detail[strings.LastIndex(s.TCP.Detail, ": ")+1:])
		return s.TCP
	}
	return probe{of: replies, bad: explain.No, ok: "All servers of %s reply over TCP.",
		open:  "Whether they reply over TCP",
		words: "%s, a server of %s, replies over UDP but not over TCP"}.judge(f)
}

// noRecursion is check DEL15: No nameserver is an open resolver.
var noRecursion = probe{of: func(s explain.Server) explain.Probe { return s.Recursion }, bad: explain.Yes,
	ok: "No server of %s is an open resolver.", open: "Whether they are open resolvers",
	words: "%s, a server of %s, is an open resolver"}

// noTransfer is check DEL16: No nameserver allows zone transfers to anyone.
var noTransfer = probe{of: func(s explain.Server) explain.Probe { return s.Transfer }, bad: explain.Yes,
	ok: "No server of %s allows zone transfers to anyone.", open: "Whether they allow zone transfers to anyone",
	words: "%s allows anyone to transfer the zone %s"}
