package safeat_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

// lines returns the steps without their reasons, with times relative to t0.
func lines(p safeat.Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s %s", s.At.Sub(t0), s.Do)
		if s.Assumed {
			b.WriteString("?")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func link(role safeat.Role, typ rr.Type, ttl uint32) safeat.Link {
	l := data("example.com", ttl)
	l.Role, l.Type = role, typ
	return l
}

func TestPlan(t *testing.T) {
	ds := link(safeat.DS, rr.TypeDS, 86400)
	unknown := link(safeat.Data, rr.TypeA, 0)
	unknown.TTL = safeat.TTL{}
	recent := data("www.example.com", 300, was(t0.Add(-time.Hour), 7200))
	tests := []struct {
		name string
		c    safeat.Change
		want string
	}{
		{"an address, TTL one hour", safeat.Change{Set: data("www.example.com", 3600)},
			"0s lower\n0s wait\n1h1m0s change\n1h7m0s confirm\n1h7m0s raise\n"},
		{"the TTL is low already", safeat.Change{Set: data("www.example.com", 60)}, "0s change\n2m0s confirm\n"},
		{"it was lowered an hour ago", safeat.Change{Set: recent}, "0s wait\n1h1m0s change\n1h7m0s confirm\n"},
		{"the TTL is not known", safeat.Change{Set: unknown},
			"0s lower\n0s wait?\n168h1m0s change\n168h7m0s confirm\n168h7m0s raise\n"},
		{"a record comes, negative TTL 600", safeat.Change{Set: data("new.example.com", 60), Create: true},
			"0s lower\n0s wait\n11m0s change\n17m0s confirm\n17m0s raise\n"},
		{"nameservers", safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, 86400),
			Parent: safeat.Link{TTL: safeat.Seconds(172800)}, Zone: safeat.Seconds(3600)},
			"0s prepare\n0s lower\n0s wait\n24h1m0s change\n72h2m0s confirm\n72h2m0s retire\n72h2m0s raise\n"},
		{"nameservers of a signed zone, short TTLs", safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, 300), DS: &ds,
			Parent: safeat.Link{TTL: safeat.Seconds(3600)}, Zone: safeat.Seconds(7200)},
			"0s prepare\n0s removeDS\n0s wait\n24h1m0s change\n25h2m0s confirm\n25h2m0s retire\n25h2m0s wait\n27h3m0s addDS\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Start = t0
			if diff := cmp.Diff(tt.want, lines(safeat.MakePlan(tt.c))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPlanReads(t *testing.T) {
	p := safeat.MakePlan(safeat.Change{Set: data("www.example.com", 3600), Start: t0})
	var got []string
	got = append(got, p.Summary)
	for _, s := range p.Steps {
		got = append(got, s.Text)
	}
	want := []string{
		"Change www.example.com A at 2026-01-01 13:01:00 UTC; everyone sees it by 2026-01-01 13:07:00 UTC.",
		"Lower the TTL of www.example.com A from 3600 s to 300 s; leave its data as they are.",
		"Wait until 2026-01-01 13:01:00 UTC, when every cache has the low TTL.",
		"Change www.example.com A, and ask the zone's own servers whether all have it.",
		"Confirm: all servers of the zone and all resolvers give the new answer from now on.",
		"Raise the TTL of www.example.com A again, to 3600 s.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b, err := json.Marshal(p.Steps[1])
	if err != nil {
		t.Fatal(err)
	}
	const wait = `{"at":"2026-01-01T12:00:00Z","until":"2026-01-01T13:01:00Z","do":"wait","text":"Wait until ` +
		`2026-01-01 13:01:00 UTC, when every cache has the low TTL.",` +
		`"because":"a cache may have learned an older www.example.com A until 2026-01-01 12:00:00 UTC, and keep it for 1 ` +
		`h","assumed":false}`
	if diff := cmp.Diff(wait, string(b)); diff != "" {
		t.Error(diff)
	}
}

// at returns the time of the first step of a kind.
func at(t *testing.T, p safeat.Plan, do safeat.Do) time.Time {
	t.Helper()
	for _, s := range p.Steps {
		if s.Do == do {
			return s.At
		}
	}
	t.Fatalf("no step %s in %s", do, lines(p))
	return time.Time{}
}

// TestPlannedMoveIsNeverBogus simulates moves of signed zones to servers with other keys. From the change until it is
// safe, a validator may query either set of servers.
func TestPlannedMoveIsNeverBogus(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		pick := func() uint32 { return []uint32{0, 60, 300, 3600, 86400}[rnd.IntN(5)] }
		keysTTL, dsTTL := pick(), pick()
		ds := link(safeat.DS, rr.TypeDS, dsTTL)
		p := safeat.MakePlan(safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, pick()), DS: &ds,
			Zone: safeat.Seconds(keysTTL), Start: t0,
			Parent: safeat.Link{TTL: safeat.Seconds(pick())}})
		removed, added := at(t, p, safeat.RemoveDS), at(t, p, safeat.AddDS)
		for range 500 {
			now := []time.Time{p.Change, p.Safe, added}[rnd.IntN(3)].Add(time.Duration(rnd.IntN(700000)) * time.Millisecond)
			fetched := func(ttl uint32) time.Time { return now.Add(-time.Duration(rnd.Int64N(int64(ttl)*1e9 + 1e9))) }
			dsAt, keysAt := fetched(dsTTL), fetched(keysTTL)
			if rnd.IntN(2) == 0 {
				dsAt, keysAt = now.Add(-time.Duration(dsTTL+1)*time.Second), now.Add(-time.Duration(keysTTL+1)*time.Second)
			}
			if rnd.IntN(4) == 0 {
				dsAt = now
			}
			oldDS := dsAt.Before(removed)
			newDS := !dsAt.Before(added)
			mayOld, mayNew := keysAt.Before(p.Safe), !keysAt.Before(p.Change)
			if oldDS && mayNew || newDS && mayOld {
				t.Fatalf("seed %d: at %v old DS %v, new DS %v, keys of old %v, of new servers %v\n%s", seed, now.Sub(t0), oldDS,
					newDS, mayOld, mayNew, lines(p))
			}
		}
	}
}

// TestPlanIsWorthIt simulates changes of records: no cache has an old answer after the planned time, and old and new
// answers coexist no longer than the low TTL and two minutes.
func TestPlanIsWorthIt(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		const low = 300
		ttl := uint32(rnd.IntN(200000))
		if rnd.IntN(4) == 0 {
			ttl %= 2 * low // also below lowTTL
		}
		p := safeat.MakePlan(safeat.Change{Set: data("www.example.com", ttl), Start: t0})
		window := p.Safe.Sub(p.Change)
		if most := low*time.Second + 2*time.Minute; window > most {
			t.Fatalf("seed %d: %v between change and safe, more than %v", seed, window, most)
		}
		// The last copies of both versions: one with the old TTL when it is lowered, one with the low TTL after the change.
		ends := []time.Time{p.Change.Add(time.Duration(min(ttl, low)) * time.Second)}
		if ttl > low {
			ends = append(ends, t0.Add(time.Duration(ttl)*time.Second))
		}
		for _, end := range ends {
			if end.Add(time.Second).After(p.Safe) {
				t.Fatalf("seed %d: a copy lives until %v, after %v", seed, end, p.Safe)
			}
		}
	}
}
