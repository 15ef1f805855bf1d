package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// answered returns the largest number of servers with comparable answers to one question, and whether a server was
// queried on behalf of other client networks.
func answered(f *explain.Facts) (most int, networks bool) {
	count := map[iterate.Question]int{}
	for _, a := range f.Answers {
		if !a.Class.Usable() {
			continue
		}
		if a.Subnet.IsValid() {
			networks = true
			continue
		}
		count[a.Question]++
		most = max(most, count[a.Question])
	}
	return most, networks
}

// groupsText lists the servers of each group with their answer.
func groupsText(f *explain.Facts, d explain.Difference) string {
	var parts []string
	for _, g := range d.Groups {
		// names without the final dot
		what := words.Some(words.Each(g.Data, func(d string) string { return strings.TrimSuffix(d, ".") }))
		switch {
		// No data can mean two things, and the fix differs: the name, or only the type, is missing.
		case g.Class == iterate.NXDomain:
			what = "that it does not exist"
		case len(g.Data) == 0:
			what = "that there is none"
		}
		serial := ""
		// The serial shows which server is behind. With one version for all it would only distract.
		if d.Manner == explain.Divided && !oneVersion(d) && len(g.Serials) == 1 && g.Serials[0] != 0 {
			serial = fmt.Sprintf(" (version %d)", g.Serials[0])
		}
		for _, p := range g.Subnets {
			serial += fmt.Sprintf(" (for %s)", p)
		}
		parts = append(parts, fmt.Sprintf("%s%s: %s", words.Some(servers(f, d.Zone, g.Servers)), serial, what))
	}
	return strings.Join(parts, "; ")
}

// differing returns a finding for each question whose answers differ in one manner, on purpose.
func differing(f *explain.Facts, m explain.Manner, words string) (out []explain.Finding) {
	for _, d := range explain.Differences(f) {
		if d.Manner != m {
			continue
		}
		q := question(d.Question)
		out = append(out, seenIn(fail("", explain.Nobody, q, "%s %s: %s.", q, words, groupsText(f, d)), d))
	}
	return out
}

// seenIn adds the evidence of a difference to a finding.
func seenIn(x explain.Finding, d explain.Difference) explain.Finding {
	for _, g := range d.Groups {
		x.Evidence = append(x.Evidence, g.Evidence...)
	}
	return x
}

// oneVersion reports whether all servers that differ have the same version of the zone.
func oneVersion(d explain.Difference) bool {
	return !slices.ContainsFunc(d.Groups, func(g explain.Group) bool {
		return len(g.Serials) != 1 || g.Serials[0] == 0 || g.Serials[0] != d.Groups[0].Serials[0]
	})
}

// disagreeing returns the findings about servers with different records. If all of them have the same serial, no server
// is behind, and another zone transfer fixes nothing.
func disagreeing(f *explain.Facts) (out []explain.Finding) {
	for _, d := range explain.Differences(f) {
		if d.Question == (iterate.Question{Name: d.Zone, Type: rr.TypeSOA}) {
			continue // SOA03 reports servers with an older version
		}
		q := question(d.Question)
		x := fail("", actorFor(f, d.Zone, explain.DNSHost), q, "%s is not the same on all servers of the zone: %s.", q,
			groupsText(f, d))
		switch {
		// A warning and not an error: providers with ALIAS or geographic answers do this on purpose.
		case d.Manner == explain.Computed:
			x.Severity = explain.Warning
			x.Words = fmt.Sprintf("%s is not the same on all servers of the zone, although all have version %d: no server is "+
				"behind. Each computes its own answer, as with ALIAS or answers by client network: %s.",
				q, d.Groups[0].Serials[0], groupsText(f, d))
			x.Fix = fmt.Sprintf("If %s is an ALIAS or directs users to a location near them, and all of these addresses are "+
				"yours, do nothing. Otherwise, enter the same record on all servers, and raise the serial.", q)
		case d.Manner != explain.Divided:
			continue
		case oneVersion(d):
			x.Words = fmt.Sprintf("%s is not the same on all servers of the zone, although all have version %d: %s.", q,
				d.Groups[0].Serials[0], groupsText(f, d))
			x.Fix = "Enter the same records on all servers, and raise the serial: servers fetch the zone only when the serial " +
				"has changed."
		}
		if d.Manner == explain.Divided {
			x.Visible = fixed(f, func(a explain.Answer) bool { return a.Question == d.Question })
		}
		out = append(out, seenIn(x, d))
	}
	return out
}

// question returns the name and type of a question.
func question(q iterate.Question) string {
	return fmt.Sprintf("%s %s", text(q.Name), q.Type)
}

