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

// reportCommand is the common part of scan, analyze and compare. They send queries, or replay a recording, and print a
// report.
type reportCommand struct {
	kind   explain.Kind
	source sourceFlags
	out    string
	all    bool
	short  bool
	failOn string // lowest severity with exit status 2
	record string // file to write the Facts to
	replay string // file to read the Facts from
	quiet  bool
}

const reportLong = `

Exit status: 0 no problem was found, 1 there are warnings, 2 it does not work, there are
errors, or resolvers have older answers (--fail-on sets the severity), 3 unknown, 4 usage
error.

A machine without a route for IPv6 or IPv4 does not query servers over that protocol. The
last line of the report says so.

With --lab all queries go to the simulated internet of "nameplane lab up", and no packet
leaves this machine. --record FILE writes all queries and answers to a file. --replay
FILE prints the same report from that file, without sending queries.`

// addFlags adds the flags of all reports. Their -o has more formats than that of other commands, because CI systems and
// calendars read reports too.
func (l *reportCommand) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&l.out, "output", "o", "text",
		"output format: "+strings.Join(report.Formats, ", ")+"; ics is the plan as a calendar")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(report.Formats, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&l.all, "all", false, "also show the checks that passed, and all evidence")
	f.BoolVar(&l.short, "short", false, "show only the first line")
	f.StringVar(&l.failOn, "fail-on", "error",
		"exit with 2 for this `SEVERITY` or a higher one: critical, error, warning, notice or info")
	f.StringVar(&l.record, "record", "", "write all queries and answers to this `FILE`")
	f.StringVar(&l.replay, "replay", "", "send no queries: read the answers that --record wrote to this `FILE`")
	f.BoolVarP(&l.quiet, "quiet", "q", false, "show no progress")
	l.source.addFlags(c)
}

// check validates the flags before anything is sent.
func (l *reportCommand) check(cmd *cobra.Command) error {
	if !slices.Contains(report.Formats, l.out) {
		return cli.Usage(cmd, "%q is not an output format; the formats are %s", l.out, strings.Join(report.Formats, ", "))
	}
	severities := []explain.Severity{explain.Critical, explain.Error, explain.Warning, explain.Notice, explain.Info}
	if !slices.Contains(severities, explain.Severity(l.failOn)) {
		return cli.Usage(cmd, "%q is not a severity; the severities are critical, error, warning, notice and info", l.failOn)
	}
	// A recording of a replay would be a copy of the file, but users would believe that it is newer.
	if l.replay != "" && l.record != "" {
		return cli.Usage(cmd, "--record and --replay cannot be used together")
	}
	return nil
}

// run prints the report for the arguments, and returns a Failure with the exit status of the report.
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
	// The report says everything already: a Failure without text sets only the exit status.
	if code := r.Exit(explain.Severity(l.failOn)); code != 0 {
		return &cli.Failure{Code: code}
	}
	return nil
}

// facts returns the Facts for the report, from queries or from a recording.
func (l *reportCommand) facts(cmd *cobra.Command, args []string) (*explain.Facts, error) {
	if l.replay != "" {
		return l.loadRecording(cmd, args)
	}
	// cobra accepts no argument because of --replay, so the check is here.
	if len(args) == 0 {
		return nil, cli.Usage(cmd, "a name is missing: %s", cmd.UseLine())
	}
	input, types, err := splitTypes(cmd, args)
	if err != nil {
		return nil, err
	}
	progress := newProgressLine(cmd.ErrOrStderr(), l.quiet)
	defer progress.end()
	g, err := l.source.gatherer(cmd)
	if err != nil {
		return nil, err
	}
	g.Progress = progress.show
	facts, err := source.Ask(cmd.Context(), g, l.kind, input, types)
	if err != nil {
		return nil, asUsage(cmd, err)
	}
	if l.record == "" {
		return facts, nil
	}
	return facts, writeAll(l.record, []*explain.Facts{facts})
}

