package safeat_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

const slack = 2 * time.Second // whole seconds, and an answer in flight

func data(owner string, ttl uint32, before ...safeat.Version) safeat.Link {
	return safeat.Link{Owner: dnsname.MustParse(owner), Type: rr.TypeA, Role: safeat.Data, TTL: safeat.Seconds(ttl),
		Seen:   t0,
		Before: before, Denial: safeat.Denial{TTL: safeat.Seconds(600), Ranges: safeat.RangesNone}}
}

func was(until time.Time, ttl uint32) safeat.Version {
	return safeat.Version{Until: until, TTL: safeat.Seconds(ttl)}
}

func denied(l safeat.Link, d safeat.Denial) safeat.Link {
	l.Denial = d
	return l
}

func TestUnseen(t *testing.T) {
	ago := func(d time.Duration) time.Time { return t0.Add(-d) }
	absent := safeat.Version{Until: t0, Absent: true}
	ns := func(role safeat.Role, ttl uint32, oldServersUpdated bool) safeat.Link {
		l := data("example.com", ttl, was(t0, ttl))
		l.Type, l.Role, l.OldServersUpdated = rr.TypeNS, role, oldServersUpdated
		return l
	}
	ds := data("example.com", 86400, was(t0, 86400))
	ds.Type, ds.Role = rr.TypeDS, safeat.DS
	same := data("www.example.com", 300)
	same.Unchanged = true

	tests := []struct {
		name    string
		links   []safeat.Link
		wait    time.Duration // since t0
		latest  time.Duration // 0: as wait
		assumed bool
	}{
		{"an address changes", []safeat.Link{data("www.example.com", 300, was(t0, 3600))}, time.Hour, 0, false},
		{"it changed half an hour ago", []safeat.Link{data("www.example.com", 300, was(ago(30*time.Minute), 3600))},
			30 * time.Minute, 0, false},
		{"the TTL was lowered, but not long ago", []safeat.Link{data("www.example.com", 300, was(t0, 300),
			was(ago(time.Hour), 7200))}, time.Hour, 0, false},
		{"the TTL was lowered in time", []safeat.Link{data("www.example.com", 300, was(t0, 300),
			was(ago(3*time.Hour), 7200))}, 5 * time.Minute, 0, false},
		{"a TTL beyond every limit", []safeat.Link{data("www.example.com", 300, was(t0, 1000000))}, 604800 * time.Second, 0,
			true},
		{"the old TTL is not known", []safeat.Link{data("www.example.com", 900, safeat.Version{Until: t0})}, 15 * time.Minute,
			604800 * time.Second, true},
		{"when it changed is not known", []safeat.Link{data("www.example.com", 300,
			safeat.Version{TTL: safeat.Seconds(3600)})}, time.Hour, 0, true},
		{"nothing is known", []safeat.Link{data("www.example.com", 300)}, 10 * time.Minute, 604800 * time.Second, true},
		{"nothing changed", []safeat.Link{same}, -slack, 0, false},
		{"a new name: SOA TTL 300 and MINIMUM 3600", []safeat.Link{denied(data("new.example.com", 60, absent),
			safeat.Denial{TTL: safeat.NegativeTTL(300, 3600), Ranges: safeat.RangesNone})}, 5 * time.Minute, 0, false},
		{"a new name in a zone whose SOA was not read", []safeat.Link{denied(data("new.example.com", 60, absent),
			safeat.Denial{Ranges: safeat.RangesNone})}, 3 * time.Hour, 604800 * time.Second, true},
		{"NSEC records with a longer TTL than the SOA", []safeat.Link{denied(data("new.example.com", 60, absent),
			safeat.Denial{TTL: safeat.Seconds(300), NSEC: safeat.Seconds(3600), Ranges: safeat.RangesNSEC})}, time.Hour, 0,
			false},
		{"the slowest link of a chain", []safeat.Link{data("www.example.com", 300, was(t0, 300)),
			data("edge.example.net", 60, was(t0, 7200))}, 2 * time.Hour, 0, false},
		{"nameservers in com, the child's TTL is 300",
			[]safeat.Link{ns(safeat.ParentNS, 172800, true), ns(safeat.ChildNS, 300, true)}, 48 * time.Hour, 0, false},
		{"what the old servers do is not known", []safeat.Link{ns(safeat.ParentNS, 172800, false),
			ns(safeat.ChildNS, 300, false), same},
			48 * time.Hour, 172800*time.Second + 600*time.Second + 2*slack, true},
		{"nor what data they had", []safeat.Link{ns(safeat.ParentNS, 172800, false)}, 48 * time.Hour,
			48*time.Hour + 5*time.Minute, true},
		{"a DS in com", []safeat.Link{ds}, 24 * time.Hour, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := safeat.Compute(safeat.Facts{Now: t0, Links: tt.links})
			if tt.latest == 0 {
				tt.latest = tt.wait
			}
			want, latest := t0.Add(tt.wait+slack), t0.Add(tt.latest+slack)
			if !got.At.Equal(want) || !got.Latest.Equal(latest) || got.Assumed != tt.assumed {
				t.Errorf("safe at %v, at the latest %v, assumed %v; want %v, %v, %v\n%+v", got.At, got.Latest, got.Assumed, want,
					latest, tt.assumed, got.Unseen.Bounds)
			}
		})
	}
}

