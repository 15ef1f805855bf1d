package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/source"
	"github.com/nameplane/nameplane/internal/rr"
)

// reportCommand is what scan, analyze and compare share: they ask, or replay a record, and print a report.
type reportCommand struct {
	kind   explain.Kind
	source sourceFlags
	out    string
	all    bool
	short  bool
	failOn string
	record string
	replay string
	quiet  bool
}

const reportLong = `

Exit status: 0 all is well, 1 there are warnings, 2 it does not work, there are errors,
or resolvers have older answers (--fail-on says from which severity on), 3 could not
tell, 4 the command was not understood.

Addresses of IPv6, or IPv4, are not asked from a machine that has no route for them; the
last line of the report says so.

With --lab everything is asked in the synthetic internet of "nameplane lab up", and no
packet leaves this machine. --record FILE keeps all that was asked and answered;
--replay FILE makes the same report of it again, without asking anybody.`

func (l *reportCommand) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&l.out, "output", "o", "text", "form of the output: "+strings.Join(report.Formats, ", ")+"; ics is the plan as a calendar")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(report.Formats, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&l.all, "all", false, "show checks that passed and all evidence, too")
	f.BoolVar(&l.short, "short", false, "show the first line only")
	f.StringVar(&l.failOn, "fail-on", "error", "exit with 2 from this `SEVERITY` on: critical, error, warning, notice or info")
	f.StringVar(&l.record, "record", "", "write everything that was asked and answered to this `FILE`")
	f.StringVar(&l.replay, "replay", "", "ask nobody: judge what --record wrote to this `FILE`")
	f.BoolVarP(&l.quiet, "quiet", "q", false, "show no progress")
	l.source.addFlags(c)
}

// check validates the flags before anything is sent.
func (l *reportCommand) check(cmd *cobra.Command) error {
	if !slices.Contains(report.Formats, l.out) {
		return cli.Usage(cmd, "%q is not a form of output; there are %s", l.out, strings.Join(report.Formats, ", "))
	}
	severities := []explain.Severity{explain.Critical, explain.Error, explain.Warning, explain.Notice, explain.Info}
	if !slices.Contains(severities, explain.Severity(l.failOn)) {
		return cli.Usage(cmd, "%q is not a severity; there are critical, error, warning, notice and info", l.failOn)
	}
	if l.replay != "" && l.record != "" {
		return cli.Usage(cmd, "--record and --replay exclude each other")
	}
	return nil
}

// run prints the report of the arguments, and sets the exit status by it.
func (l *reportCommand) run(cmd *cobra.Command, args []string) error {
	if err := l.check(cmd); err != nil {
		return err
	}
	facts, err := l.facts(cmd, args)
	if err != nil {
		return err
	}
	r := report.Make(facts, check.Run(facts))
	if err := l.show(cmd.OutOrStdout(), r); err != nil {
		return err
	}
	if code := r.Exit(explain.Severity(l.failOn)); code != 0 {
		return &cli.Failure{Code: code}
	}
	return nil
}

func (l *reportCommand) facts(cmd *cobra.Command, args []string) (*explain.Facts, error) {
	if l.replay != "" {
		return l.recorded(cmd, args)
	}
	if len(args) == 0 {
		return nil, cli.Usage(cmd, "a name is missing: %s", cmd.UseLine())
	}
	input, types, err := splitTypes(cmd, args)
	if err != nil {
		return nil, err
	}
	show := newSteps(cmd.ErrOrStderr(), l.quiet)
	defer show.end()
	g, err := l.source.gatherer(cmd)
	if err != nil {
		return nil, err
	}
	g.Progress = show.event
	facts, err := source.Ask(cmd.Context(), g, l.kind, input, types)
	if err != nil {
		return nil, asUsage(cmd, err)
	}
	if l.record == "" {
		return facts, nil
	}
	return facts, writeFacts(l.record, facts)
}

// asUsage makes an error about the name or type a usage error.
func asUsage(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*gather.InputError](err); ok {
		return cli.Usage(cmd, "%s", e)
	}
	return err
}

// recorded reads a record. It refuses an argument that is not the name of the record.
func (l *reportCommand) recorded(cmd *cobra.Command, args []string) (*explain.Facts, error) {
	f, err := os.Open(l.replay)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	facts, err := gather.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.replay, err)
	}
	if facts.Kind != l.kind {
		return nil, cli.Fail(fmt.Sprintf("nameplane %s --replay %s", facts.Kind, l.replay), "%s is a record of %q, not of %q", l.replay, facts.Kind, l.kind)
	}
	if len(args) > 0 {
		if name, _, err := gather.ParseInput(args[0]); err != nil || name != facts.Name {
			return nil, cli.Usage(cmd, "%s is a record of %s, not of %s", l.replay, facts.Name, args[0])
		}
	}
	return facts, nil
}

// writeFacts writes a record atomically.
func writeFacts(path string, facts *explain.Facts) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".record-*")
	if err != nil {
		return err
	}
	err = errors.Join(gather.Save(f, facts), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func (l *reportCommand) show(w io.Writer, r *report.Report) error {
	if l.short {
		_, err := fmt.Fprintln(w, cli.Printable(r.Summary))
		return err
	}
	_, plain := os.LookupEnv("NO_COLOR")
	err := r.Write(w, l.out, report.TextOptions{Color: cli.IsTerminal(w) && !plain, All: l.all})
	if errors.Is(err, report.ErrNoPlan) {
		return &cli.Failure{Code: cli.ExitUnknown, Text: err.Error(),
			Hint: fmt.Sprintf("analyze NAME has a plan for its record, and --plan-ns for a move to other nameservers; "+
				"nameplane %s %s%s tells more", r.Kind, l.source.again(), r.Target)}
	}
	return err
}

// splitTypes separates the name from the types, in any order, as dig does.
func splitTypes(cmd *cobra.Command, args []string) (input string, types []rr.Type, err error) {
	for _, a := range args {
		if t, err := rr.ParseType(a); err == nil && !strings.Contains(a, ".") {
			types = append(types, t)
			continue
		}
		if input != "" {
			return "", nil, cli.Usage(cmd, "%q and %q: one name at a time", input, a)
		}
		input = a
	}
	if input == "" {
		return "", nil, cli.Usage(cmd, "a name is missing: %s", cmd.UseLine())
	}
	return input, types, nil
}

// steps shows the stage of a scan on a terminal.
type steps struct {
	w     io.Writer
	on    bool
	shown bool
}

func newSteps(w io.Writer, quiet bool) *steps { return &steps{w: w, on: !quiet && cli.IsTerminal(w)} }

func (s *steps) event(e gather.Event) {
	if !s.on {
		return
	}
	text := source.StageText(e.Stage)
	if e.Total > 0 {
		text += fmt.Sprintf(", %d of %d", e.Done, e.Total)
	}
	s.shown = true
	fmt.Fprintf(s.w, "\r%s: %d queries %s\x1b[K", cli.Printable(text), e.Queries, cli.Printable(e.Subject))
}

// end clears the line.
func (s *steps) end() {
	if s.shown {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
}