// asUsage converts an error about the name or type to a usage error.
func asUsage(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*gather.InputError](err); ok {
		return cli.Usage(cmd, "%s", e)
	}
	return err
}

// loadRecording reads the Facts of a recording. It refuses an argument that is not the name in the recording.
func (l *reportCommand) loadRecording(cmd *cobra.Command, args []string) (*explain.Facts, error) {
	f, err := os.Open(l.replay)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	facts, err := gather.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.replay, err)
	}
	// A recording of scan lacks the answers that compare needs: its report would say nothing about resolvers.
	if facts.Kind != l.kind {
		return nil, cli.Fail(fmt.Sprintf("nameplane %s --replay %s", facts.Kind, l.replay),
			"%s is a recording of %q, not of %q", l.replay, facts.Kind, l.kind)
	}
	if len(args) > 0 {
		if name, _, err := gather.ParseInput(args[0]); err != nil || name != facts.Name {
			return nil, cli.Usage(cmd, "%s is a recording of %s, not of %s", l.replay, facts.Name, args[0])
		}
	}
	return facts, nil
}

// writeAll writes a recording atomically.
func writeAll(path string, all []*explain.Facts) error {
	// The temporary file is in the same directory, because a rename does not work across file systems.
	f, err := os.CreateTemp(filepath.Dir(path), ".record-*")
	if err != nil {
		return err
	}
	for _, facts := range all {
		err = errors.Join(err, gather.Save(f, facts))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// show writes the report to w in the chosen format.
func (l *reportCommand) show(w io.Writer, r *report.Report) error {
	if l.short {
		_, err := fmt.Fprintln(w, cli.Printable(r.Summary))
		return err
	}
	// https://no-color.org: the variable counts if it is set, whatever its value.
	_, plain := os.LookupEnv("NO_COLOR")
	err := r.Write(w, l.out, report.TextOptions{Color: cli.IsTerminal(w) && !plain, All: l.all})
	if errors.Is(err, report.ErrNoPlan) {
		return &cli.Failure{Code: cli.ExitUnknown, Text: err.Error(),
			Hint: fmt.Sprintf("\"analyze NAME\" plans a record change, and --plan-ns a move to other nameservers; "+
				"nameplane %s %s%s shows the report", r.Kind, l.source.labFlag(), r.Target)}
	}
	return err
}

// splitTypes separates the name from the types, in any order, as dig does.
func splitTypes(cmd *cobra.Command, args []string) (input string, types []rr.Type, err error) {
	for _, a := range args {
		// A top-level domain can have the name of a type, such as "mx". Write it with its dot: "mx.".
		if t, err := rr.ParseType(a); err == nil && !strings.Contains(a, ".") {
			types = append(types, t)
			continue
		}
		if input != "" {
			return "", nil, cli.Usage(cmd, "%q and %q: only one name is allowed", input, a)
		}
		input = a
	}
	if input == "" {
		return "", nil, cli.Usage(cmd, "a name is missing: %s", cmd.UseLine())
	}
	return input, types, nil
}

// progressLine shows the stage of a scan in one line of a terminal.
type progressLine struct {
	w       io.Writer
	enabled bool
	shown   bool
}

// newProgressLine returns a line for standard error, so that users see the progress of a report that they redirect.
func newProgressLine(w io.Writer, quiet bool) *progressLine {
	return &progressLine{w: w, enabled: !quiet && cli.IsTerminal(w)}
}

// show writes only on a terminal: in a log, each update would stay.
func (s *progressLine) show(e gather.Event) {
	if !s.enabled {
		return
	}
	text := source.StageText(e.Stage)
	if e.Total > 0 {
		text += fmt.Sprintf(", %d of %d", e.Done, e.Total)
	}
	s.shown = true
	// Names come from the servers that are scanned. Printable removes control sequences for the terminal.
	fmt.Fprintf(s.w, "\r%s: %d queries %s\x1b[K", cli.Printable(text), e.Queries, cli.Printable(e.Subject))
}

// end clears the line.
func (s *progressLine) end() {
	if s.shown {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
}
