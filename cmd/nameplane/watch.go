package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/rr"
)

const watchLong = `Check a name repeatedly until it reaches the state of --until:

  authoritative  every server of the zone has the records of --expect; without --expect,
                 all servers have the same records
  safe           in addition, no resolver can still have an older answer

The command prints a line when the state changes. It queries the authoritative servers in
every scan. It queries resolvers only after all authoritative servers have the new
records, because resolvers would cache the old answer.

If you start the command before the change, set the new records with --expect. Without
--expect the existing records count as the new ones. They count as changed at the time of
the first scan: other caches may hold older records for one TTL, and the command waits
for that time.

Exit status: 0 the state is reached, 2 it was not reached before --deadline and the
message says what is missing, 3 unknown or interrupted, 4 usage error.`

// watcher repeats a scan until a name reaches a state.
type watcher struct {
	source   sourceFlags
	until    string
	every    time.Duration
	deadline time.Duration
	quiet    bool

	lastState string // description of the state at the last scan
}

// newWatchCommand needs a name, unlike compare: there is no recording that could have it.
func newWatchCommand() *cobra.Command {
	v := &watcher{}
	c := &cobra.Command{
		Use:   "watch NAME [TYPE]...",
		Short: "Wait until all resolvers have the new answer",
		Long:  watchLong,
		Example: `  nameplane watch www.example.com --expect A=192.0.2.1 --until safe
  nameplane watch www.example.com --until authoritative --deadline 2m`,
		Args: cli.Args(1, -1),
		RunE: v.run,
	}
	f := c.Flags()
	f.StringVar(&v.until, "until", "safe", "state to wait for: safe or authoritative")
	// Thirty seconds: most TTLs are minutes or longer, so more frequent scans would only load foreign servers.
	f.DurationVar(&v.every, "every", 30*time.Second, "scan again after this `TIME`, at least 5s")
	f.DurationVar(&v.deadline, "deadline", time.Hour, "give up after this `TIME`")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "print only the last line")
	v.source.addFlags(c)
	v.source.addNameFlags(c)
	v.source.addCacheFlags(c)
	_ = f.MarkHidden("change") // always true for watch
	return c
}

// run checks all flags before the first query. The deadline is for all scans together, and each scan has its own
// timeout.
func (v *watcher) run(cmd *cobra.Command, args []string) error {
	input, types, err := splitTypes(cmd, args)
	if err != nil {
		return err
	}
	if v.until != "safe" && v.until != "authoritative" {
		return cli.Usage(cmd, "--until %s: must be safe or authoritative", v.until)
	}
	// The lab is local, so tests and tutorials may scan more often.
	if v.every < 5*time.Second && v.source.Lab == "" {
		return cli.Usage(cmd, "--every %s: must be at least 5s, to limit the load on public servers", v.every)
	}
	g, err := v.source.gatherer(cmd)
	if err != nil {
		return err
	}
	v.configure(g)
	ctx, cancel := context.WithTimeout(cmd.Context(), v.deadline)
	defer cancel()
	return v.watch(ctx, cmd, g, input, types)
}

// configure sets the options of a scan for a user who waits for a change.
func (v *watcher) configure(g *gather.Gatherer) {
	g.Options.NoSimilar = true // no suggestions for similar names: the name may not exist yet
	// Change makes safeat assume that caches may still hold what the records were before.
	g.Options.Change = true
	g.Options.Await = true
}

// watch scans until the name reaches the state, or ctx ends.
func (v *watcher) watch(ctx context.Context, cmd *cobra.Command, g *gather.Gatherer, input string,
	types []rr.Type) error {
	var r *report.Report
	for {
		facts, err := g.Compare(ctx, input, types)
		if ctx.Err() != nil {
			return v.stopError(cmd, r)
		}
		if err != nil {
			return asUsage(cmd, err)
		}
		// Remember what earlier scans saw: an old answer that one scan missed may still be in that cache.
		g.Options.Past = explain.Remember(g.Options.Past, explain.PastOf(facts))
		r = report.Make(facts, check.Run(facts))
		state, ok := v.reached(facts, r)
		if ok {
			return cli.Say(cmd, "%s", state)
		}
		if state != v.lastState && !v.quiet {
			if err := cli.Say(cmd, "%s  %s", time.Now().UTC().Format(time.TimeOnly), state); err != nil {
				return err
			}
		}
		v.lastState = state
		select {
		case <-ctx.Done():
			return v.stopError(cmd, r)
		case <-time.After(v.pause(r)):
		}
	}
}

// pause returns the time until the next scan: v.every, or less if the name can be safe earlier.
func (v *watcher) pause(r *report.Report) time.Duration {
	// One second more than the end of the last TTL: caches count whole seconds.
	if left := time.Until(r.SafeAt); !r.SafeAt.IsZero() && left > 0 && left < v.every {
		return max(left+time.Second, time.Second)
	}
	return v.every
}

// reached describes the state of the name, and reports whether it is the state of --until.
func (v *watcher) reached(f *explain.Facts, r *report.Report) (string, bool) {
	// Authoritative servers come first. A resolver cannot have what they do not serve.
	if missing := explain.Missing(f); missing != "" {
		return "not yet on the authoritative servers: " + missing, false
	}
	if v.until == "authoritative" {
		return fmt.Sprintf("every server of the zone has the expected records of %s", words.Name(f.Name)), true
	}
	old, failing := inState(r, safeat.Old, safeat.Negative, safeat.Stale), inState(r, safeat.Failed)
	switch {
	case len(old) > 0:
		return fmt.Sprintf("older answers: %s; %s", strings.Join(old, ", "), safeTime(r)), false
	// A resolver that fails may still have the old answer, and would give it when it recovers (RFC 8767).
	case len(failing) > 0:
		return fmt.Sprintf("no older answers, but resolvers fail: %s", strings.Join(failing, ", ")), false
	case r.Safe == nil || time.Now().Before(r.SafeAt):
		return fmt.Sprintf("no older answers; resolvers that were not queried are safe at %s",
			r.SafeAt.UTC().Format(time.DateTime+" UTC")), false
	}
	return fmt.Sprintf("%s is safe. %s", words.Name(f.Name), r.Safe.Summary), true
}

// safeTime describes until when resolvers may have older answers.
func safeTime(r *report.Report) string {
	if r.Safe != nil && r.Safe.Verdict == safeat.Undetermined {
		return "it is unknown when the name is safe"
	}
	return "safe at " + r.SafeAt.UTC().Format(time.DateTime+" UTC")
}

// inState returns the resolvers in one of the states, without those that have no vote.
func inState(r *report.Report, states ...safeat.State) (out []string) {
	for _, c := range r.Caches {
		if !c.NoVote && slices.Contains(states, c.State) {
			out = append(out, c.Resolver)
		}
	}
	return out
}

// stopError returns the error of a watch that ended before the name reached the state. r is the last report, or nil.
func (v *watcher) stopError(cmd *cobra.Command, r *report.Report) error {
	// No report: nothing is known, so the status is unknown and not failure.
	if r == nil {
		return &cli.Failure{Code: cli.ExitUnknown, Text: "the deadline passed before the first scan was complete"}
	}
	// Ctrl-C ends the context of the command; the deadline ends only the context of the watch.
	if cmd.Context().Err() != nil {
		return &cli.Failure{Code: cli.ExitUnknown, Text: "interrupted; not " + v.until + " at the last scan"}
	}
	return cli.Fail(fmt.Sprintf("nameplane compare %s%s shows why", v.source.labFlag(), words.Name(r.Target)),
		"not %s before the deadline; %s", v.until, v.lastState)
}
