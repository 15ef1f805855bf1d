// Command egress measures the egress firewall by name, on a real API server, a real OVN and real packets: the figures
// in docs/bench-egress.md. Start with run in main.go, which runs the measurements one after the other.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// figure is one promise and its measured result.
type figure struct {
	title string
	want  string
	rows  [][2]string
	met   bool
	// verdict replaces met if a figure was measured with several methods.
	verdict string
	took    time.Duration
}

func (f *figure) row(name, format string, args ...any) {
	f.rows = append(f.rows, [2]string{name, fmt.Sprintf(format, args...)})
}

// measure creates a figure. With quick it takes a part of the time or number, and the rows say so.
type measure struct {
	name string
	run  func(t cluster.T, o options) figure
}

type options struct {
	quick bool
	bin   string // folder of our programs
	ovn   string // version of OVN
}

// scaled returns n, or hurry in a quick run.
func (o options) scaled(n, hurry int) int {
	if o.quick {
		return hurry
	}
	return n
}

// long returns d, or hurry in a quick run.
func (o options) long(d, hurry time.Duration) time.Duration {
	if o.quick {
		return hurry
	}
	return d
}

var measures = []measure{
	{"first", firstPackets},
	{"local", localPackets},
	{"burst", burst},
	{"cost", cost},
	{"streams", streams},
	{"writes", writes},
	{"refresh", refresh},
	{"memory", memory},
	{"judges", judges},
	{"schedules", schedules},
}

func main() {
	var o options
	only := flag.String("only", "", "comma-separated `names` of figures; all without it")
	write := flag.String("write", "", "`file` for the document")
	flag.BoolVar(&o.quick, "quick", false, "take minutes instead of an hour")
	flag.StringVar(&o.bin, "bin", "", "`folder` with nameplane-egress and nameplane-coredns; built without it")
	flag.Parse()
	debug.SetGCPercent(1000) // the pods and the authority are in this process: garbage collection would disturb them
	if err := run(o, *only, *write); err != nil {
		fmt.Fprintln(os.Stderr, "egress:", err)
		os.Exit(1)
	}
}

// run measures one figure after the other, never two at once: they would share the cores and falsify each other. It
// returns an error if a target was missed, so that scripts notice.
func run(o options, only, write string) error {
	if err := cluster.Missing(); err != nil {
		return err
	}
	var err error
	if o.ovn, err = cluster.Version(); err != nil {
		return err
	}
	if o.bin == "" {
		dir, err := os.MkdirTemp("", "egress-bin-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := rig.Build(dir); err != nil {
			return err
		}
		o.bin = dir
	}
	var done []figure
	var missed []string
	for _, m := range measures {
		if only != "" && !slices.Contains(strings.Split(only, ","), m.name) {
			continue
		}
		f, err := m.figure(o)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Print(f.markdown())
		done = append(done, f)
		if !f.met {
			missed = append(missed, m.name)
		}
	}
	if write != "" {
		if err := os.WriteFile(write, []byte(document(done, o)), 0o644); err != nil {
			return err
		}
	}
	if missed != nil {
		return fmt.Errorf("missed: %s", strings.Join(missed, ", "))
	}
	return nil
}

// figure runs one measurement, on its own system, which ends with it.
func (m measure) figure(o options) (f figure, err error) {
	begun := time.Now()
	err = cluster.Run(func(line string) { fmt.Fprintf(os.Stderr, "%s: %s\n", m.name, line) },
		func(t cluster.T) { f = m.run(t, o) })
	f.took = time.Since(begun)
	return f, err
}