// sameAnswers is check NAM11: All nameservers give the same answer.
func sameAnswers(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	if out := disagreeing(f); len(out) > 0 {
		return out
	}
	switch most, _ := answered(f); {
	case most < 2 && f.Kind == explain.Scan:
		return nil // a scan is about the servers, and other checks report that there is only one
	case most == 0:
		return unknown(name, "No authoritative answer for %s is known.", name)
	case most == 1:
		return unknown(name, "The answer for %s is known from only one server.", name)
	default:
		return pass(name, "%s that answered give the same answer for %s.", words.All(most, "servers"), name)
	}
}

// sameEverywhere is check NAM12: The answer is the same for all client networks. A difference is reported, though it
// is intended: otherwise two people who compare their answers take it for a fault.
func sameEverywhere(f *explain.Facts) []explain.Finding {
	if out := differing(f, explain.ByNetwork, "depends on the client network, on purpose"); len(out) > 0 {
		return out
	}
	if _, networks := answered(f); networks {
		return pass(text(f.Name), "The answer for %s is the same for all networks that were tried.", text(f.Name))
	}
	return nil // no other client network was tried
}

// sameAgain is check NAM13: The answer does not rotate. Without this finding, a person who gets two answers in a row
// searches for a fault.
func sameAgain(f *explain.Facts) []explain.Finding {
	if out := differing(f, explain.Rotating, "rotates, on purpose"); len(out) > 0 {
		return out
	}
	if most, _ := answered(f); most > 0 {
		return pass(text(f.Name), "No answer for %s was seen to rotate.", text(f.Name))
	}
	return unknown(text(f.Name), "No authoritative answer for %s is known.", text(f.Name))
}

