package check

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// replies are what a lame server's reply is called in a sentence.
var replies = map[iterate.Class]string{
	iterate.LameRefused:  "it replies REFUSED",
	iterate.LameServfail: "it replies SERVFAIL",
	iterate.LameNotAuth:  "its reply has no authority",
	iterate.Recursed:     "it replies from a cache, as a resolver does",
	iterate.Upward:       "it refers back up",
}

// tally counts the servers of a zone by what they are good for.
type tally struct {
	all                              []explain.Server
	good, lame, down, unasked, other int // other: of no use from here, or replied in a way that tells nothing
}

func tallyOf(f *explain.Facts, zone dnsname.Name) (t tally) {
	t.all = listed(f, zone)
	for _, s := range t.all {
		switch {
		case s.Class.Usable() || s.Class == iterate.NoSOA:
			t.good++
		case s.Class.Lame():
			t.lame++
		case down(f, s):
			t.down++
		case (s.Class == iterate.Unknown || s.Class == "") && usable(f, s.Addr) && special(f, s.Addr) == "":
			t.unasked++
		default:
			t.other++
		}
	}
	return t
}

// down reports whether a server does not reply. One lost packet does not show that, nor do addresses of a family that the
// machine cannot use, or that no machine can.
func down(f *explain.Facts, s explain.Server) bool {
	silent := s.Class == iterate.Timeout && s.Sent >= 2 || s.Class == iterate.Unreachable
	return silent && s.Source.Fact != explain.No && s.Health != iterate.Flaky && s.Health != iterate.Up && usable(f, s.Addr) && special(f, s.Addr) == ""
}

func authoritative(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone, t := text(z.Name), tallyOf(f, z.Name)
		severity := explain.Error
		if t.lame > 0 && t.good+t.unasked+t.other == 0 {
			severity = explain.Critical
		}
		for _, s := range t.all {
			// One that refers upward is DEL07's, unless nothing else is left.
			if !s.Class.Lame() || s.Class == iterate.Upward && severity != explain.Critical {
				continue
			}
			x := fail(severity, who(f, z.Name, explain.DNSHost), server(s), "%s is listed for %s but does not know the zone: %s.", server(s), zone, replies[s.Class])
			x.Visible = nsVisible(f, z)
			out = append(out, seen(x, s.Evidence))
		}
		switch {
		case len(out) > 0:
			return out
		case t.good == 0:
			return unknown(zone, "No server of %s replied in a way that can be judged%s.", zone, unroutable(f, t.all))
		case t.unasked > 0:
			return unknown(zone, "%d of %s of %s could not be asked; the others know the zone.", t.unasked, words.Count(len(t.all), "server", "servers"), zone)
		}
		return pass(zone, "%s of %s that replied %s the zone.", everyOne(t.good), zone, words.Verb(t.good, "knows", "know"))
	})
}

func everyOne(n int) string {
	if n == 1 {
		return "The one server"
	}
	return words.All(n, "servers")
}

func notUpward(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone, asked := text(z.Name), 0
		for _, s := range listed(f, z.Name) {
			if !s.Class.Transport() && s.Class != iterate.Unknown && s.Class != "" {
				asked++
			}
			if s.Class == iterate.Upward {
				x := fail("", who(f, z.Name, explain.DNSHost), server(s), "%s is listed for %s but refers back to the root or a zone above: it does not know the zone.", server(s), zone)
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
		return pass(zone, "No server of %s refers back up.", zone)
	})
}

