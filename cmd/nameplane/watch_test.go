package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

func TestWatchReached(t *testing.T) {
	name := dnsname.MustParse("www.example.org")
	facts := func(results ...iterate.Class) *explain.Facts {
		f := &explain.Facts{Kind: explain.Compare, Name: name}
		for _, r := range results {
			f.Outcomes = append(f.Outcomes, explain.Outcome{Type: rr.TypeA, Result: r})
		}
		return f
	}
	past, future := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), time.Date(2999, 1, 1, 12, 0, 0, 0, time.UTC)
	reportOf := func(safe time.Time, verdict safeat.Verdict, caches ...report.CacheLine) *report.Report {
		return &report.Report{Target: name, SafeAt: safe, Caches: caches,
			Safe: &safeat.Report{Verdict: verdict, Summary: "Everyone sees it."}}
	}
	old := report.CacheLine{Resolver: "Aland", State: safeat.Old}
	uncounted := report.CacheLine{Resolver: "Borland", State: safeat.Old, NoVote: true}
	stale := report.CacheLine{Resolver: "Cuba", State: safeat.Stale}
	failing := report.CacheLine{Resolver: "Denmark", State: safeat.Failed}
	for _, test := range []struct {
		name, until string
		facts       *explain.Facts
		report      *report.Report
		state       string
		reached     bool
	}{
		{"the authoritative servers were not queried", "safe",
			facts(iterate.Unknown), reportOf(past, safeat.Safe),
			"not yet on the authoritative servers: its servers could not be queried", false},
		{"the name does not exist", "authoritative",
			facts(iterate.NXDomain), reportOf(past, safeat.Safe),
			"not yet on the authoritative servers: www.example.org has no such records", false},
		{"the name exists", "authoritative",
			facts(iterate.Answer), reportOf(future, safeat.Soon, old),
			"every server of the zone has the expected records of www.example.org", true},
		{"a resolver has an older answer", "safe",
			facts(iterate.Answer), reportOf(future, safeat.Soon, old),
			"older answers: Aland; safe at 2999-01-01 12:00:00 UTC", false},
		{"a resolver cannot reach the servers", "safe",
			facts(iterate.Answer), reportOf(past, safeat.Undetermined, stale),
			"older answers: Cuba; it is unknown when the name is safe", false},
		{"other resolvers may have older answers", "safe",
			facts(iterate.Answer), reportOf(future, safeat.Soon),
			"no older answers; resolvers that were not queried are safe at 2999-01-01 12:00:00 UTC", false},
		{"a resolver fails", "safe",
			facts(iterate.Answer), reportOf(future, safeat.Soon, failing),
			"no older answers, but resolvers fail: Denmark", false},
		{"a resolver without a vote has an older answer", "safe",
			facts(iterate.Answer), reportOf(past, safeat.Safe, uncounted),
			"www.example.org is safe. Everyone sees it.", true},
	} {
		v := watcher{until: test.until}
		if state, ok := v.reached(test.facts, test.report); state != test.state || ok != test.reached {
			t.Errorf("%s: %q, %v; want %q, %v", test.name, state, ok, test.state, test.reached)
		}
	}
}

// TestWatchSafe watches a name with a TTL of one minute in an in-memory lab while the name changes. Caches that were
// not queried may hold the older address for one TTL after the change. The watch must not end before that minute is
// over, and it must end soon after it.
func TestWatchSafe(t *testing.T) {
	const (
		ttl            = time.Minute
		noOlderAnswers = "no older answers; resolvers that were not queried are safe at"
		isSafe         = "eu.edge.net is safe. Everyone sees the new answer, as far as is known"
	)
	for _, test := range []struct {
		name   string
		flip   time.Duration // time of the change after the start of the watch; negative: before the start
		cached bool          // a resolver caches the older address just before the change
		want   []string      // expected lines, without times
	}{
		{"changed before", -time.Second, false, []string{noOlderAnswers, isSafe}},
		{"changed before, and a resolver has the older answer", -time.Second, true,
			[]string{"older answers: Cloudflare; safe at", noOlderAnswers, isSafe}},
		{"changed during the watch", 90 * time.Second, false,
			[]string{"not yet on the authoritative servers: A is not 198.51.100.77", noOlderAnswers, isSafe}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inMemoryLab(t, func(t *testing.T, l *lab.Lab, g *gather.Gatherer) {
				var changed time.Time
				flip := func() {
					if test.cached {
						askResolver(t, l, "1.1.1.1", "eu.edge.net.")
					}
					name, addrs := dnsname.MustParse("eu.edge.net"), []string{"198.51.100.77"}
					if _, err := l.Flip(t.Context(), name, rr.TypeA, addrs); err != nil {
						t.Error(err)
					}
					changed = time.Now()
				}
				if test.flip < 0 {
					flip()
					time.Sleep(-test.flip)
				} else {
					time.AfterFunc(test.flip, flip)
				}
				lines := watchUntilSafe(t, g, "eu.edge.net", "A=198.51.100.77")
				if took := time.Since(changed); took < ttl || took > ttl+10*time.Second {
					t.Errorf("safe %v after the change", took)
				}
				if !slices.EqualFunc(lines, test.want, strings.HasPrefix) {
					t.Errorf("the watch printed\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(test.want, "\n"))
				}
			})
		})
	}
}

