package check_test

import (
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
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
	)
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