func reachable(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone, t := text(z.Name), tallyOf(f, z.Name)
		severity := explain.Warning
		if t.down > 0 && t.down == len(t.all) {
			severity = explain.Critical
		}
		actor := who(f, z.Name, explain.DNSHost)
		for _, s := range t.all {
			var x explain.Finding
			switch {
			case down(f, s) && s.Class == iterate.Unreachable:
				x = fail(severity, actor, server(s), "%s, a server of %s, cannot be reached.", server(s), zone)
			case down(f, s):
				x = fail(severity, actor, server(s), "%s, a server of %s, does not reply: all %s were lost.", server(s), zone, words.Count(s.Sent, "query", "queries"))
			case s.Health == iterate.Flaky && s.Lost > 0 && s.Sent > 0 && !explained(s):
				x = fail(explain.Notice, actor, server(s), "%s, a server of %s, lost %d of %d queries (%d %%).", server(s), zone, s.Lost, s.Sent, 100*s.Lost/s.Sent)
			default:
				continue
			}
			out = append(out, seen(x, s.Evidence))
		}
		switch {
		case len(out) > 0:
			return out
		case t.good+t.lame == 0:
			return unknown(zone, "Whether the servers of %s reply could not be found out%s.", zone, unroutable(f, t.all))
		case t.unasked+t.other > 0:
			return unknown(zone, "%d of %s of %s could not be asked from here%s; the others reply.", t.unasked+t.other, words.Count(len(t.all), "server", "servers"), zone, unroutable(f, t.all))
		}
		return pass(zone, "%s of %s %s.", everyOne(len(t.all)), zone, words.Verb(len(t.all), "replies", "reply"))
	})
}

// explained reports whether losses are of questions that the server is known not to reply to.
func explained(s explain.Server) bool {
	return slices.ContainsFunc([]explain.Probe{s.TCP, s.EDNS, s.EDNSVersion, s.EDNSOption, s.EDNSFlag, s.Truncation, s.Types},
		func(p explain.Probe) bool { return p.Fact == explain.No })
}

// probe is a question about the conduct of servers.
type probe struct {
	of    func(explain.Server) explain.Probe
	bad   explain.Fact
	words string // of the server and the zone, when it is bad; the detail of the probe and a dot follow
	ok    string // of the zone, when none is
	open  string // what could not be found out
}

// judge asks what came of a probe at each server. One that nobody made says nothing.
func (p probe) judge(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone, good := text(z.Name), 0
		var open []string
		for _, s := range listed(f, z.Name) {
			switch got := p.of(s); got.Fact {
			case p.bad:
				x := fail("", who(f, z.Name, explain.DNSHost), server(s), p.words+"%s.", server(s), zone, detail(got))
				out = append(out, seen(x, got.Evidence))
			case explain.Unknown:
				if s.Health != iterate.Down { // else DEL05 tells
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
			return unknown(zone, "%s could not be found out for %s.", p.open, words.Some(open))
		case good == 0:
			return nil
		}
		return pass(zone, p.ok, zone)
	})
}

// detail is what more there is to say, in the end of a sentence.
func detail(p explain.Probe) string {
	if p.Detail == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(p.Detail, ".")
}

func tcp(f *explain.Facts) []explain.Finding {
	replies := func(s explain.Server) explain.Probe {
		// A server that does not reply at all is DEL05's.
		if s.TCP.Fact == explain.No && (s.Class.Transport() || s.Health == iterate.Down || !usable(f, s.Addr)) {
			return explain.Probe{Fact: explain.Unknown}
		}
		// The end of an error is its cause; the beginning is about how we ask.
		s.TCP.Detail = strings.TrimSpace(s.TCP.Detail[strings.LastIndex(s.TCP.Detail, ": ")+1:])
		return s.TCP
	}
	return probe{of: replies, bad: explain.No, ok: "All servers of %s reply over TCP.", open: "Whether they reply over TCP",
		words: "%s, a server of %s, replies over UDP but not over TCP"}.judge(f)
}

var noRecursion = probe{of: func(s explain.Server) explain.Probe { return s.Recursion }, bad: explain.Yes,
	ok: "No server of %s resolves names of others.", open: "Whether they resolve names of others",
	words: "%s, a server of %s, resolves names of others for anyone"}

var noTransfer = probe{of: func(s explain.Server) explain.Probe { return s.Transfer }, bad: explain.Yes,
	ok: "No server of %s gives the whole zone to strangers.", open: "Whether they give the zone to strangers",
	words: "%s gives the whole zone %s to anyone who asks"}
