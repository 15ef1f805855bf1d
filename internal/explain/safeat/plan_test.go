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

// lines are the steps without their reasons, times from t0.
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
		{"not before tomorrow", safeat.Change{Set: data("www.example.com", 3600), NotBefore: t0.Add(24 * time.Hour)},
			"0s lower\n0s wait\n24h0m0s change\n24h6m0s confirm\n24h6m0s raise\n"},
		{"secondaries take ten minutes", safeat.Change{Set: data("www.example.com", 3600), Settle: 10 * time.Minute},
			"0s lower\n0s wait\n1h11m0s change\n1h27m0s confirm\n1h27m0s raise\n"},
		{"the TTL is not known", safeat.Change{Set: unknown}, "0s lower\n0s wait?\n168h1m0s change\n168h7m0s confirm\n168h7m0s raise\n"},
		{"a record goes", safeat.Change{Set: data("www.example.com", 3600), Action: safeat.Remove},
			"0s lower\n0s wait\n1h1m0s change\n1h7m0s confirm\n"},
		{"a record comes, negative TTL 600", safeat.Change{Set: data("new.example.com", 60), Action: safeat.Create},
			"0s lower\n0s wait\n11m0s change\n17m0s confirm\n17m0s raise\n"},
		{"nameservers", safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, 86400), Parent: safeat.Link{TTL: safeat.Seconds(172800), Left: safeat.LeftNew}, Zone: safeat.Seconds(3600)},
			"0s prepare\n0s lower\n0s wait\n24h1m0s change\n72h2m0s confirm\n72h2m0s retire\n72h2m0s raise\n"},
		{"nameservers of a signed zone, short TTLs", safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, 300), DS: &ds,
			Parent: safeat.Link{TTL: safeat.Seconds(3600), Left: safeat.LeftNew}, Zone: safeat.Seconds(7200)},
			"0s prepare\n0s removeDS\n0s wait\n24h1m0s change\n25h2m0s confirm\n25h2m0s retire\n25h2m0s wait\n27h3m0s addDS\n"},
		{"the same, and old servers of which nothing is known", safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, 300), DS: &ds,
			Parent: safeat.Link{TTL: safeat.Seconds(3600)}, Zone: safeat.Seconds(7200)},
			"0s prepare\n0s removeDS\n0s wait\n24h1m0s change\n25h2m0s confirm?\n25h2m0s retire\n27h7m0s wait\n29h8m0s addDS\n"},
		{"old servers that go on", safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, 300), Zone: safeat.Seconds(3600),
			Parent: safeat.Link{TTL: safeat.Seconds(172800), Left: safeat.LeftOld}}, "0s prepare\n0s change\n49h6m0s confirm\n49h6m0s retire\n"},
		{"old servers of which nothing is known", safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, 300), Zone: safeat.Seconds(3600),
			Parent: safeat.Link{TTL: safeat.Seconds(172800)}}, "0s prepare\n0s change\n48h1m0s confirm?\n48h1m0s retire\n"},
		{"another DS", safeat.Change{Set: ds, Keys: safeat.Seconds(3600)}, "0s prepare\n0s wait\n1h1m0s change\n25h2m0s confirm\n25h2m0s removeKey\n"},
		{"the first DS", safeat.Change{Set: ds, Action: safeat.Create, Zone: safeat.Seconds(7200)}, "0s prepare\n0s wait\n2h1m0s change\n2h12m0s confirm\n"},
		{"no DS any more", safeat.Change{Set: ds, Action: safeat.Remove}, "0s change\n24h1m0s confirm\n24h1m0s removeKey\n"},
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
	const wait = `{"at":"2026-01-01T12:00:00Z","until":"2026-01-01T13:01:00Z","do":"wait","text":"Wait until 2026-01-01 13:01:00 UTC, when every cache has the low TTL.",` +
		`"because":"a cache may have learned an older www.example.com A until 2026-01-01 12:00:00 UTC, and keep it for 1 h","assumed":false}`
	if diff := cmp.Diff(wait, string(b)); diff != "" {
		t.Error(diff)
	}
}

// at is the moment of the first step of a kind.
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

