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

const watchLong = `Look at a name again and again until it is as wanted:

  authoritative  every server of the zone has the records that --expect names, or,
                 without it, has some, and the same
  safe           and no resolver can have an older answer any more. What the first look
                 sees already is taken as changed just then: caches that nobody looked
                 into may have older records for as long as the TTL, which is waited for

A line is printed when something changed. The authority is asked every time; resolvers
are from when all of its servers have what is waited for, as they would remember what
they are told before. So who watches from before the change must say what to --expect:
without it, what is there is what is wanted, and resolvers are asked for that.

Exit status: 0 it is as wanted, 2 it was not before --deadline, with what it waited for,
3 could not tell, or was interrupted, 4 the command was not understood.`

// watcher repeats a scan until the name is as wanted.
type watcher struct {
	source   sourceFlags
	until    string
	every    time.Duration
	deadline time.Duration
	quiet    bool

	last string // the state at the last scan
}

func newWatchCommand() *cobra.Command {
	v := &watcher{}
	c := &cobra.Command{
		Use:   "watch NAME [TYPE]...",
		Short: "Wait until everyone sees the new answer",
		Long:  watchLong,
		Example: `  nameplane watch www.example.com --expect A=192.0.2.1 --until safe
  nameplane watch www.example.com --until authoritative --deadline 2m`,
		Args: cli.Args(1, -1),
		RunE: v.run,
	}
	f := c.Flags()
	f.StringVar(&v.until, "until", "safe", "what to wait for: safe or authoritative")
	f.DurationVar(&v.every, "every", 30*time.Second, "look again after this `TIME`, at least 5s")
	f.DurationVar(&v.deadline, "deadline", time.Hour, "give up after this `TIME`")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "print the last line only")
	v.source.addFlags(c)
	v.source.addNameFlags(c)
	v.source.addCacheFlags(c)
	_ = f.MarkHidden("change") // goes without saying
	return c
}

func (v *watcher) run(cmd *cobra.Command, args []string) error {
	input, types, err := splitTypes(cmd, args)
	if err != nil {
		return err
	}
	if v.until != "safe" && v.until != "authoritative" {
		return cli.Usage(cmd, "--until %s: must be safe or authoritative", v.until)
	}
	if v.every < 5*time.Second && v.source.Lab == "" {
		return cli.Usage(cmd, "--every %s is less than 5s, too often for other people's servers", v.every)
	}
	g, err := v.source.gatherer(cmd)
	if err != nil {
		return err
	}
	v.begin(g)
	ctx, cancel := context.WithTimeout(cmd.Context(), v.deadline)
	defer cancel()
	return v.watch(ctx, cmd, g, input, types)
}

// begin sets the options for someone who waits for a change.
func (v *watcher) begin(g *gather.Gatherer) {
	g.Options.NoSimilar = true // the user knows that the name may not exist yet
	g.Options.Change = true
	g.Options.Await = true
}

// watch scans until the name is as wanted, or ctx ends.
func (v *watcher) watch(ctx context.Context, cmd *cobra.Command, g *gather.Gatherer, input string, types []rr.Type) error {
	var r *report.Report
	for {
		facts, err := g.Compare(ctx, input, types)
		if ctx.Err() != nil {
			return v.late(cmd, r)
		}
		if err != nil {
			return asUsage(cmd, err)
		}
		g.Options.Past = explain.Remember(g.Options.Past, explain.PastOf(facts))
		r = report.Make(facts, check.Run(facts))
		words, ok := v.reached(facts, r)
		if ok {
			return cli.Say(cmd, "%s", words)
		}
		if words != v.last && !v.quiet {
			if err := cli.Say(cmd, "%s  %s", time.Now().UTC().Format(time.TimeOnly), words); err != nil {
				return err
			}
		}
		v.last = words
		select {
		case <-ctx.Done():
			return v.late(cmd, r)
		case <-time.After(v.pause(r)):
		}
	}
}

// pause returns the time until the next scan: until the name may be safe, but at most v.every.
func (v *watcher) pause(r *report.Report) time.Duration {
	if left := time.Until(r.SafeAt); !r.SafeAt.IsZero() && left > 0 && left < v.every {
		return max(left+time.Second, time.Second)
	}
	return v.every
}

// reached reports whether the name is as wanted, and describes its state.
func (v *watcher) reached(f *explain.Facts, r *report.Report) (string, bool) {
	if missing := explain.Missing(f); missing != "" {
		return "not yet at the authority: " + missing, false
	}
	if v.until == "authoritative" {
		return fmt.Sprintf("%s is as wanted at every server of its zone", words.Name(f.Name)), true
	}
	late, failing := inState(r, safeat.Old, safeat.Negative, safeat.Stale), inState(r, safeat.Failed)
	switch {
	case len(late) > 0:
		return fmt.Sprintf("late: %s; %s", strings.Join(late, ", "), safeWords(r)), false
	case len(failing) > 0:
		return fmt.Sprintf("no resolver that was asked is late, but some fail: %s", strings.Join(failing, ", ")), false
	case r.Safe == nil || time.Now().Before(r.SafeAt):
		return fmt.Sprintf("no resolver that was asked is late; all others are safe at %s", r.SafeAt.UTC().Format(time.DateTime+" UTC")), false
	}
	return fmt.Sprintf("%s is safe. %s", words.Name(f.Name), r.Safe.Summary), true
}

// safeWords says until when resolvers may be late.
func safeWords(r *report.Report) string {
	if r.Safe != nil && r.Safe.Verdict == safeat.Undetermined {
		return "when it is safe cannot be told"
	}
	return "safe at " + r.SafeAt.UTC().Format(time.DateTime+" UTC")
}

// inState returns the resolvers in one of these states, except those that do not count.
func inState(r *report.Report, states ...safeat.State) (out []string) {
	for _, c := range r.Caches {
		if !c.NoVote && slices.Contains(states, c.State) {
			out = append(out, c.Resolver)
		}
	}
	return out
}

// late returns the error of a watch whose time is over.
func (v *watcher) late(cmd *cobra.Command, r *report.Report) error {
	if r == nil {
		return &cli.Failure{Code: cli.ExitUnknown, Text: "the time was over before the first look had ended"}
	}
	if cmd.Context().Err() != nil {
		return &cli.Failure{Code: cli.ExitUnknown, Text: "interrupted; it was not as wanted when last looked at"}
	}
	return cli.Fail(fmt.Sprintf("nameplane compare %s%s shows why", v.source.again(), words.Name(r.Target)),
		"not as wanted before the deadline; %s", v.last)
}
