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
	of := func(safe time.Time, verdict safeat.Verdict, caches ...report.CacheLine) *report.Report {
		return &report.Report{Target: name, SafeAt: safe, Safe: &safeat.Report{Verdict: verdict, Summary: "Everyone sees it."}, Caches: caches}
	}
	old := report.CacheLine{Resolver: "Aland", State: safeat.Old}
	uncounted := report.CacheLine{Resolver: "Borland", State: safeat.Old, NoVote: true}
	stale := report.CacheLine{Resolver: "Cuba", State: safeat.Stale}
	failing := report.CacheLine{Resolver: "Denmark", State: safeat.Failed}
	for _, test := range []struct {
		what, until string
		facts       *explain.Facts
		report      *report.Report
		words       string
		reached     bool
	}{
		{"the authority was not asked", "safe", facts(iterate.Unknown), of(past, safeat.Safe), "not yet at the authority: its servers could not be queried", false},
		{"it does not exist", "authoritative", facts(iterate.NXDomain), of(past, safeat.Safe), "not yet at the authority: www.example.org has no such records", false},
		{"it is there", "authoritative", facts(iterate.Answer), of(future, safeat.Soon, old), "www.example.org is as wanted at every server of its zone", true},
		{"a resolver is late", "safe", facts(iterate.Answer), of(future, safeat.Soon, old), "late: Aland; safe at 2999-01-01 12:00:00 UTC", false},
		{"one cannot reach the servers", "safe", facts(iterate.Answer), of(past, safeat.Undetermined, stale), "late: Cuba; when it is safe cannot be told", false},
		{"others may be late", "safe", facts(iterate.Answer), of(future, safeat.Soon), "no resolver that was asked is late; all others are safe at 2999-01-01 12:00:00 UTC", false},
		{"one fails", "safe", facts(iterate.Answer), of(future, safeat.Soon, failing), "no resolver that was asked is late, but some fail: Denmark", false},
		{"one is late that is not counted", "safe", facts(iterate.Answer), of(past, safeat.Safe, uncounted), "www.example.org is safe. Everyone sees it.", true},
	} {
		v := watcher{until: test.until}
		if words, ok := v.reached(test.facts, test.report); words != test.words || ok != test.reached {
			t.Errorf("%s: %q, %v; want %q, %v", test.what, words, ok, test.words, test.reached)
		}
	}
}

// A watch in the lab, in memory, of a name with a TTL of a minute that is changed. Caches that nobody looks into may
// have the older address from the second of the change on, so that it must not end before a minute has gone; and it
// must end soon after.
func TestWatchSafe(t *testing.T) {
	const ttl = time.Minute
	for _, test := range []struct {
		what  string
		flip  time.Duration // after the watch has begun; negative: before
		asked bool          // a resolver was, just before the change
		want  []string      // what is printed, without times
	}{
		{"changed before", -time.Second, false, []string{"no resolver that was asked is late; all others are safe at", "eu.edge.net is safe. Everyone sees the new answer, as far as is known"}},
		{"changed before, and one is late", -time.Second, true, []string{"late: Cloudflare; safe at", "no resolver that was asked is late; all others are safe at",
			"eu.edge.net is safe. Everyone sees the new answer, as far as is known"}},
		{"changed meanwhile", 90 * time.Second, false, []string{"not yet at the authority: A is not 198.51.100.77", "no resolver that was asked is late; all others are safe at",
			"eu.edge.net is safe. Everyone sees the new answer, as far as is known"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			inMemoryLab(t, func(t *testing.T, l *lab.Lab, g *gather.Gatherer) {
				var changed time.Time
				flip := func() {
					if test.asked {
						askResolver(t, l, "1.1.1.1", "eu.edge.net.")
					}
					if _, err := l.Flip(t.Context(), dnsname.MustParse("eu.edge.net"), rr.TypeA, []string{"198.51.100.77"}); err != nil {
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
					t.Errorf("it says\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(test.want, "\n"))
				}
			})
		})
	}
}

// TestWatchInVain: who gives up is told what was waited for.
func TestWatchInVain(t *testing.T) {
	for _, test := range []struct {
		what        string
		interrupted bool
		code        int
		want        string
	}{
		{"the deadline", false, cli.ExitError, "not as wanted before the deadline; no resolver that was asked is late; all others are safe at 2000-01-01 00:01:02 UTC"},
		{"interrupted", true, cli.ExitUnknown, "interrupted; it was not as wanted when last looked at"},
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
			v.begin(g)
			err := v.watch(ctx, cmd, g, "eu.edge.net", nil)
			if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != test.code || f.Error() != test.want {
				t.Errorf("%s: %v, want %s", test.what, err, test.want)
			}
		})
	}
}

// watchUntilSafe is what a watch prints that looks every second, without the times.
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
	v.begin(g)
	if err := v.watch(ctx, cmd, g, name, nil); err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	for line := range strings.Lines(out.String()) {
		if _, rest, ok := strings.Cut(line, "  "); ok {
			line = rest
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// inMemoryLab has a lab in memory, on a clock of its own.
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
		some := []string{"cloudflare", "google"}
		list := slices.DeleteFunc(resolvers.Load().Resolvers, func(r resolvers.Resolver) bool { return !slices.Contains(some, r.ID) })
		do(t, l, &gather.Gatherer{Exchanger: client, Hints: l.Hints, Anchors: []secure.Anchor{}, Resolvers: list, Prober: &probe.Prober{Dial: l.Dial, Listen: l.Listen},
			Options: gather.Options{Vantage: "lab", Seed: 1, Rate: 1000}})
	})
}

// askResolver has a resolver of the lab fetch what there is.
func askResolver(t *testing.T, l *lab.Lab, at, name string) {
	t.Helper()
	client := &resolve.Client{Dial: l.Dial, AsIs: true}
	defer client.CloseIdle()
	e := iterate.Ask(t.Context(), client, time.Now(), iterate.Query{Server: resolve.Server{Addr: netip.AddrPortFrom(netip.MustParseAddr(at), 53)},
		Question: iterate.Question{Name: dnsname.MustParse(name), Type: rr.TypeA}, RD: true})
	if v, err := e.View(); err != nil || len(v.Answer) == 0 {
		t.Fatalf("%s answers %+v, %v", at, v, err)
	}
}
