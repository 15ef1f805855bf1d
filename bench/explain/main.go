// Command explain measures scan, analyze, compare and service: in the lab, over trees with known faults, and against
// real resolvers.
//
// It prints the tables of docs/bench-explain.md. Start with measures in this file: lab.go measures the program in the
// lab, and tests.go runs tests and turns their output into tables.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/test/server"
)

// figure is one target and its measured result.
type figure struct {
	title string
	want  string
	head  []string
	rows  [][]string
	met   bool
	took  time.Duration
}

func (f *figure) row(cells ...string) { f.rows = append(f.rows, cells) }

// markdown formats the figure as a section of docs/bench-explain.md.
func (f *figure) markdown() string {
	var b strings.Builder
	verdict := "met"
	if !f.met {
		verdict = "missed"
	}
	fmt.Fprintf(&b, "## %s\n\n| wanted | result | time of the measurement |\n|---|---|---|\n| %s | **%s** | %v |\n\n",
		f.title, f.want, verdict, f.took.Round(time.Second))
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(f.head)
	b.WriteString(strings.Repeat("|---", len(f.head)) + "|\n")
	for _, r := range f.rows {
		line(r)
	}
	return b.String() + "\n"
}

// options are the command-line flags.
type options struct {
	bin                         string // path of nameplane
	times, healthy, cases, flip int
}

// measure is a function that produces a figure.
type measure struct {
	name string
	run  func(options) (figure, error)
}

var measures = []measure{{"lab", measureLab}, {"service", measureService}, {"corpus", corpus}, {"flips", flips},
	{"watch", watch}, {"harm", harm}, {"ranges", ranges}}

func main() {
	var o options
	only := flag.String("only", "",
		"comma-separated `names` of figures: lab, service, corpus, flips, watch, harm, ranges; all without it")
	flag.StringVar(&o.bin, "bin", "", "the `program` nameplane; built without it")
	flag.IntVar(&o.times, "times", 3, "`number` of runs of each command for each domain of the lab")
	flag.IntVar(&o.healthy, "healthy", 500, "trees without faults")
	flag.IntVar(&o.cases, "cases", 1000, "trees with faults")
	flag.IntVar(&o.flip, "flips", 100, "changes to predict and observe at real resolvers")
	flag.Parse()
	if err := run(o, *only); err != nil {
		fmt.Fprintln(os.Stderr, "explain:", err)
		os.Exit(1)
	}
}

// run prints each figure. It returns an error if a target was missed, so that scripts notice.
func run(o options, only string) error {
	if o.bin == "" {
		var err error
		if o.bin, err = server.Build(); err != nil {
			return err
		}
	}
	var missed []string
	for _, m := range measures {
		if only != "" && !slices.Contains(strings.Split(only, ","), m.name) {
			continue
		}
		begun := time.Now()
		f, err := m.run(o)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		f.took = time.Since(begun)
		fmt.Print(f.markdown())
		if !f.met {
			missed = append(missed, m.name)
		}
	}
	if missed != nil {
		return fmt.Errorf("missed: %s", strings.Join(missed, ", "))
	}
	return nil
}

// quantile returns the value below which the given part of all values is. It is always a value that was measured, and
// never a mean of two.
func quantile[T int | time.Duration](all []T, part float64) T {
	if len(all) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(all))
	return s[min(int(part*float64(len(s))), len(s)-1)]
}
