package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/rr"
)

// look is what scan, analyze and compare have in common: whom to ask, and how to tell.
type look struct {
	kind   explain.Kind
	sight  sight
	out    string
	all    bool
	short  bool
	failOn string
	record string
	replay string
	quiet  bool
}

const lookLong = `

Exit status: 0 all is well, 1 there are warnings, 2 it does not work, there are errors,
or resolvers have older answers (--fail-on says from which severity on), 3 could not
tell, 4 the command was not understood.

Addresses of IPv6, or IPv4, are not asked from a machine that has no route for them; the
last line of the report says so.

With --lab everything is asked in the synthetic internet of "nameplane lab up", and no
packet leaves this machine. --record FILE keeps all that was asked and answered;
--replay FILE makes the same report of it again, without asking anybody.`

func (l *look) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&l.out, "output", "o", "text", "form of the output: "+strings.Join(report.Formats, ", ")+"; ics is the plan as a calendar")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(report.Formats, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&l.all, "all", false, "show checks that passed and all evidence, too")
	f.BoolVar(&l.short, "short", false, "show the first line only")
	f.StringVar(&l.failOn, "fail-on", "error", "exit with 2 from this `SEVERITY` on: critical, error, warning, notice or info")
	f.StringVar(&l.record, "record", "", "write everything that was asked and answered to this `FILE`")
	f.StringVar(&l.replay, "replay", "", "ask nobody: judge what --record wrote to this `FILE`")
	f.BoolVarP(&l.quiet, "quiet", "q", false, "show no progress")
	l.sight.addFlags(c)
}

// check finds what is wrong with the flags before anybody is asked.
func (l *look) check(cmd *cobra.Command) error {
	if !slices.Contains(report.Formats, l.out) {
		return usage(cmd, "%q is not a form of output; there are %s", l.out, strings.Join(report.Formats, ", "))
	}
	severities := []explain.Severity{explain.Critical, explain.Error, explain.Warning, explain.Notice, explain.Info}
	if !slices.Contains(severities, explain.Severity(l.failOn)) {
		return usage(cmd, "%q is not a severity; there are critical, error, warning, notice and info", l.failOn)
	}
	if l.replay != "" && l.record != "" {
		return usage(cmd, "--record and --replay exclude each other")
	}
	return nil
}

// run asks, or reads what was asked, and shows the report.
func (l *look) run(cmd *cobra.Command, args []string) error {
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
		return &failure{code: code}
	}
	return nil
}

func (l *look) facts(cmd *cobra.Command, args []string) (*explain.Facts, error) {
	if l.replay != "" {
		return l.recorded(cmd, args)
	}
	if len(args) == 0 {
		return nil, usage(cmd, "a name is missing: %s", cmd.UseLine())
	}
	input, types, err := splitTypes(cmd, args)
	if err != nil {
		return nil, err
	}
	g, done, err := l.sight.gatherer(cmd, newSteps(cmd.ErrOrStderr(), l.quiet))
	if err != nil {
		return nil, err
	}
	defer done()
	facts, err := l.ask(cmd.Context(), g, input, types)
	if err != nil {
		return nil, asUsage(cmd, err)
	}
	if l.record == "" {
		return facts, nil
	}
	return facts, writeFacts(l.record, facts)
}

func (l *look) ask(ctx context.Context, g *gather.Gatherer, input string, types []rr.Type) (*explain.Facts, error) {
	switch l.kind {
	case explain.Scan:
		return g.Scan(ctx, input)
	case explain.Analyze:
		return g.Analyze(ctx, input, types)
	default:
		return g.Compare(ctx, input, types)
	}
}

// asUsage is err, and a command that was not understood if there is no such name or type.
func asUsage(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*gather.InputError](err); ok {
		return usage(cmd, "%s", e)
	}
	return err
}

// recorded reads facts. A name beside the file is refused if it is another one: the report would be of the wrong name.
func (l *look) recorded(cmd *cobra.Command, args []string) (*explain.Facts, error) {
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
		return nil, fail(fmt.Sprintf("nameplane %s --replay %s", facts.Kind, l.replay), "%s is a record of %q, not of %q", l.replay, facts.Kind, l.kind)
	}
	if len(args) > 0 {
		if name, _, err := gather.ParseInput(args[0]); err != nil || name != facts.Name {
			return nil, usage(cmd, "%s is a record of %s, not of %s", l.replay, facts.Name, args[0])
		}
	}
	return facts, nil
}

// writeFacts writes a record whole or not at all.
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

func (l *look) show(w io.Writer, r *report.Report) error {
	if l.short {
		_, err := fmt.Fprintln(w, printable(r.Summary))
		return err
	}
	_, plain := os.LookupEnv("NO_COLOR")
	err := r.Write(w, l.out, report.TextOptions{Color: isTerminal(w) && !plain, All: l.all})
	if errors.Is(err, report.ErrNoPlan) {
		return &failure{code: exitUnknown, text: err.Error(), hint: fmt.Sprintf("analyze NAME has a plan for its record, and --plan-ns for a move to other nameservers; nameplane %s %s%s tells more", r.Kind, l.sight.again(), r.Target)}
	}
	return err
}

// splitTypes takes the name and the types out of the arguments, in any order, as dig does.
func splitTypes(cmd *cobra.Command, args []string) (input string, types []rr.Type, err error) {
	for _, a := range args {
		if t, err := rr.ParseType(a); err == nil && !strings.Contains(a, ".") {
			types = append(types, t)
			continue
		}
		if input != "" {
			return "", nil, usage(cmd, "%q and %q: one name at a time", input, a)
		}
		input = a
	}
	if input == "" {
		return "", nil, usage(cmd, "a name is missing: %s", cmd.UseLine())
	}
	return input, types, nil
}

// steps shows on a terminal what is being asked.
type steps struct {
	w     io.Writer
	on    bool
	shown bool
}

func newSteps(w io.Writer, quiet bool) *steps { return &steps{w: w, on: !quiet && isTerminal(w)} }

var stageWords = map[string]string{gather.StageWalk: "from the root to the name", gather.StageServers: "the conduct of the servers", gather.StageAnswers: "what each server answers",
	gather.StageSettle: "whether servers that are behind catch up", gather.StageRegistration: "at the registry", gather.StageResolvers: "what resolvers hold"}

func (s *steps) event(e gather.Event) {
	if !s.on {
		return
	}
	text := cmp.Or(stageWords[e.Stage], e.Stage)
	if e.Total > 0 {
		text += fmt.Sprintf(", %d of %d", e.Done, e.Total)
	}
	s.shown = true
	fmt.Fprintf(s.w, "\r%s: %d queries %s\x1b[K", printable(text), e.Queries, printable(e.Subject))
}

// end wipes the line.
func (s *steps) end() {
	if s.shown {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
}
