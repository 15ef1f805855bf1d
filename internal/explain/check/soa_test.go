package check_test

import (
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

func eachSOA(do func(*explain.SOA)) func(*explain.Facts) {
	return func(f *explain.Facts) { both(f, func(s *explain.Server) { do(s.SOA) }) }
}

func noSOA(f *explain.Facts) {
	both(f, func(s *explain.Server) { s.SOA = nil })
	f.Denials = nil
}

// negative sets the negative TTL of the zone.
func negative(ttl, minimum uint32) func(*explain.Facts) {
	return func(f *explain.Facts) { f.Denials[0].TTL, f.Denials[0].Minimum = ttl, minimum }
}

func mname(p *explain.Primary) func(*explain.Facts) {
	return func(f *explain.Facts) {
		eachSOA(func(s *explain.SOA) { s.MName = name("hidden.example.org") })(f)
		if f.Primary = p; p != nil {
			p.Name = name("hidden.example.org")
		}
	}
}

func serials(a, b uint32) func(*explain.Facts) {
	return func(f *explain.Facts) { first(f).SOA.Serial, second(f).SOA.Serial = a, b }
}

func soaStories() []story {
	return []story{
		{"SOA01", "an hour", nil, "pass", "for up to 1 h"},
		{"SOA01", "a day", negative(86400, 86400), "fail warning",
			"Resolvers remember for up to 1 day that a name in example.org does not exist"},
		{"SOA01", "two days", negative(172800, 172800), "fail error", "2 days"},
		{"SOA01", "the smaller one counts", negative(300, 86400), "pass", "for up to 5 min"},
		{"SOA01", "the denial has only the smaller one",
			then(negative(300, 300), eachSOA(func(s *explain.SOA) { s.Minimum = 300 })), "pass",
			"the smaller of the SOA's TTL, 3600, and its minimum, 300."},
		{"SOA01", "from the SOA record", func(f *explain.Facts) { f.Denials = nil }, "pass", ""},
		{"SOA01", "not known", noSOA, "unknown", ""},

		{"SOA02", "the same", nil, "pass", ""},
		{"SOA02", "the TTL counts", eachSOA(func(s *explain.SOA) { s.TTL = 300 }), "fail info",
			"The negative TTL of example.org is the TTL of its SOA record, 300"},
		{"SOA02", "the minimum counts", eachSOA(func(s *explain.SOA) { s.Minimum = 300 }), "pass",
			"The negative TTL of example.org is the minimum of its SOA record, 300"},
		{"SOA02", "the zone is not ours", undelegated, "", ""},
		{"SOA02", "not known", noSOA, "unknown", ""},

		{"SOA03", "the same", nil, "pass", "version 42"},
		{"SOA03", "one is behind", serials(42, 41), "fail warning",
			"ns2.example.net (198.51.100.2) has version 41 of example.org, but the newest is 42. | If the zone was changed " +
				"just now, scan again at 14:00 UTC: "},
		{"SOA03", "one is still behind", func(f *explain.Facts) {
			serials(42, 41)(f)
			f.Settled = 3 * time.Second
		}, "fail warning", "the newest is 42; this was still the case 3 s later."},
		{"SOA03", "one was behind", func(f *explain.Facts) {
			second(f).Was, f.Settled = 41, 3*time.Second
		}, "pass", "have version 42; ns2.example.net (198.51.100.2) updated to it during the scan."},
		{"SOA03", "two primaries", func(f *explain.Facts) {
			serials(42, 7)(f)
			second(f).SOA.MName = name("ns.example.net")
		}, "unknown", "The servers of example.org have versions 42 and 7, from 2 primaries with independent serials"},
		{"SOA03", "two primaries, and one behind", func(f *explain.Facts) {
			serials(42, 7)(f)
			second(f).SOA.MName = name("ns.example.net")
			third := *first(f)
			third.Addr, third.SOA = addr("203.0.113.53"), soa(41)
			f.Servers = append(f.Servers, third)
		}, "fail warning", "(203.0.113.53) has version 41 of example.org, but the newest is 42"},
		{"SOA03", "around the end of numbers", serials(4294967295, 3), "fail warning",
			"ns1.example.org (192.0.2.1) has version 4294967295"},
		{"SOA03", "the newest is a moment of an hour ago", serials(uint32(now.Unix()-3600), 5), "fail warning",
			"at least 1 h old"},
		{"SOA03", "the newest is a moment of three hours ago", serials(uint32(now.Unix()-3*3600), 5), "fail error",
			"at least 3 h old"},
		{"SOA03", "the newest is a date of last week", serials(2026110801, 2026110701), "fail error",
			"has version 2026110701 of example.org, not updated since 2026-11-07, but the newest is 2026110801"},
		{"SOA03", "the newest is a date of today", serials(2026111501, 2026111401), "fail warning", ""},
		{"SOA03", "an earlier scan saw the newest", func(f *explain.Facts) {
			serials(42, 41)(f)
			f.Past = []explain.Past{{At: now.Add(-days), Serial: 42}}
		}, "fail error", "at least 1 day old"},
		{"SOA03", "of one server only", func(f *explain.Facts) { second(f).SOA = nil }, "unknown", ""},
		{"SOA03", "not known", noSOA, "unknown", ""},

		{"SOA04", "forward", func(f *explain.Facts) {
			f.Past = []explain.Past{{At: now.Add(-days), Serial: 40}}
		}, "pass", ""},
		{"SOA04", "back", func(f *explain.Facts) {
			f.Past = []explain.Past{{At: now.Add(-days), Serial: 2026010101}}
		}, "fail error", "Set the serial to a value above 2026010101."},
		{"SOA04", "around the end of numbers", func(f *explain.Facts) {
			f.Past = []explain.Past{{At: now.Add(-days), Serial: 4294967290}}
		}, "pass", ""},
		{"SOA04", "the first scan", nil, "", ""},

		{"SOA05", "usual", nil, "pass", "every 2 h"},
		{"SOA05", "retry above refresh", eachSOA(func(s *explain.SOA) { s.Retry = 7300 }), "fail warning",
			"retry (2 h 1 min) is not below refresh (2 h)"},
		{"SOA05", "expire below both", eachSOA(func(s *explain.SOA) { s.Expire = 3600 }), "fail warning",
			"expire (1 h) is below the sum of refresh and retry"},
		{"SOA05", "expire of two days", eachSOA(func(s *explain.SOA) { s.Expire = 172800 }), "fail warning",
			"expire is only 2 days"},
		{"SOA05", "not known", noSOA, "unknown", ""},

		{"SOA06", "a mailbox", nil, "pass", "hostmaster@example.org"},
		{"SOA06", "an @", eachSOA(func(s *explain.SOA) { s.RName = name(`host\@master.example.org`) }), "fail notice",
			"Write host.master.example.org."},
		{"SOA06", "none", eachSOA(func(s *explain.SOA) { s.RName = name("hostmaster") }), "fail notice", "is not valid"},
		{"SOA06", "not known", noSOA, "unknown", ""},

		{"SOA07", "a nameserver", nil, "pass", ""},
		{"SOA07", "a hidden one that answers", mname(&explain.Primary{Class: iterate.Answer}), "pass", ""},
		{"SOA07", "missing", mname(&explain.Primary{Missing: true, Class: iterate.Unknown}), "fail notice",
			"does not exist or has no address"},
		{"SOA07", "an alias", mname(&explain.Primary{Alias: true, Class: iterate.Answer}), "fail notice", "is an alias"},
		{"SOA07", "silent", mname(&explain.Primary{Class: iterate.Timeout}), "fail notice", "does not reply"},
		{"SOA07", "a nameserver that is missing", func(f *explain.Facts) {
			eachSOA(func(s *explain.SOA) { s.MName = name("ns2.example.net") })(f)
			host(iterate.Host{Name: name("ns2.example.net"), Problem: "no such name"})(f)
			f.Servers = f.Servers[:2]
		}, "fail notice", "does not exist"},
		{"SOA07", "lame", mname(&explain.Primary{Class: iterate.LameRefused}), "fail notice", "REFUSED"},
		{"SOA07", "not looked up", mname(nil), "unknown", ""},

		{"SOA08", "one", nil, "pass", ""},
		{"SOA08", "two", func(f *explain.Facts) { second(f).SOA.Count = 2 }, "fail error", "returns 2 SOA records"},
		{"SOA08", "of another name", func(f *explain.Facts) {
			second(f).SOA.Owner = name("example.net")
		}, "fail error", "returns the SOA record of example.net"},
		{"SOA08", "none", func(f *explain.Facts) {
			second(f).SOA, second(f).Class = nil, iterate.NoData
		}, "fail error", "answers for example.org, but says that it has no SOA record"},
		{"SOA08", "not known", noSOA, "unknown", ""},

		{"SOA09", "with it", nil, "pass", ""},
		{"SOA09", "without", func(f *explain.Facts) {
			second(f).NegativeSOA = no()
		}, "fail error", "without the required SOA record; validating resolvers may reject the denial"},
		{"SOA09", "without, not signed", then(plain, func(f *explain.Facts) { second(f).NegativeSOA = no() }), "fail warning",
			"denies names of example.org without the required SOA record."},
		{"SOA09", "the zone's denial has none", func(f *explain.Facts) {
			f.Denials[0].Class = iterate.NoSOA
		}, "fail error", ""},
		{"SOA09", "no reply", func(f *explain.Facts) { second(f).NegativeSOA.Fact = explain.Unknown }, "unknown", ""},

		{"SOA10", "short enough", func(f *explain.Facts) { f.Change = true }, "pass", "at most 1 h"},
		{"SOA10", "two days, before a change", func(f *explain.Facts) {
			f.Change, zoneOf(f).ChildNS[0].TTL = true, 172800
		}, "fail notice", "for 2 days after a change"},
		{"SOA10", "two days, and no change", func(f *explain.Facts) { zoneOf(f).ChildNS[0].TTL = 172800 }, "", ""},
		{"SOA10", "not known", func(f *explain.Facts) { f.Change, zoneOf(f).ChildNS = true, nil }, "unknown", ""},
	}
}