func sample(state safeat.State, left uint32, after time.Duration) safeat.Sample {
	return safeat.Sample{State: state, Left: left, Seen: t0.Add(after)}
}

func TestResolver(t *testing.T) {
	measured := safeat.Clamps{Positive: safeat.Seconds(86400), Negative: safeat.Seconds(3600)}
	long := data("www.example.com", 300, was(t0, 1000000))
	tests := []struct {
		name   string
		link   safeat.Link
		r      safeat.Resolver
		state  safeat.State
		wait   time.Duration
		caches int
		cannot bool
	}{
		{"several caches: those not seen count", long, safeat.Resolver{Clamps: measured,
			Samples: []safeat.Sample{sample(safeat.Current, 200, 0)}}, safeat.Current, 86402 * time.Second, 1, false},
		{"an older answer is seen", long, safeat.Resolver{Clamps: measured,
			Samples: []safeat.Sample{sample(safeat.Old, 200, 0)}}, safeat.Old, 86402 * time.Second, 1, false},
		{"a denial is seen", long, safeat.Resolver{Clamps: measured,
			Samples: []safeat.Sample{sample(safeat.Negative, 599, 0)}}, safeat.Negative, 86402 * time.Second, 1, false},
		{"a TTL that goes up shows two caches", long, safeat.Resolver{Clamps: measured, Samples: []safeat.Sample{
			sample(safeat.Old, 200, 0), sample(safeat.Old, 250, time.Second), sample(safeat.Old, 198, 2*time.Second)}},
			safeat.Old, 86402 * time.Second, 2, false},
		{"an entry that was renewed does not", long, safeat.Resolver{Clamps: measured, Samples: []safeat.Sample{
			sample(safeat.Old, 2, 0), sample(safeat.Current, 300, 4*time.Second)}}, safeat.Old, 86402 * time.Second, 1, false},
		{"not seen, with its limit", long, safeat.Resolver{Clamps: measured}, safeat.Silent, 86402 * time.Second, 0, false},
		{"it fails", data("www.example.com", 300, was(t0, 60)),
			safeat.Resolver{Samples: []safeat.Sample{sample(safeat.Failed, 0, 0)}}, safeat.Failed, 301 * time.Second, 0, false},
		{"it filters", long, safeat.Resolver{Samples: []safeat.Sample{sample(safeat.Filtered, 0, 0)}}, safeat.Filtered,
			604802 * time.Second, 0, false},
		{"it serves stale answers", long, safeat.Resolver{Samples: []safeat.Sample{sample(safeat.Stale, 30, 0)}},
			safeat.Stale, 604802 * time.Second, 0, true},
		{"it keeps things longer than it may", data("www.example.com", 300, was(t0, 300)),
			safeat.Resolver{Samples: []safeat.Sample{sample(safeat.Old, 3600, -time.Minute)}}, safeat.Old, 3602 * time.Second, 1,
			false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Name = "r"
			rep := safeat.Compute(safeat.Facts{Now: t0, Links: []safeat.Link{tt.link}, Resolvers: []safeat.Resolver{tt.r}})
			got := rep.Resolvers[0]
			if want := t0.Add(tt.wait); got.State != tt.state || !got.At.Equal(want) || got.Caches != tt.caches ||
				len(got.Undetermined) > 0 != tt.cannot {
				t.Errorf("%s, safe at %v, %d caches, undetermined %q; want %s, %v, %d, %v", got.State, got.At, got.Caches,
					got.Undetermined, tt.state, want, tt.caches, tt.cannot)
			}
			if (rep.Verdict == safeat.Undetermined) != tt.cannot {
				t.Errorf("verdict %s", rep.Verdict)
			}
		})
	}
}

