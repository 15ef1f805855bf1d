package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// soaOf returns the SOA record of the zone with the newest serial.
func soaOf(f *explain.Facts) *explain.SOA {
	var newest *explain.SOA
	for _, s := range listed(f, f.Zone) {
		if s.SOA != nil && (newest == nil || newer(s.SOA.Serial, newest.Serial)) {
			newest = s.SOA
		}
	}
	return newest
}

// newer reports whether serial a is newer than b (RFC 1982 §3.2).
func newer(a, b uint32) bool { return int32(a-b) > 0 }

// ofSOA runs judge for the SOA record of the zone, if the zone belongs to the domain.
func ofSOA(f *explain.Facts, judge func(soa *explain.SOA, zone string) []explain.Finding) []explain.Finding {
	if !own(f, f.Zone) {
		return nil
	}
	zone := text(f.Zone)
	if soa := soaOf(f); soa != nil {
		return judge(soa, zone)
	}
	return unknown(zone, "The SOA record of %s could not be read.", zone)
}

// negativeTTL is check SOA01: Resolvers remember "does not exist" for at most an hour.
func negativeTTL(f *explain.Facts) []explain.Finding {
	if !own(f, f.Zone) {
		return nil
	}
	zone := text(f.Zone)
	soaTTL, minimum, evidence, ok := negativeOf(f)
	if !ok {
		return unknown(zone, "It is not known how long resolvers remember that a name in %s does not exist.", zone)
	}
	neg := min(soaTTL, minimum)
	words := fmt.Sprintf("Resolvers remember for up to %s that a name in %s does not exist: the smaller of the SOA's "+
		"TTL, %d, and its minimum, %d.", words.Seconds(neg), zone, soaTTL, minimum)
	// An hour is a usual time between the order of a record and its first use.
	if neg <= 3600 {
		return pass(zone, "%s", words)
	}
	x := fail(explain.Warning, explain.DNSHost, zone, "%s", words)
	// RFC 2308 §5: values above one day have been found to be problematic.
	if neg > 86400 {
		x.Severity = explain.Error
	}
	x.Visible = after(f, created(f, f.Zone, f.Zone))
	return []explain.Finding{seen(x, evidence)}
}

// negativeOf returns the TTL and the MINIMUM of the SOA record in a denial, or else of the SOA record itself. The
// smaller one is the negative TTL.
func negativeOf(f *explain.Facts) (soaTTL, minimum uint32, evidence []int, ok bool) {
	soa := soaOf(f)
	for _, d := range f.Denials {
		switch {
		case d.Zone != f.Zone || d.Class != iterate.NXDomain && d.Class != iterate.NoData:
		case soa != nil && min(soa.TTL, soa.Minimum) == min(d.TTL, d.Minimum):
			return soa.TTL, soa.Minimum, d.Evidence, true // servers may set both to the smaller value in a denial (RFC 2308 §3)
		default:
			return d.TTL, d.Minimum, d.Evidence, true
		}
	}
	if soa != nil {
		return soa.TTL, soa.Minimum, nil, true
	}
	return 0, 0, nil, false
}

// minimumCounts is check SOA02: The MINIMUM of the SOA record is the negative TTL. RFC 2308 §5 uses the smaller of the
// two. Nothing is broken, but a person who changes the minimum sees no effect.
func minimumCounts(f *explain.Facts) []explain.Finding {
	return ofSOA(f, func(soa *explain.SOA, zone string) []explain.Finding {
		if soa.TTL < soa.Minimum {
			return []explain.Finding{fail("", explain.Nobody, zone,
				"The negative TTL of %s is the TTL of its SOA record, %d; the minimum, %d, is larger and does not count.", zone,
				soa.TTL, soa.Minimum)}
		}
		return pass(zone, "The negative TTL of %s is the minimum of its SOA record, %d; the TTL, %d, is not smaller.", zone,
			soa.Minimum, soa.TTL)
	})
}

