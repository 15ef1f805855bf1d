package gather_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

// inLab calls do with a Gatherer of the lab, in memory.
func inLab(t *testing.T, do func(t *testing.T, g *gather.Gatherer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := lab.Start(ctx, lab.Options{Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Wait()
		defer cancel()
		anchor, err := secure.ParseAnchor(l.Anchor)
		if err != nil {
			t.Fatal(err)
		}
		client := &resolve.Client{Dial: l.Dial, AsIs: true}
		defer client.CloseIdle()
		do(t, &gather.Gatherer{Exchanger: client, Hints: l.Hints, Anchors: []secure.Anchor{anchor},
			Resolvers: resolvers.Load().Resolvers,
			Prober:    &probe.Prober{Dial: l.Dial, Listen: l.Listen}, Options: gather.Options{Vantage: "lab", Seed: 1}})
	})
}

// TestLabCaches checks the states of the resolvers of the lab, which have the addresses of the public ones in the
// list.
func TestLabCaches(t *testing.T) {
	tests := []struct {
		name string
		want map[safeat.State]string // resolvers by state, except current ones
	}{
		{"www.geo.test", nil},
		{"www.new.test", map[safeat.State]string{safeat.Negative: "cloudflare lumen"}},
		{"www.moved.test", map[safeat.State]string{safeat.Old: "adguard google"}},
		{"www.unreachable.test", map[safeat.State]string{safeat.Stale: "controld"}},
	}
	inLab(t, func(t *testing.T, g *gather.Gatherer) {
		some := strings.Fields("cloudflare google quad9 quad9-filtered adguard controld lumen comodo")
		g.Resolvers = slices.DeleteFunc(g.Resolvers, func(r resolvers.Resolver) bool { return !slices.Contains(some, r.ID) })
		for _, tt := range tests {
			f := compare(t, g, tt.name)
			got := map[safeat.State][]string{}
			for _, c := range explain.Assess(f) {
				per := 0
				for _, e := range f.Exchanges {
					if e.Server == c.Addr && e.Try > 0 {
						per++
					}
				}
				if per > 8 || len(c.Samples) == 0 {
					t.Errorf("%s: %s was sent %d queries, samples %v", tt.name, c.ID, per, c.Samples)
				}
				for _, s := range c.Answers {
					if s.State != safeat.Current && !slices.Contains(got[s.State], c.ID) {
						got[s.State] = append(got[s.State], c.ID)
					}
				}
			}
			for _, state := range []safeat.State{safeat.Old, safeat.Negative, safeat.Stale, safeat.Filtered, safeat.Failed,
				safeat.Silent} {
				slices.Sort(got[state])
				if ids := strings.Join(got[state], " "); ids != tt.want[state] {
					t.Errorf("%s: %s are %q, want %q", tt.name, state, ids, tt.want[state])
				}
			}
		}
	})
}

// TestLabSource checks that a server that replies from another address over UDP is found, although it replies over
// TCP.
func TestLabSource(t *testing.T) {
	inLab(t, func(t *testing.T, g *gather.Gatherer) {
		f, err := g.Scan(t.Context(), "source.test")
		f = must(t, f, err)
		if !slices.ContainsFunc(f.Servers, func(s explain.Server) bool {
			return s.Zone == f.Zone && s.Source.Fact == explain.No
		}) {
			t.Errorf("no server of %+v replies from another address", f.Servers)
		}
	})
}

// TestLabBudgets checks that healthy and broken domains stay within the query limits.
func TestLabBudgets(t *testing.T) {
	inLab(t, func(t *testing.T, g *gather.Gatherer) {
		for _, name := range []string{"example.com", "bad.com", "orphan.test", "signed.test"} {
			f, err := g.Scan(t.Context(), name)
			if f = must(t, f, err); f.Queries > 150 || len(f.Unfinished) > 0 {
				t.Errorf("scan %s: %d queries, unfinished %v", name, f.Queries, f.Unfinished)
			}
		}
		for _, name := range []string{"www.example.org", "www.chain.test", "www.loop.test", "www.cookies.test"} {
			f := analyze(t, g, name)
			if f.Queries > 120 || len(f.Unfinished) > 0 {
				t.Errorf("analyze %s: %d queries, unfinished %v", name, f.Queries, f.Unfinished)
			}
			if name != "www.loop.test" && slices.ContainsFunc(f.Secure,
				func(r secure.Result) bool { return r.State == secure.Unknown }) {
				t.Errorf("analyze %s: DNSSEC of a type could not be judged", name)
			}
			if slices.ContainsFunc(f.Servers, func(s explain.Server) bool { return s.Zone == f.Zone && s.Health == "" }) {
				t.Errorf("analyze %s: a server has no health", name)
			}
		}
	})
}
