package report_test

import (
	"bytes"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// late returns the facts of a changed name: one resolver has the old address, one a negative answer, one filters, and
// one has the new address.
func late() (*explain.Facts, []explain.Finding) {
	f, _ := story(explain.Compare)
	f.Chain = nil
	f.Outcomes[0].End, f.Outcomes[0].Sets[0].Name, f.Outcomes[0].Zone = f.Name, f.Name, f.Zone
	q := iterate.Question{Name: f.Name, Type: rr.TypeA}
	old := explain.Set{Name: f.Name, Type: typA, TTL: 600, Data: []string{"192.0.2.79"}}
	n := len(f.Exchanges)
	sample := func(i int, s explain.Sample) []explain.Sample {
		s.Question, s.Evidence = q, []int{n + i}
		return []explain.Sample{s}
	}
	f.Caches = []explain.Cache{
		{ID: "a", Operator: "Aland", Region: "europe", Addr: netip.MustParseAddr("198.51.100.1"),
			Samples: sample(0, explain.Sample{Recurse: true, Sets: f.Outcomes[0].Sets, Rcode: "NOERROR"})},
		{ID: "b", Operator: "Borland", Region: "global", Addr: netip.MustParseAddr("198.51.100.2"), Flush: "https://b.test/",
			Samples: sample(1, explain.Sample{Sets: []explain.Set{old}, Rcode: "NOERROR"})},
		{ID: "c", Operator: "Cuba", Addr: netip.MustParseAddr("198.51.100.3"),
			Samples: sample(2, explain.Sample{Recurse: true, Rcode: "NOERROR", SOA: &explain.SOA{Owner: f.Zone, TTL: 300}})},
		{ID: "d", Operator: "Delos", Addr: netip.MustParseAddr("198.51.100.4"),
			Samples: sample(3, explain.Sample{Recurse: true, NoCheck: true, Rcode: "NXDOMAIN",
				Errors: []iterate.EDE{{Code: 17}}})},
	}
	for i, c := range f.Caches {
		transport := []string{"udp", "udp", "tcp", "tls"}[i]
		f.Exchanges = append(f.Exchanges,
			iterate.Exchange{At: time.Second, RTT: 5 * time.Millisecond, Server: c.Addr, Transport: transport, EDNS: true,
				Class: iterate.Answer, Question: q})
	}
	return f, []explain.Finding{
		{ID: "TTL02", Severity: explain.Error, Status: explain.Fail, Subject: "www.example.org", Actor: explain.Nobody,
			Evidence: []int{n, n + 1, n + 2}, Words: "1 of 3 resolvers holds the old answer for www.example.org.", Fix: "Wait."},
		{ID: "VAN02", Severity: explain.Warning, Status: explain.Fail, Subject: "Delos", Actor: explain.Resolver,
			Evidence: []int{n + 3}, Words: "Delos (198.51.100.4) filters www.example.org on purpose."},
	}
}

func TestGoldenCompare(t *testing.T) {
	r := report.Make(late())
	for _, format := range []string{"text", "markdown"} {
		var out bytes.Buffer
		if err := r.Write(&out, format, report.TextOptions{All: true}); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", "compare."+format), out.String())
	}
}

// TestForced checks that a report says whether resolvers were queried for a name that does not exist.
func TestForced(t *testing.T) {
	for result, want := range map[iterate.Class]string{iterate.Answer: "did not query resolvers",
		iterate.NXDomain: "were queried for this name anyway"} {
		f, _ := late()
		f.Outcomes[0].Result = result
		if words := strings.Join(report.Make(f, nil).Negative.Words, " "); !strings.Contains(words, want) {
			t.Errorf("%s: %s", result, words)
		}
	}
	f, _ := late()
	f.Outcomes[0].Result, f.Caches = iterate.NXDomain, f.Caches[1:2] // without recursion
	if words := strings.Join(report.Make(f, nil).Negative.Words, " "); !strings.Contains(words,
		"did not query resolvers") {
		t.Errorf("a cache was queried without recursion: %s", words)
	}
}

// TestNobodyAsked checks that a name that does not exist has no time for a new answer, and that resolvers that were not
// queried are not shown as silent.
func TestNobodyAsked(t *testing.T) {
	f, _ := late()
	f.Outcomes, f.Chain, f.Answers = []explain.Outcome{{Type: rr.TypeA, Result: iterate.NXDomain, End: f.Name,
		Zone: f.Zone}}, nil, nil
	for i := range f.Caches {
		f.Caches[i].Samples, f.Caches[i].NotAsked = nil, "there is no such name"
	}
	r := report.Make(f, nil)
	for _, format := range []string{"text", "markdown"} {
		var out bytes.Buffer
		if err := r.Write(&out, format, report.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Contains(text, "Everyone sees") || strings.Contains(text, "silent") ||
			!strings.Contains(text, "not asked") {
			t.Errorf("%s says\n%s", format, text)
		}
	}
	f.Change = true // it was removed: then others may see it for some time
	if r := report.Make(f, nil); r.Safe == nil ||
		!strings.Contains(r.Safe.Summary, "no resolver was seen with an answer") {
		t.Errorf("after a change: %+v", r.Safe)
	}
}

// TestCompareWords checks that the summary does not contradict the rest of the report.
func TestCompareWords(t *testing.T) {
	f, findings := late()
	stale := findings[0]
	stale.ID, stale.Severity = "TTL08", explain.Warning
	held := func(errors ...iterate.EDE) *explain.Facts {
		g := *f
		g.Caches = append([]explain.Cache(nil), f.Caches[:2]...)
		g.Caches[1].Samples = []explain.Sample{g.Caches[1].Samples[0]}
		g.Caches[1].Samples[0].Errors = errors
		return &g
	}
	for _, test := range []struct {
		what     string
		facts    *explain.Facts
		findings []explain.Finding
		want     string
	}{
		{"two are late", f, findings, "but 2 of 3 resolvers still have an older answer. Everyone sees the new one by "},
		{"one is late", held(), findings[:1],
			"but 1 of 2 resolvers still has an older answer. Everyone sees the new one by "},
		{"one is late, and one cannot reach the servers", held(iterate.EDE{Code: 3}), findings[:1],
			"still has an older answer. It is not known when everyone sees the new one."},
		{"one cannot reach the servers", held(iterate.EDE{Code: 3}), []explain.Finding{stale},
			"Working: www.example.org has the same answer at its authority and at all resolvers that answered. Worst problem: "},
		{"one filters", f, findings[1:],
			"Working: www.example.org has the same answer at its authority and at all resolvers that do not filter it. " +
				"Worst problem: Delos"},
	} {
		if r := report.Make(test.facts, test.findings); !strings.Contains(r.Summary, test.want) {
			t.Errorf("%s: %q, want %q", test.what, r.Summary, test.want)
		}
	}
}

func TestContact(t *testing.T) {
	for rname, want := range map[string]string{`hostmaster.example.org`: "hostmaster@example.org",
		`host\.master.example.org`: "host.master@example.org",
		`host\@master.example.org`: `host\@master.example.org`} {
		f, _ := story(explain.Scan)
		f.Servers[0].SOA.RName = name(rname)
		if got := report.Make(f, nil).SOA[1].Value; got != want {
			t.Errorf("%s: %s, want %s", rname, got, want)
		}
	}
}