// sameSerial is check SOA03: All nameservers have the same version of the zone. One server is not enough for a pass:
// it agrees with itself.
func sameSerial(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone, n := text(z.Name), 0
		newest := newestOf(f, z.Name)
		var caught, serials []string
		for _, s := range listed(f, z.Name) {
			if s.SOA == nil {
				continue
			}
			n++
			switch latest := newest[s.SOA.MName]; {
			case s.SOA.Serial != latest.Serial:
				out = append(out, behind(f, z, s, latest))
			case s.Was != 0:
				caught = append(caught, server(s))
			}
			if version := fmt.Sprintf("%d", s.SOA.Serial); !slices.Contains(serials, version) {
				serials = append(serials, version)
			}
		}
		switch {
		case len(out) > 0:
			return out
		case n == 0:
			return unknown(zone, "The serial of %s could not be read.", zone)
		case n < 2:
			return unknown(zone, "The serial of %s is known from only one server.", zone)
		// Each primary has one serial, and they differ.
		case len(serials) > 1:
			return unknown(zone, "The servers of %s have versions %s, from %d primaries with independent serials: whether "+
				"a server is behind is not known.", zone, words.Some(serials), len(newest))
		case len(caught) > 0:
			return pass(zone, "%s of %s that replied have version %s; %s updated to it during the scan.",
				words.All(n, "servers"), zone, serials[0], words.Some(caught))
		}
		return pass(zone, "%s of %s that replied have version %s.", words.All(n, "servers"), zone, serials[0])
	})
}

// newestOf returns the newest SOA records of a zone, by the primary that they name. If two DNS hosts both generate the
// zone, each counts its own serials, and they cannot be compared.
func newestOf(f *explain.Facts, zone dnsname.Name) map[dnsname.Name]*explain.SOA {
	out := map[dnsname.Name]*explain.SOA{}
	for _, s := range listed(f, zone) {
		if s.SOA != nil && (out[s.SOA.MName] == nil || newer(s.SOA.Serial, out[s.SOA.MName].Serial)) {
			out[s.SOA.MName] = s.SOA
		}
	}
	return out
}

// behind returns the finding for a server with an older version of the zone. Within the refresh time after a change
// that is only a warning: secondaries without NOTIFY work like that.
func behind(f *explain.Facts, z iterate.Zone, s explain.Server, newest *explain.SOA) explain.Finding {
	refresh := time.Duration(newest.Refresh) * time.Second
	still, since, old := "", "", ""
	if made, _, ok := madeAt(f, s.SOA.Serial); ok {
		old = ", not updated since " + words.Day(made) + ","
	}
	if f.Settled > 0 {
		still = "; this was still the case " + words.Length(f.Settled) + " later"
	}
	age, known := ageOf(f, newest.Serial)
	if known {
		since = ", which is at least " + words.Length(age) + " old"
	}
	x := fail(explain.Error, actorFor(f, z.Name, explain.DNSHost), server(s),
		"%s has version %d of %s%s but the newest is %d%s%s.", server(s), s.SOA.Serial, text(z.Name), cmp.Or(old, ","),
		newest.Serial, since, still)
	// Without a known age, assume a recent change: an error for a healthy zone would be worse than a late one.
	if !known || age <= refresh {
		x.Severity = explain.Warning
		x.Fix = fmt.Sprintf("If the zone was changed just now, scan again at %s: the server asks for changes every %s. "+
			"If it is still behind then, find out why it does not fetch the zone: transfers refused, a wrong primary, or a "+
			"missing key.", words.By(f.At.Add(refresh), f.At), words.Seconds(newest.Refresh))
	}
	return seen(x, s.Evidence)
}

// ageOf returns the minimum age of a serial: from earlier scans, or from the serial itself if it is a Unix time or a
// date, as many are.
func ageOf(f *explain.Facts, serial uint32) (age time.Duration, ok bool) {
	for _, p := range f.Past {
		if p.Serial == serial {
			age, ok = f.At.Sub(p.At), true
		}
	}
	if ok {
		return age, age > 0
	}
	_, latest, ok := madeAt(f, serial)
	return f.At.Sub(latest), ok
}

// madeAt returns when a version of a zone was created, and the latest possible time, if its serial is a Unix time or a
// date.
func madeAt(f *explain.Facts, serial uint32) (at, latest time.Time, ok bool) {
	at = time.Unix(int64(serial), 0)
	latest = at
	if date, err := time.Parse("20060102", fmt.Sprint(serial/100)); err == nil {
		at, latest = date, date.Add(36*time.Hour) // the end of that day in the last time zone
	}
	age := f.At.Sub(latest)
	return at, latest, age > 0 && age < 10*365*oneDay
}