func TestUndetermined(t *testing.T) {
	divided := data("www.example.com", 300, was(t0, 300))
	divided.Divided = true
	blank := safeat.Link{Owner: dnsname.MustParse("www.example.com"), Type: rr.TypeA, Role: safeat.Data}
	for name, l := range map[string]safeat.Link{"divided": divided, "blank": blank} {
		got := safeat.Compute(safeat.Facts{Now: t0, Links: []safeat.Link{l}})
		if got.Verdict != safeat.Undetermined || len(got.Undetermined) == 0 ||
			!strings.Contains(got.Summary, "It is not known when") {
			t.Errorf("%s: %s, %q", name, got.Verdict, got.Summary)
		}
	}
}

// TestFetchedAfterTheChange has a cache that got the old answer ten minutes after the given time of the change. So
// some server had it for longer, and the time when all servers were seen to agree counts.
func TestFetchedAfterTheChange(t *testing.T) {
	l := data("www.example.com", 300, was(t0.Add(-15*time.Minute), 300))
	f := safeat.Facts{Now: t0, Links: []safeat.Link{l},
		Resolvers: []safeat.Resolver{{Name: "r", Samples: []safeat.Sample{sample(safeat.Old, 10, 0)}}}}
	got := safeat.Compute(f)
	if want := t0.Add(300*time.Second + slack); !got.At.Equal(want) || !got.Assumed {
		t.Errorf("safe at %v, assumed %v; want %v", got.At, got.Assumed, want)
	}
	if want := t0.Add(11 * time.Second); !got.First.Equal(want) {
		t.Errorf("first change %v, want %v", got.First, want)
	}
}

func TestJSON(t *testing.T) {
	f := safeat.Facts{Now: t0, Links: []safeat.Link{data("www.example.com", 300, was(t0, 3600))}}
	f.Resolvers = []safeat.Resolver{{Name: "lab", Samples: []safeat.Sample{sample(safeat.Old, 1400, 0)}}}
	b, err := json.Marshal(safeat.Compute(f).Resolvers)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"lab","state":"old","safeAt":"2026-01-01T13:00:02Z","atLatest":"2026-01-01T13:00:02Z",` +
		`"heldUntil":"2026-01-01T12:23:21Z",` +
		`"likelyUntil":"2026-01-01T12:23:20Z","assumed":false,"cachesSeen":1,"summary":"lab: was seen with an older ` +
		`answer until 2026-01-01 12:23:21 UTC; all its caches have the new one by 2026-01-01 13:00:02 UTC.",` +
		`"bounds":[{"at":"2026-01-01T13:00:02Z","atLatest":"2026-01-01T13:00:02Z","link":"www.example.com A",` +
		`"because":"a cache may have learned an older www.example.com A until 2026-01-01 12:00:00 UTC, and keep it for 1 ` +
		`h","assumed":false,` +
		`"inputs":[{"name":"changed","value":"2026-01-01 12:00:00 UTC","assumed":false},{"name":"ttl","value":"3600",` +
		`"assumed":false},{"name":"slack","value":"2","assumed":false}]},` +
		`{"at":"2026-01-01T12:23:21Z","atLatest":"2026-01-01T12:23:21Z","link":"www.example.com A",` +
		`"because":"a cache held an older www.example.com A, for 23 min 20 s after 2026-01-01 12:00:00 UTC",` +
		`"assumed":false,` +
		`"inputs":[{"name":"seen","value":"2026-01-01 12:00:00 UTC","assumed":false},{"name":"remaining","value":"1400",` +
		`"assumed":false},{"name":"slack","value":"1","assumed":false}]}]}]`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
	rep := safeat.Compute(f)
	if want := "Everyone sees the new answer by 2026-01-01 13:00:02 UTC (in 1 h); 1 of 1 resolvers were seen with an " +
		"older answer."; rep.Summary != want {
		t.Errorf("summary %q, want %q", rep.Summary, want)
	}
}

// TestInputs checks that the shown inputs add up to the result.
func TestInputs(t *testing.T) {
	r := safeat.Resolver{Name: "r", Clamps: safeat.Clamps{Positive: safeat.Seconds(86400)}}
	f := safeat.Facts{Now: t0, Links: []safeat.Link{data("www.example.com", 300, was(t0, 1000000))},
		Resolvers: []safeat.Resolver{r}}
	rep := safeat.Compute(f)
	want := []safeat.Input{{Name: "changed", Value: "2026-01-01 12:00:00 UTC"}, {Name: "ttl", Value: "1000000"},
		{Name: "clamp", Value: "86400"}, {Name: "slack", Value: "2"}}
	if diff := cmp.Diff(want, rep.Resolvers[0].Bounds[0].Inputs); diff != "" {
		t.Error(diff)
	}
	want[2] = safeat.Input{Name: "clamp", Value: "604800", Assumed: true}
	if diff := cmp.Diff(want, rep.Slowest.Inputs); diff != "" {
		t.Error(diff)
	}
}
