package check_test

import (
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// alpha gives the first resolver these samples.
func alpha(samples ...explain.Sample) func(*explain.Facts) {
	return func(f *explain.Facts) { f.Caches[0].Samples = samples }
}

func mine(samples ...explain.Sample) func(*explain.Facts) {
	return func(f *explain.Facts) { f.Caches[3].Samples = samples }
}

func noCaches(f *explain.Facts) {
	for i := range f.Caches {
		f.Caches[i].Samples = []explain.Sample{sample(safeat.Silent, 0)}
	}
}

func says(s explain.Sample, codes ...uint16) explain.Sample {
	for _, c := range codes {
		s.Errors = append(s.Errors, iterate.EDE{Code: c})
	}
	return s
}

func unchecked(s explain.Sample) explain.Sample {
	s.NoCheck = true
	return s
}

func cacheStories() []story {
	foreign := sample(safeat.Negative, 100)
	foreign.SOA = nil
	return []story{
		{"TTL02", "all are current", nil, "pass", ""},
		{"TTL02", "one is old", alpha(sample(safeat.Old, 1800)), "fail error",
			"1 of 4 resolvers holds the old answer for www.example.org, until 12:30 UTC (in 30 min) at the latest: Alpha " +
				"(192.0.2.201)."},
		{"TTL02", "two are, until tomorrow",
			then(alpha(sample(safeat.Old, 1800)), func(f *explain.Facts) { f.Caches[1].Samples[0] = sample(safeat.Old, 50000) }),
			"fail error", "2 of 4 resolvers hold the old answer for www.example.org, until 2026-11-16 01:54 UTC (in 13 h 53 " +
				"min)"},
		{"TTL02", "a page to empty it",
			then(alpha(sample(safeat.Old, 1800)), func(f *explain.Facts) { f.Caches[0].Flush = "https://alpha.example/flush" }),
			"fail error", "Caches can be emptied at https://alpha.example/flush."},
		{"TTL02", "one whose answers may be altered",
			then(alpha(sample(safeat.Old, 1800)), func(f *explain.Facts) { f.Caches[0].NoVote = true }), "pass", ""},
		{"TTL02", "one that filters", alpha(sample(safeat.Filtered, 0)), "pass", ""},
		{"TTL02", "nobody answered", noCaches, "unknown", ""},

		{"TTL03", "all have it", nil, "pass", ""},
		{"TTL03", "one denies it", alpha(sample(safeat.Negative, 3600)), "fail error",
			"1 of 4 resolvers still remembers that www.example.org does not exist, until 13:00 UTC (in 1 h) at the latest: " +
				"Alpha (192.0.2.201)."},
		{"TTL03", "one that filters, of its own", then(alpha(foreign), func(f *explain.Facts) { f.Caches[0].Filters = true }),
			"pass", ""},
		{"TTL03", "one that filters, but this is ours",
			then(alpha(sample(safeat.Negative, 60)), func(f *explain.Facts) { f.Caches[0].Filters = true }), "fail error", ""},
		{"TTL03", "the authority does not have it", absent, "", ""},
		{"TTL03", "nobody answered", noCaches, "unknown", ""},

		{"TTL08", "none", nil, "pass", ""},
		{"TTL08", "one says so", alpha(sample(safeat.Stale, 30)), "fail warning",
			"Alpha (192.0.2.201) serves an expired answer for www.example.org"},
		{"TTL08", "nobody answered", noCaches, "unknown", ""},

		{"TTL09", "none", nil, "pass", ""},
		{"TTL09", "one does", alpha(sample(safeat.Current, 3000)), "fail notice",
			"Alpha (192.0.2.201) keeps www.example.org A for 50 min, longer than its TTL of 5 min at the authority."},
		{"TTL09", "the TTL was lowered", then(alpha(sample(safeat.Current, 3000)), func(f *explain.Facts) {
			f.Past = []explain.Past{{Name: f.Name, At: now.Add(-1), Sets: []explain.Set{set("www.example.org", 1, 3600, web)}}}
		}), "pass", ""},
		{"TTL09", "nobody answered", noCaches, "unknown", ""},

		{"TTL10", "one voice each", nil, "pass", ""},
		{"TTL10", "two", alpha(sample(safeat.Current, 100), sample(safeat.Old, 600)), "fail info",
			"the answer may change with each query until 12:10 UTC"},
		{"TTL10", "asked once", func(f *explain.Facts) {
			for i := range f.Caches {
				f.Caches[i].Samples = f.Caches[i].Samples[:1]
			}
		}, "", ""},

		{"TTL11", "the same", nil, "pass", ""},
		{"TTL11", "old", mine(sample(safeat.Old, 600)), "fail error",
			"holds an old answer for www.example.org, until 12:10 UTC (in 10 min). The cause is your network, not the DNS."},
		{"TTL11", "negative", mine(sample(safeat.Negative, 600)), "fail error",
			"remembers that www.example.org does not exist"},
		{"TTL11", "silent", mine(sample(safeat.Silent, 0)), "unknown", ""},
		{"TTL11", "not asked", func(f *explain.Facts) { f.Caches = f.Caches[:3] }, "", ""},
	}
}

// TestFiltered checks that a filtered answer is reported as filtered, and as nothing else.
func TestFiltered(t *testing.T) {
	f := healthy()
	f.Kind = explain.Compare
	alpha(says(sample(safeat.Filtered, 0), 15))(f)
	var got []string
	for _, x := range check.Run(f) {
		if x.Status == explain.Fail {
			got = append(got, x.ID)
		}
	}
	if len(got) != 1 || got[0] != "VAN02" {
		t.Errorf("a filtered name fails %v, want VAN02 only", got)
	}
	if safe := explain.Safe(f); safe.Verdict != safeat.Safe {
		t.Errorf("%s", safe.Summary)
	}
}

func BenchmarkRun(b *testing.B) {
	f := healthy()
	f.Kind = explain.Compare
	rotate(f)
	for range 30 {
		c := cache("Delta", "192.0.2.210")
		for range 6 {
			c.Samples = append(c.Samples, sample(safeat.Old, 100))
		}
		f.Caches = append(f.Caches, c)
	}
	for b.Loop() {
		check.Run(f)
	}
}
