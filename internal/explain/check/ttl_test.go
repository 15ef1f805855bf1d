package check_test

import (
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

func changing(f *explain.Facts) { f.Change = true }

func lives(ttl uint32) func(*explain.Facts) {
	return func(f *explain.Facts) {
		for i := range f.Outcomes {
			f.Outcomes[i].Sets[0].TTL = ttl
		}
		for i := range f.Answers {
			f.Answers[i].Sets[0].TTL = ttl
		}
	}
}

func planned(ns ...string) func(*explain.Facts) {
	return func(f *explain.Facts) { f.PlanNS = names(ns...) }
}

func parentTTL(ttl uint32) func(*explain.Facts) {
	return func(f *explain.Facts) { zoneOf(f).ParentNS[0].TTL = ttl }
}

// wasAbsent adds an earlier scan that did not find the name.
func wasAbsent(f *explain.Facts) {
	f.Past = []explain.Past{{Name: f.Name, At: now.Add(-1800e9), Absent: []rr.Type{rr.TypeA}}}
}

func ttlStories() []story {
	return []story{
		{"TTL01", "short", changing, "pass", "after 5 min"},
		{"TTL01", "a day", then(changing, lives(86400)), "fail warning", "Resolvers keep www.example.org A for 1 day"},
		{"TTL01", "a plan with a date", then(changing, lives(86400)), "fail warning",
			"make the change at 2026-11-16 12:01 UTC"},
		{"TTL01", "a link of the chain",
			then(changing, alias("a.example.net"), func(f *explain.Facts) { f.Chain[0].TTL = 7200 }), "fail warning",
			"www.example.org CNAME"},
		{"TTL01", "no change", lives(86400), "", ""},
		{"TTL01", "not known", then(changing, unfound), "unknown", ""},

		{"TTL04", "NSEC, and not there yet", absent, "fail warning",
			"One record denies all names from mail.example.org to www.example.org."},
		{"TTL04", "NSEC, and new", wasAbsent, "fail warning", "for up to 1 h"},
		{"TTL04", "no ranges", then(absent, func(f *explain.Facts) { f.Denials[0].Ranges = safeat.RangesNone }), "pass", ""},
		{"TTL04", "not known", then(absent, func(f *explain.Facts) { f.Denials = nil }), "unknown", ""},
		{"TTL04", "there all the time", nil, "", ""},

		{"TTL05", "one", nil, "pass", ""},
		{"TTL05", "two in an answer", func(f *explain.Facts) {
			f.Answers[0].Sets[0].TTLs = []uint32{300, 600}
		}, "fail notice", "different TTLs in one answer from ns1.example.org (192.0.2.1): 300 and 600"},
		{"TTL05", "two servers", func(f *explain.Facts) {
			f.Answers[1].Sets[0].TTL = 600
		}, "fail notice", "www.example.org A has the TTL 300 at ns1.example.org (192.0.2.1) and 600 at ns2.example.net " +
			"(198.51.100.2)."},
		{"TTL05", "not known", unfound, "unknown", ""},

		{"TTL06", "five minutes", nil, "pass", ""},
		{"TTL06", "ten seconds", lives(10), "fail notice", "The TTL of www.example.org A is 10 s"},
		{"TTL06", "none", lives(0), "fail notice", "is 0 s"},
		{"TTL06", "not known", unfound, "unknown", ""},

		{"TTL07", "an hour each", planned("ns1.new.net"), "pass", ""},
		{"TTL07", "two days above", then(planned("ns1.new.net"), parentTTL(172800)), "fail warning",
			"org lets resolvers keep the nameservers of example.org for 2 days"},
		{"TTL07", "it was changed yesterday", then(parentTTL(172800), func(f *explain.Facts) {
			f.Past = []explain.Past{{Name: f.Name, At: now.Add(-days), NS: names("ns1.old.net")}}
		}), "fail warning", ""},
		{"TTL07", "a DS for longer", then(planned("ns1.new.net"), func(f *explain.Facts) { sec(f).DS[0].TTL = 86400 }),
			"fail warning", "keep the DS of example.org for 1 day"},
		{"TTL07", "not known", then(planned("ns1.new.net"), func(f *explain.Facts) { zoneOf(f).ParentNS = nil }), "unknown",
			""},
		{"TTL07", "no change", parentTTL(172800), "", ""},
	}
}