// parseAddrs returns the texts that are addresses.
func parseAddrs(texts []string) (out []netip.Addr) {
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// addresses returns the addresses that the name resolves to, and whether they are known.
func addresses(f *explain.Facts, t rr.Type) (out []netip.Addr, known bool) {
	o, ok := outcome(f, t)
	if !ok || o.Result == iterate.Unknown {
		return nil, false
	}
	for _, s := range o.Sets {
		if s.Type == t {
			out = append(out, parseAddrs(s.Data)...)
		}
	}
	return out, true
}

// publicAddresses is check NAM14: All addresses are public.
func publicAddresses(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	a, known4 := addresses(f, rr.TypeA)
	aaaa, known6 := addresses(f, rr.TypeAAAA)
	var out []explain.Finding
	for _, addr := range slices.Concat(a, aaaa) {
		if why := special(f, addr); why != "" {
			x := fail("", explain.DNSHost, name, "%s has the address %s, which is %s: it cannot be reached from the internet.",
				name, addr, why)
			x.Visible = withoutAddr(f, addr)
			out = append(out, x)
		}
	}
	switch {
	case len(out) > 0:
		return out
	case noRecords(f):
		return nil
	case !known4 && !known6:
		return unknown(name, "The addresses of %s are not known.", name)
	case len(a)+len(aaaa) == 0:
		return nil
	}
	return pass(name, "All addresses of %s are public.", name)
}

// withoutAddr returns when everyone sees that an address has been replaced, if that is done now.
func withoutAddr(f *explain.Facts, addr netip.Addr) (at time.Time) {
	for _, o := range f.Outcomes {
		for _, s := range o.Sets {
			if slices.Contains(s.Data, addr.String()) {
				at = after(f, replaced(f, s.Name, s.Type, safeat.Data, s.TTL))
			}
		}
	}
	return at
}

// sameFamilies is check NAM15: A and AAAA lead to the same service.
func sameFamilies(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	a, known4 := addresses(f, rr.TypeA)
	aaaa, known6 := addresses(f, rr.TypeAAAA)
	want4, is4 := expected(f, rr.TypeA)
	want6, is6 := expected(f, rr.TypeAAAA)
	switch {
	// Without expected addresses, an earlier scan shows what changed.
	case !is4 && !is6:
		return leftBehind(f, a, aaaa)
	case !known4 || !known6:
		return unknown(name, "The addresses of %s are not known.", name)
	case is4 && sameAddrs(a, want4) && is6 && !sameAddrs(aaaa, want6):
		return []explain.Finding{fail("", explain.DNSHost, name+" AAAA",
			"The A records of %s are as expected, but AAAA is %s where %s is expected.", name, words.Some(addrTexts(aaaa)),
			words.Some(addrTexts(want6)))}
	case is4 && sameAddrs(a, want4) && !is6 && len(aaaa) > 0:
		return []explain.Finding{fail("", explain.DNSHost, name+" AAAA",
			"The A records of %s are as expected. No AAAA record is expected, but it is %s: users with IPv6 go there.", name,
			words.Some(addrTexts(aaaa)))}
	}
	return pass(name, "The AAAA records of %s are as expected.", name)
}

// expected returns the addresses that the user expects.
func expected(f *explain.Facts, t rr.Type) (out []netip.Addr, ok bool) {
	for _, s := range f.Expect {
		if s.Name != f.Name || s.Type != t {
			continue
		}
		out, ok = append(out, parseAddrs(s.Data)...), true
	}
	return out, ok
}

// sameAddrs reports whether a and b have the same elements, in any order.
func sameAddrs(a, b []netip.Addr) bool { return len(without(a, b))+len(without(b, a)) == 0 }

// leftBehind returns a finding if the AAAA records stayed the same when the A records changed since an earlier scan.
// It is a warning: both families may lead to the new host, if its IPv6 address moved with it.
func leftBehind(f *explain.Facts, a, aaaa []netip.Addr) []explain.Finding {
	past := explain.Facts{Name: f.Name}
	for _, p := range f.Past {
		if p.Name != f.Name || len(a) == 0 || len(aaaa) == 0 {
			continue
		}
		past.Expect = p.Sets
		before4, was4 := expected(&past, rr.TypeA)
		before6, was6 := expected(&past, rr.TypeAAAA)
		// All A records must be new: a pool that gained one address is no move to another host.
		if was4 && was6 && len(without(a, before4)) == len(a) && sameAddrs(aaaa, before6) {
			name := text(f.Name)
			return []explain.Finding{fail(explain.Warning, explain.DNSHost, name+" AAAA",
				"The A records of %s changed from %s to %s, but AAAA is still %s, as on %s.", name, words.Some(addrTexts(before4)),
				words.Some(addrTexts(a)), words.Some(addrTexts(aaaa)), words.Day(p.At))}
		}
	}
	return nil // there is nothing to compare with
}

// httpsAgrees is check NAM16: The HTTPS record agrees with the addresses. Browsers connect to the address hints of the
// record before they have the addresses (RFC 9460 §7.3), so outdated hints lead to the old server.
func httpsAgrees(f *explain.Facts) []explain.Finding {
	https, err := rr.ParseType("HTTPS")
	if err != nil {
		return nil
	}
	var all []explain.Finding
	said := map[string]bool{}
	for _, a := range f.Answers {
		for _, s := range a.Sets {
			if s.Type != https || a.Question.Type != https {
				continue
			}
			for _, d := range s.Data {
				// Every server returns the record, and one finding is enough.
				if key := s.Name.String() + d; !said[key] {
					said[key] = true
					for _, x := range httpsRecord(f, s, d) {
						all = append(all, seen(x, a.Evidence))
					}
				}
			}
		}
	}
	return worst(all)
}

// httpsRecord checks one HTTPS record in presentation form: priority, target and parameters (RFC 9460 §2.1).
func httpsRecord(f *explain.Facts, s explain.Set, data string) []explain.Finding {
	name, fields := text(s.Name), strings.Fields(data)
	subject := name + " HTTPS"
	if len(fields) < 2 {
		return unknown(subject, "The HTTPS record of %s could not be read.", name)
	}
	target := fields[1]
	if fields[0] == "0" {
		switch {
		// RFC 9460 §2.5.1: priority 0 with the target "." means that the service does not exist.
		case target == ".":
			return []explain.Finding{fail("", explain.DNSHost, subject,
				"The HTTPS record of %s says that the service does not exist, although the name has addresses.", name)}
		// RFC 9460 §2.4.2: clients ignore the parameters of an alias.
		case len(fields) > 2:
			return []explain.Finding{fail("", explain.DNSHost, subject,
				"The HTTPS record of %s is an alias (priority 0) and has parameters, which are ignored.", name)}
		}
		return pass(subject, "The HTTPS record of %s is an alias for %s.", name, strings.TrimSuffix(target, "."))
	}
	for _, p := range fields[2:] {
		key, value, _ := strings.Cut(p, "=")
		t := map[string]rr.Type{"ipv4hint": rr.TypeA, "ipv6hint": rr.TypeAAAA}[key]
		// Hints are for the target. If that is another name, its addresses are not known here.
		if t == 0 || target != "." && target != s.Name.String() {
			continue
		}
		have, known := addresses(f, t)
		if !known {
			return unknown(subject, "The %s records of %s, to compare with its HTTPS record, are not known.", t, name)
		}
		hints := parseAddrs(strings.Split(strings.Trim(value, `"`), ","))
		if wrong := without(hints, have); len(wrong) > 0 {
			x := fail("", explain.DNSHost, subject, "The HTTPS record of %s has the hint %s, but its %s records are %s.", name,
				words.Some(addrTexts(wrong)), t, words.Some(addrTexts(have)))
			x.Visible = after(f, replaced(f, s.Name, s.Type, safeat.Data, s.TTL))
			return []explain.Finding{x}
		}
	}
	return pass(subject, "The HTTPS record of %s agrees with its addresses.", name)
}
