package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

const watchLong = `Look at a name again and again until it is as wanted:

  authoritative  every server of the zone has the records that --expect names, or,
                 without it, has some, and the same
  safe           and no resolver can have an older answer any more

A line is printed when something changed. The authority is asked every time, resolvers
only while it has the name.

Exit status: 0 it is as wanted, 2 it was not before --deadline; the resolvers that were
late then are named, 3 could not tell.`

// vigil is a look that is repeated.
type vigil struct {
	sight    sight
	until    string
	every    time.Duration
	deadline time.Duration
	quiet    bool

	last string // what was printed last
}

func newWatchCommand() *cobra.Command {
	v := &vigil{}
	c := &cobra.Command{
		Use:   "watch NAME [TYPE]...",
		Short: "Wait until everyone sees the new answer",
		Long:  watchLong,
		Example: `  nameplane watch www.example.com --expect A=192.0.2.1 --until safe
  nameplane watch www.example.com --until authoritative --deadline 2m`,
		Args: between(1, -1),
		RunE: v.run,
	}
	f := c.Flags()
	f.StringVar(&v.until, "until", "safe", "what to wait for: safe or authoritative")
	f.DurationVar(&v.every, "every", 30*time.Second, "look again after this `TIME`, at least 5s")
	f.DurationVar(&v.deadline, "deadline", time.Hour, "give up after this `TIME`")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "print the last line only")
	v.sight.addFlags(c)
	v.sight.addNameFlags(c)
	v.sight.addCacheFlags(c)
	return c
}

func (v *vigil) run(cmd *cobra.Command, args []string) error {
	input, types, err := splitTypes(cmd, args)
	if err != nil {
		return err
	}
	if v.until != "safe" && v.until != "authoritative" {
		return usage(cmd, "--until %s: must be safe or authoritative", v.until)
	}
	if v.every < 5*time.Second && v.sight.lab == "" {
		return usage(cmd, "--every %s is less than 5s, too often for other people's servers", v.every)
	}
	g, done, err := v.sight.gatherer(cmd, newSteps(cmd.ErrOrStderr(), true))
	if err != nil {
		return err
	}
	defer done()
	g.Options.NoNear = true // who waits for a name knows that it does not exist yet
	ctx, cancel := context.WithTimeout(cmd.Context(), v.deadline)
	defer cancel()
	return v.watch(ctx, cmd, g, input, types)
}

// watch looks until it is as wanted, or ctx ends.
func (v *vigil) watch(ctx context.Context, cmd *cobra.Command, g *gather.Gatherer, input string, types []rr.Type) error {
	var r *report.Report
	for {
		facts, err := g.Compare(ctx, input, types)
		if ctx.Err() != nil {
			return v.late(cmd, r)
		}
		if err != nil {
			return err
		}
		g.Options.Past = append([]explain.Past{explain.PastOf(facts)}, g.Options.Past[:min(len(g.Options.Past), 20)]...)
		r = report.Make(facts, check.Run(facts))
		words, ok := v.reached(facts, r)
		if ok {
			return say(cmd, "%s", words)
		}
		if words != v.last && !v.quiet {
			if err := say(cmd, "%s  %s", time.Now().UTC().Format(time.TimeOnly), words); err != nil {
				return err
			}
			v.last = words
		}
		select {
		case <-ctx.Done():
			return v.late(cmd, r)
		case <-time.After(v.pause(r)):
		}
	}
}

// pause is how long to wait: until something is due, but not longer than was asked for.
func (v *vigil) pause(r *report.Report) time.Duration {
	if left := time.Until(r.SafeAt); !r.SafeAt.IsZero() && left > 0 && left < v.every {
		return max(left+time.Second, time.Second)
	}
	return v.every
}

// reached reports whether it is as wanted, and says how it is.
func (v *vigil) reached(f *explain.Facts, r *report.Report) (string, bool) {
	if problem := authoritative(f); problem != "" {
		return "not yet at the authority: " + problem, false
	}
	if v.until == "authoritative" {
		return fmt.Sprintf("%s is as wanted at every server of its zone", bareName(f.Name)), true
	}
	late := lateOnes(r)
	switch {
	case len(late) > 0:
		return fmt.Sprintf("late: %s; %s", strings.Join(late, ", "), safeWords(r)), false
	case r.Safe == nil || time.Now().Before(r.SafeAt):
		return fmt.Sprintf("no resolver that was asked is late; all others are safe at %s", r.SafeAt.UTC().Format(time.DateTime+" UTC")), false
	}
	return fmt.Sprintf("%s is safe: everyone sees the new answer", bareName(f.Name)), true
}

// safeWords are until when late resolvers are waited for.
func safeWords(r *report.Report) string {
	if r.Safe != nil && r.Safe.Verdict == safeat.CannotTell {
		return "when it is safe cannot be told"
	}
	return "safe at " + r.SafeAt.UTC().Format(time.DateTime+" UTC")
}

func bareName(n explain.Name) string { return cmp.Or(strings.TrimSuffix(n.String(), "."), ".") }

// authoritative says what is missing at the authority; nothing if all of its servers have what is wanted.
func authoritative(f *explain.Facts) string {
	for _, o := range f.Outcomes {
		if o.Result == iterate.Unknown {
			return "its servers could not be asked"
		}
	}
	if !slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Result == iterate.Answer }) {
		return "there are no such records of " + bareName(f.Name)
	}
	for _, want := range f.Expect {
		i := slices.IndexFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Type == want.Type })
		if i < 0 || !slices.ContainsFunc(f.Outcomes[i].Sets, func(s explain.Set) bool { return s.Type == want.Type && contains(s.Data, want.Data) }) {
			return fmt.Sprintf("%s is not %s", want.Type, strings.Join(want.Data, ", "))
		}
	}
	for _, d := range explain.Differences(f) {
		// Where each server makes its own answer they never become the same; but if one was named, all must give it.
		wanted := slices.ContainsFunc(f.Expect, func(s explain.Set) bool { return s.Type.Type == d.Question.Type })
		if d.Manner == explain.Divided || d.Manner == explain.Computed && wanted {
			return fmt.Sprintf("its servers have different records of %s %s", bareName(explain.Name{Name: d.Question.Name}), d.Question.Type)
		}
	}
	return ""
}

func contains(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// lateOnes are the resolvers that do not know yet, of those that are counted.
func lateOnes(r *report.Report) (out []string) {
	for _, c := range r.Caches {
		if c.NoVote {
			continue
		}
		if c.State == safeat.Old || c.State == safeat.Negative || c.State == safeat.Stale {
			out = append(out, c.Resolver)
		}
	}
	return out
}

// late is the end of a vigil in vain.
func (v *vigil) late(cmd *cobra.Command, r *report.Report) error {
	if r == nil {
		return &failure{code: exitUnknown, text: "the time was over before the first look had ended"}
	}
	text := "not as wanted before the deadline"
	if late := lateOnes(r); len(late) > 0 {
		text += "; still late: " + strings.Join(late, ", ")
	}
	return fail(fmt.Sprintf("%s %s shows why", "nameplane compare", bareName(r.Target)), "%s", text)
}