// TestPlannedDSIsNeverBogus plays replacements of a DS: whatever a validator fetched when, a key of its DNSKEY set matches
// its DS. Servers get edits at moments of their own within the time to settle.
func TestPlannedDSIsNeverBogus(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		pick := func() uint32 { return []uint32{0, 60, 300, 3600, 86400}[rnd.IntN(5)] }
		keysTTL, dsTTL, settle := pick(), pick(), time.Duration(rnd.IntN(600))*time.Second
		p := safeat.MakePlan(safeat.Change{Set: link(safeat.DS, rr.TypeDS, dsTTL), Keys: safeat.Seconds(keysTTL), Start: t0, Settle: settle})
		added, changed, removed := at(t, p, safeat.Prepare), at(t, p, safeat.Make), at(t, p, safeat.RemoveKey)
		span := int64(removed.Sub(t0) + 3*time.Hour)
		for range 300 {
			now := t0.Add(time.Duration(rnd.Int64N(span)))
			if rnd.IntN(2) == 0 { // around the steps, where it matters
				now = []time.Time{changed, removed}[rnd.IntN(2)].Add(time.Duration(rnd.IntN(4000)) * time.Millisecond)
			}
			// A cached set may be as old as its TTL and the second it is rounded by.
			age := func(ttl uint32) time.Time {
				old := time.Duration(ttl)*time.Second + time.Second
				if rnd.IntN(2) == 0 {
					old = time.Duration(rnd.Int64N(int64(old)))
				}
				return now.Add(-old)
			}
			edited := func(step time.Time) time.Time { return step.Add(time.Duration(rnd.Int64N(int64(settle) + 1))) }
			dsAt, keysAt := age(dsTTL), age(keysTTL)
			newDS := !dsAt.Before(edited(changed))
			oldKey, newKey := keysAt.Before(edited(removed)), !keysAt.Before(edited(added))
			if newDS && !newKey || !newDS && !oldKey {
				t.Fatalf("seed %d: at %v new DS %v, old key %v, new key %v\n%s", seed, now.Sub(t0), newDS, oldKey, newKey, lines(p))
			}
		}
	}
}

// TestPlannedMoveIsNeverBogus plays moves of signed zones to servers with other keys: from the change until it is safe
// either set of servers may be the one that a validator asks.
func TestPlannedMoveIsNeverBogus(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		pick := func() uint32 { return []uint32{0, 60, 300, 3600, 86400}[rnd.IntN(5)] }
		keysTTL, dsTTL, settle := pick(), pick(), time.Duration(rnd.IntN(600))*time.Second
		ds := link(safeat.DS, rr.TypeDS, dsTTL)
		p := safeat.MakePlan(safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, pick()), DS: &ds, Zone: safeat.Seconds(keysTTL), Start: t0, Settle: settle,
			Parent: safeat.Link{TTL: safeat.Seconds(pick()), Left: safeat.LeftNew}})
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
			oldDS := dsAt.Before(removed.Add(time.Duration(rnd.Int64N(int64(settle) + 1))))
			newDS := !dsAt.Before(added)
			mayOld, mayNew := keysAt.Before(p.Safe), !keysAt.Before(p.Change)
			if oldDS && mayNew || newDS && mayOld {
				t.Fatalf("seed %d: at %v old DS %v, new DS %v, keys of old %v, of new servers %v\n%s", seed, now.Sub(t0), oldDS, newDS, mayOld, mayNew, lines(p))
			}
		}
	}
}

// TestPlanIsWorthIt plays changes of records: nothing old after the plan's moment, and not more than the low TTL, the time
// to settle and two minutes in which some have the old answer.
func TestPlanIsWorthIt(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		ttl, low, settle := uint32(rnd.IntN(200000)), uint32(1+rnd.IntN(900)), time.Duration(rnd.IntN(600))*time.Second
		p := safeat.MakePlan(safeat.Change{Set: data("www.example.com", ttl), Start: t0, Low: safeat.Seconds(low), Settle: settle})
		window := p.Safe.Sub(p.Change)
		if most := time.Duration(low)*time.Second + settle + 2*time.Minute; window > most {
			t.Fatalf("seed %d: %v between change and safe, more than %v", seed, window, most)
		}
		// The last copies of both versions: one with the old TTL as the lowered one settles, one with the low TTL after the change.
		ends := []time.Time{p.Change.Add(settle + time.Duration(min(ttl, low))*time.Second)}
		if ttl > low {
			ends = append(ends, t0.Add(settle+time.Duration(ttl)*time.Second))
		}
		for _, end := range ends {
			if end.Add(time.Second).After(p.Safe) {
				t.Fatalf("seed %d: a copy lives until %v, after %v", seed, end, p.Safe)
			}
		}
	}
}