// serialForward is check SOA04: The serial of the zone has not gone back. A secondary fetches a zone only if the
// serial is newer in the arithmetic of RFC 1982. A usual cause is a move to a DNS host that counts in another form,
// such as from dates to numbers that begin at 1.
func serialForward(f *explain.Facts) []explain.Finding {
	// Past has the newest scan first. A scan without a serial failed, and shows nothing.
	i := slices.IndexFunc(f.Past, func(p explain.Past) bool { return p.Serial != 0 })
	if i < 0 {
		return nil // the first scan has nothing to compare with
	}
	return ofSOA(f, func(soa *explain.SOA, zone string) []explain.Finding {
		p := f.Past[i]
		if newer(p.Serial, soa.Serial) {
			x := fail("", explain.DNSHost, zone,
				"The serial of %s is %d, but was %d on %s: secondaries will not fetch the zone.", zone, soa.Serial, p.Serial,
				words.Day(p.At))
			x.Fix = fmt.Sprintf("Set the serial to a value above %d.", p.Serial)
			return []explain.Finding{x}
		}
		return pass(zone, "The serial of %s is %d, and was %d on %s.", zone, soa.Serial, p.Serial, words.Day(p.At))
	})
}

// timers is check SOA05: The timers of the SOA record fit together. A secondary that cannot reach the primary stops
// answering after expire. A week is longer than most outages of a primary, a weekend included.
func timers(f *explain.Facts) []explain.Finding {
	return ofSOA(f, func(soa *explain.SOA, zone string) []explain.Finding {
		var wrong []string
		// A retry that is not faster than the next refresh never happens.
		if soa.Retry >= soa.Refresh {
			wrong = append(wrong, fmt.Sprintf("retry (%s) is not below refresh (%s)", words.Seconds(soa.Retry),
				words.Seconds(soa.Refresh)))
		}
		if uint64(soa.Expire) < uint64(soa.Refresh)+uint64(soa.Retry) {
			wrong = append(wrong, fmt.Sprintf("expire (%s) is below the sum of refresh and retry", words.Seconds(soa.Expire)))
		} else if soa.Expire < 7*86400 { // RFC 1912 §2.2 recommends two to four weeks
			wrong = append(wrong, fmt.Sprintf("expire is only %s", words.Seconds(soa.Expire)))
		}
		if len(wrong) > 0 {
			return []explain.Finding{fail("", explain.DNSHost, zone, "In the SOA of %s, %s.", zone, words.Some(wrong))}
		}
		return pass(zone, "Secondaries of %s check for changes every %s, retry after %s, and give up after %s.", zone,
			words.Seconds(soa.Refresh), words.Seconds(soa.Retry), words.Seconds(soa.Expire))
	})
}

// rname is check SOA06: The SOA record names a valid mailbox.
func rname(f *explain.Facts) []explain.Finding {
	return ofSOA(f, func(soa *explain.SOA, zone string) []explain.Finding {
		mailbox := text(soa.RName)
		labels := labels(soa.RName)
		switch {
		case soa.RName.IsZero():
			return unknown(zone, "The mailbox in the SOA of %s could not be read.", zone)
		// RFC 1035 §3.3.13 writes the mailbox as a name: the first label is the part before the @.
		case slices.ContainsFunc(labels, func(l string) bool { return strings.Contains(l, "@") }):
			x := fail("", explain.DNSHost, zone, "The mailbox in the SOA of %s is %s: an @ must be written as a dot there.",
				zone, mailbox)
			x.Fix = fmt.Sprintf("Write %s", strings.ReplaceAll(strings.ReplaceAll(soa.RName.String(), `\@`, "."), "@", "."))
			return []explain.Finding{x}
		case len(labels) < 2 || strings.ContainsFunc(strings.Join(labels, ""), func(r rune) bool {
			return r <= ' ' || r == 0x7f
		}):
			return []explain.Finding{fail("", explain.DNSHost, zone, "The mailbox in the SOA of %s, %s, is not valid.", zone,
				mailbox)}
		}
		return pass(zone, "The mailbox of %s is %s@%s.", zone, labels[0], strings.Join(labels[1:], "."))
	})
}

