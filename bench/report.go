package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/nameplane/nameplane/test/peers"
)

const reportFile = "docs/bench.md"

// report is the text of a run. It is printed as it grows, and written to a file at the end.
type report struct {
	out  io.Writer
	text strings.Builder
}

// newReport begins with the machine, because only the ratios of a run are valid on another one.
func newReport(out io.Writer, quick bool) *report {
	r := &report{out: out}
	r.add("# Measured\n\nWritten by `make bench` on %s\n", machine())
	if quick {
		r.add("\nShort rounds (-quick): these figures show that the harness works, nothing more.\n")
	}
	return r
}

// add prints at once: a run takes half an hour, and its first tables are useful before its end.
func (r *report) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.text.WriteString(text)
	fmt.Fprint(r.out, text)
}

// note writes a paragraph of its own, for what a reader must know about the table next to it.
func (r *report) note(format string, args ...any) {
	r.add("\n"+format+"\n", args...)
}

// table writes a heading and a Markdown table. The first row contains the titles.
func (r *report) table(heading string, rows [][]string) {
	r.add("\n## %s\n\n", heading)
	for i, row := range rows {
		r.add("| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			r.add("|%s\n", strings.Repeat("---|", len(row)))
		}
	}
}

// write replaces the page only after a complete run, so that it never has tables of two builds.
func (r *report) write() error {
	return os.WriteFile(reportFile, []byte(r.text.String()), 0o644)
}

// servers writes the comparison over one transport. All ratios are to the better of Knot and NSD, the two fastest
// servers.
func (r *report) servers(transport string, servers []*peers.Server, results []figures) {
	var best figures
	for i, s := range servers {
		if s.Name != "Knot" && s.Name != "NSD" {
			continue
		}
		best.qps = max(best.qps, results[i].qps)
		if best.cpu == 0 || results[i].cpu < best.cpu {
			best.cpu = results[i].cpu
		}
	}
	rows := [][]string{{"server", "queries/s", "ratio to the better of Knot and NSD", "CPU µs/query",
		"CPU ratio to the better of the two", "memory MB", "lost %"}}
	for i, s := range servers {
		f := results[i]
		rows = append(rows, []string{s.Name, fmt.Sprintf("%.0f", f.qps), ratio(f.qps, best.qps),
			fmt.Sprintf("%.2f", f.cpu), ratio(f.cpu, best.cpu), fmt.Sprintf("%.0f", f.memory), fmt.Sprintf("%.2f", f.lost)})
	}
	r.disturbed(results)
	r.table(fmt.Sprintf("Queries over %s, %d names, server on one core, dnsperf on the other",
		strings.ToUpper(transport), zoneNames), rows)
}

// disturbed adds a warning when other programs used the machine in all rounds.
func (r *report) disturbed(results []figures) {
	for _, f := range results {
		if f.disturbed() {
			r.note("Other programs took %.0f %% of the machine in these rounds: the figures are too low, "+
				"run again when the machine is quiet.", f.others)
			return
		}
	}
}

// ratio returns a/b for a table, or "-" when b was not measured.
func ratio(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fx", a/b)
}

// machine describes the machine without identifying it.
func machine() string {
	var u syscall.Utsname
	kernel := "unknown"
	if err := syscall.Uname(&u); err == nil {
		var b []byte
		for _, c := range u.Release {
			if c == 0 || c == '-' { // the rest identifies the builder
				break
			}
			b = append(b, byte(c))
		}
		kernel = string(b)
	}
	return fmt.Sprintf("%d cores, %s, kernel %s, %s.", runtime.NumCPU(), runtime.GOARCH, kernel, runtime.Version())
}
