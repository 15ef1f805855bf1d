package check_test

import (
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// probe sets one test result of the second server.
func probe(fact explain.Fact, of func(*explain.Server) *explain.Probe) func(*explain.Facts) {
	return func(f *explain.Facts) { *of(second(f)) = explain.Probe{Fact: fact} }
}

// stranger gives the first resolver another answer, and makes it filter or possibly alter answers.
func stranger(filters, noVote bool) func(*explain.Facts) {
	return func(f *explain.Facts) {
		alpha(sample(safeat.Old, 200))(f)
		f.Caches[0].Filters, f.Caches[0].NoVote = filters, noVote
	}
}

func conductStories() (out []story) {
	for id, p := range map[string]struct {
		of   func(*explain.Server) *explain.Probe
		bad  explain.Fact
		sev  string
		says string
	}{
		"SRV01": {func(s *explain.Server) *explain.Probe {
			return &s.EDNSOption
		}, explain.No, "warning", "unknown EDNS option"},
		"SRV02": {func(s *explain.Server) *explain.Probe { return &s.Truncation }, explain.No, "warning", "UDP size"},
		"SRV03": {func(s *explain.Server) *explain.Probe { return &s.Case }, explain.No, "notice", "upper and lower case"},
		"SRV04": {func(s *explain.Server) *explain.Probe { return &s.Source }, explain.No, "error", "another address"},
		"SRV05": {func(s *explain.Server) *explain.Probe { return &s.Types }, explain.No, "error", "all record types"},
		"SRV06": {func(s *explain.Server) *explain.Probe { return &s.Limits }, explain.Yes, "info", "limits the rate"},
	} {
		out = append(out,
			story{id, "well", nil, "pass", "example.org"},
			story{id, "not well", probe(p.bad, p.of), "fail " + p.sev,
				"ns2.example.net (198.51.100.2), a server of example.org, "},
			story{id, "not well, in words", probe(p.bad, p.of), "fail " + p.sev, p.says},
			story{id, "no reply", probe(explain.Unknown, p.of), "unknown", "ns2.example.net (198.51.100.2)"},
			story{id, "not tried", unasked, "", ""},
		)
	}
	return append(out,
		story{"SRV01", "no EDNS", probe(explain.No, func(s *explain.Server) *explain.Probe { return &s.EDNS }),
			"fail warning", "does not support EDNS"},
		story{"SRV01", "version", probe(explain.No, func(s *explain.Server) *explain.Probe { return &s.EDNSVersion }),
			"fail warning", "higher EDNS version"},
		story{"SRV01", "flag", probe(explain.No, func(s *explain.Server) *explain.Probe { return &s.EDNSFlag }),
			"fail warning", "unknown EDNS flag"},
		story{"SRV07", "nothing else was queried", nil, "pass", "answer for every type"},
		story{"SRV07", "one refuses MX", then(replied(one, "example.org", rr.TypeMX, iterate.Answer),
			replied(two, "example.org", rr.TypeMX, iterate.LameRefused)), "fail error",
			"a server of example.org, replies REFUSED when it is asked for example.org MX; it answers other queries."},
		story{"SRV07", "one packet was lost", replied(two, "example.org", rr.TypeMX, iterate.Timeout), "pass", ""},
		story{"SRV07", "truncated, and TCP was not tried", replied(two, "example.org", rr.TypeMX, iterate.Truncated),
			"pass", ""},
		story{"SRV07", "truncated over TCP too", then(replied(two, "example.org", rr.TypeMX, iterate.Truncated),
			overTCP(replied(two, "example.org", rr.TypeMX, iterate.Truncated))), "fail error", "does not complete it over TCP"},
		story{"SRV07", "truncated, and no TCP", then(replied(two, "example.org", rr.TypeMX, iterate.Truncated),
			overTCP(replied(two, "example.org", rr.TypeMX, iterate.Unreachable))), "fail error", ""},
		story{"SRV07", "complete over TCP", then(replied(two, "example.org", rr.TypeMX, iterate.Truncated),
			overTCP(replied(two, "example.org", rr.TypeMX, iterate.Answer))), "pass", ""},
		story{"SRV07", "one is silent for MX", replied(two, "example.org", rr.TypeMX, iterate.Timeout, iterate.Timeout),
			"fail error", "does not reply when it is asked for example.org MX"},
		story{"SRV07", "it loses packets of other types too",
			then(replied(two, "example.org", rr.TypeMX, iterate.Timeout, iterate.Timeout),
				replied(two, "example.org", rr.TypeTXT, iterate.Timeout, iterate.NoData)), "pass", ""},
		story{"SRV07", "none answers for a queried type", then(replied(one, "www.example.org", rr.TypeA, iterate.NotImp),
			replied(two, "www.example.org", rr.TypeA, iterate.NotImp)), "fail critical", "replies NOTIMP"},
		story{"SRV07", "new types are another check", replied(two, "example.org", https, iterate.LameRefused), "pass", ""},
		story{"SRV07", "transfers are another check", replied(two, "example.org", rr.Type(252), iterate.LameRefused),
			"pass", ""},
		story{"SRV07", "no server replies", all(iterate.LameRefused), "", ""},
	)
}

// replied adds replies of a server of example.org.
func replied(server, owner string, t rr.Type, classes ...iterate.Class) func(*explain.Facts) {
	return func(f *explain.Facts) {
		for _, c := range classes {
			f.Exchanges = append(f.Exchanges, iterate.Exchange{Zone: name("example.org"), Server: addr(server),
				Question: ask(owner, t), Class: c, Try: 1})
		}
	}
}

// overTCP makes the last exchange that add adds one over TCP.
func overTCP(add func(*explain.Facts)) func(*explain.Facts) {
	return func(f *explain.Facts) {
		add(f)
		f.Exchanges[len(f.Exchanges)-1].Transport = resolve.TCP.String()
	}
}

func skew(d time.Duration) func(*explain.Facts) {
	return func(f *explain.Facts) { f.Vantage.Skew = d }
}

func vantageStories() []story {
	compare := func(f *explain.Facts) { f.Kind = explain.Compare }
	return []story{
		{"VAN01", "nobody", nil, "pass", ""},
		{"VAN01", "intercepted", func(f *explain.Facts) {
			f.Vantage.Intercepted = yes()
		}, "fail warning", "instead of the servers"},
		{"VAN01", "could not be determined", func(f *explain.Facts) {
			f.Vantage.Intercepted.Fact = explain.Unknown
		}, "unknown", ""},
		{"VAN02", "none", nil, "pass", ""},
		{"VAN02", "one says so", alpha(says(sample(safeat.Filtered, 0), 17)), "fail warning",
			"Alpha (192.0.2.201) filters www.example.org on purpose."},
		{"VAN02", "one was seen so", alpha(sample(safeat.Filtered, 0)), "fail warning", ""},
		{"VAN02", "one that filters has another answer", stranger(true, false), "fail warning",
			"this is either a filtered or an older answer. | Scan again when the TTL has passed"},
		{"VAN02", "one has another answer that may be altered on the path", stranger(false, true), "pass", ""},
		{"VAN02", "nobody answered", noCaches, "unknown", ""},
		{"VAN03", "right", nil, "pass", ""},
		{"VAN03", "ahead", skew(90 * time.Second), "fail info", "1 min 30 s ahead"},
		{"VAN03", "behind", skew(-2 * time.Hour), "fail info", "2 h behind"},
		{"VAN03", "not known", func(f *explain.Facts) { f.Vantage.SkewKnown = false }, "", ""},
		{"VAN04", "enough servers", nil, "pass", "2 of 2 servers"},
		{"VAN04", "too few servers", unasked, "unknown", "Only 0 of 2 servers"},
		{"VAN04", "the budget was used up", unfound, "unknown", "400 queries"},
		{"VAN04", "enough resolvers", compare, "pass", "4 of 4 resolvers"},
		{"VAN04", "two of four resolvers", then(compare, func(f *explain.Facts) {
			for i := range 2 {
				f.Caches[i].Samples = []explain.Sample{sample(safeat.Silent, 0)}
			}
		}), "unknown", "Only 2 of 4 resolvers"},
		{"VAN04", "three of seven resolvers", then(compare, func(f *explain.Facts) {
			f.Caches[3].Samples = nil
			for range 3 {
				f.Caches = append(f.Caches, explain.Cache{ID: "silent", Addr: addr("192.0.2.209")})
			}
		}), "unknown", "Only 3 of 7 resolvers"},
		{"VAN04", "not asked, on purpose", then(absent, compare, func(f *explain.Facts) {
			f.Caches = []explain.Cache{{ID: "a", NotAsked: "the authority does not have the name"}}
		}), "", ""},
		{"VAN04", "lame servers were judged", all(iterate.LameRefused), "pass", ""},
	}
}