// TestWatchStopped checks the errors of a watch that ends before the name is safe.
func TestWatchStopped(t *testing.T) {
	for _, test := range []struct {
		name        string
		interrupted bool
		code        int
		want        string
	}{
		{"the deadline", false, cli.ExitError, "not safe before the deadline; " +
			"no older answers; resolvers that were not queried are safe at 2000-01-01 00:01:02 UTC"},
		{"interrupted", true, cli.ExitUnknown, "interrupted; not safe at the last scan"},
	} {
		inMemoryLab(t, func(t *testing.T, _ *lab.Lab, g *gather.Gatherer) {
			outer, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ctx, cancel := context.WithTimeout(outer, 20*time.Second)
			defer cancel()
			if test.interrupted {
				time.AfterFunc(10*time.Second, interrupt)
			}
			cmd := &cobra.Command{}
			cmd.SetContext(outer)
			cmd.SetOut(io.Discard)
			v := &watcher{until: "safe", every: time.Second, quiet: true}
			v.configure(g)
			err := v.watch(ctx, cmd, g, "eu.edge.net", nil)
			if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != test.code || f.Error() != test.want {
				t.Errorf("%s: %v, want %s", test.name, err, test.want)
			}
		})
	}
}

// watchUntilSafe runs a watch that scans every second, and returns its lines without the times.
func watchUntilSafe(t *testing.T, g *gather.Gatherer, name, expect string) (lines []string) {
	t.Helper()
	set, err := explain.ParseExpect(expect)
	if err != nil {
		t.Fatal(err)
	}
	g.Options.Expect = []explain.Set{set}
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	v := &watcher{until: "safe", every: time.Second}
	v.configure(g)
	if err := v.watch(ctx, cmd, g, name, nil); err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	for line := range strings.Lines(out.String()) {
		if _, text, ok := strings.Cut(line, "  "); ok {
			line = text
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// inMemoryLab runs a test with a lab in memory, in a synctest bubble with its own clock.
func inMemoryLab(t *testing.T, do func(*testing.T, *lab.Lab, *gather.Gatherer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := lab.Start(ctx, lab.Options{Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Wait()
		defer cancel()
		client := &resolve.Client{Dial: l.Dial, AsIs: true}
		defer client.CloseIdle()
		ids := []string{"cloudflare", "google"}
		list := slices.DeleteFunc(resolvers.Load().Resolvers, func(r resolvers.Resolver) bool {
			return !slices.Contains(ids, r.ID)
		})
		do(t, l, &gather.Gatherer{Exchanger: client, Hints: l.Hints, Anchors: []secure.Anchor{}, Resolvers: list,
			Prober:  &probe.Prober{Dial: l.Dial, Listen: l.Listen},
			Options: gather.Options{Vantage: "lab", Seed: 1, Rate: 1000}})
	})
}

// askResolver sends a query to a resolver of the lab, so that the resolver caches the answer.
func askResolver(t *testing.T, l *lab.Lab, at, name string) {
	t.Helper()
	client := &resolve.Client{Dial: l.Dial, AsIs: true}
	defer client.CloseIdle()
	e := iterate.Ask(t.Context(), client, time.Now(), iterate.Query{
		Server:   resolve.Server{Addr: netip.AddrPortFrom(netip.MustParseAddr(at), 53)},
		Question: iterate.Question{Name: dnsname.MustParse(name), Type: rr.TypeA}, RD: true})
	if v, err := e.View(); err != nil || len(v.Answer) == 0 {
		t.Fatalf("%s answers %+v, %v", at, v, err)
	}
}