// mname is check SOA07: The primary server that the SOA record names works.
func mname(f *explain.Facts) []explain.Finding {
	return ofSOA(f, func(soa *explain.SOA, zone string) []explain.Finding {
		primary := text(soa.MName)
		if slices.ContainsFunc(listed(f, f.Zone), func(s explain.Server) bool {
			return s.Host == soa.MName && s.Class.Usable()
		}) {
			return pass(primary, "The SOA of %s names %s, which is one of its nameservers and answers.", zone, primary)
		}
		p := primaryOf(f, soa.MName)
		wrong := ""
		switch {
		case soa.MName.IsZero():
			return unknown(zone, "The primary server in the SOA of %s could not be read.", zone)
		case soa.MName.IsRoot():
			return []explain.Finding{fail("", explain.DNSHost, zone, "The SOA of %s names no primary server.", zone)}
		case p == nil || p.Name != soa.MName:
			return unknown(primary, "%s, the primary server that the SOA of %s names, was not resolved.", primary, zone)
		case p.Alias:
			wrong = "is an alias (CNAME)"
		case p.Missing:
			wrong = "does not exist or has no address"
		case lame(p.Class):
			wrong = "does not know the zone: " + replies[p.Class]
		// A hidden primary is good practice, but dynamic updates (RFC 2136 §4.3) need a server at this name.
		case p.Class == iterate.Timeout || p.Class == iterate.Unreachable:
			wrong = "does not reply. It may be hidden on purpose"
		case !p.Class.Usable():
			return unknown(primary, "Whether %s, the primary server that the SOA of %s names, answers could not be determined.",
				primary, zone)
		default:
			return pass(primary, "%s, the primary server that the SOA of %s names, answers for the zone.", primary, zone)
		}
		x := fail("", explain.DNSHost, primary, "%s, the primary server that the SOA of %s names, %s.", primary, zone, wrong)
		return []explain.Finding{seen(x, p.Evidence)}
	})
}

// primaryOf returns the result for the primary server, from its own lookup or from that of the nameservers.
func primaryOf(f *explain.Facts, name dnsname.Name) *explain.Primary {
	z := f.ZoneAt(f.Zone)
	if f.Primary != nil || z == nil {
		return f.Primary
	}
	i := slices.IndexFunc(z.Hosts, func(h iterate.Host) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	problem := z.Hosts[i].Problem
	p := &explain.Primary{Name: name, Alias: problem == "is an alias",
		Missing: problem == "no such name" || problem == "no address", Class: iterate.Unknown}
	for _, s := range listed(f, f.Zone) {
		if s.Host == name {
			p.Class, p.Evidence = s.Class, s.Evidence
		}
	}
	return p
}

// apexTTL is check SOA10: The TTL of the NS records is at most a day before a change.
func apexTTL(f *explain.Facts) []explain.Finding {
	if !f.Change && len(f.PlanNS) == 0 || !own(f, f.Zone) {
		return nil
	}
	zone := text(f.Zone)
	most, what := uint32(0), ""
	if z := f.ZoneAt(f.Zone); z != nil {
		if ns, ttl := iterate.Join(z.ChildNS); len(ns) > 0 {
			most, what = ttl, "NS"
		}
	}
	for _, a := range f.Answers {
		for _, s := range a.Sets {
			// The SOA record does not count: its TTL limits only negative answers.
			if a.Zone == f.Zone && s.Name == f.Zone && s.TTL > most && s.Type != rr.TypeSOA {
				most, what = s.TTL, s.Type.String()
			}
		}
	}
	switch {
	case what == "":
		return unknown(zone, "The TTLs at the apex of %s are not known.", zone)
	case most > 86400:
		x := fail("", explain.DNSHost, zone, "Resolvers may keep the %s records of %s for %s after a change.", what, zone,
			words.Seconds(most))
		x.Fix = fmt.Sprintf("Lower the TTL of the %s records of %s to 3600 now, and make the change in %s.", what, zone,
			words.Seconds(most))
		return []explain.Finding{x}
	}
	return pass(zone, "Records at the apex of %s are kept for at most %s.", zone, words.Seconds(most))
}
