// Command bench measures nameplane and the DNS servers in common use, in one run on one machine, so that the ratios are
// valid on other machines too.
//
// Start with run in this file: it calls one method for each section of the report. rounds and measure in dns.go take
// the measurements.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/nameplane/nameplane/test/peers"
)

// The server has one core for itself and all clients have the other. So the CPU time per query is the server's, and a
// client never takes time from it.
const (
	serverCore = "0"
	clientCore = "1"
)

// bench is one run.
type bench struct {
	report    *report
	dir       string // temporary folder of zone and query files
	nameplane string // path of the program, or empty when it is not built
	coredns   string // the same for CoreDNS
	quick     bool
}

// main is also the program of the clients and of the baseline server. They run in processes of their own, so that their
// CPU time is not counted as that of the server or of this harness.
func main() {
	if len(os.Args) == 2 && os.Args[1] == generateArg {
		exit(generate(os.Stdin, os.Stdout))
	}
	if len(os.Args) == 2 && os.Args[1] == askArg {
		exit(ask(os.Stdin, os.Stdout))
	}
	if len(os.Args) == 5 && os.Args[1] == baselineArg {
		exit(baseline(os.Args[2], os.Args[3], os.Args[4]))
	}
	only := flag.String("only", "dns,changing,mec,transfer,alias,rest,scale", "sections to measure")
	quick := flag.Bool("quick", false, "use short rounds: to try the harness, not for figures")
	write := flag.Bool("write", false, "also write the report to "+reportFile)
	ours := flag.String("nameplane", "bin/nameplane", "the program under test")
	coredns := flag.String("coredns", ".cache/bin/coredns", "CoreDNS, built from test/tools/coredns")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	b := &bench{report: newReport(os.Stdout, *quick), quick: *quick}
	b.nameplane, b.coredns = b.built(*ours), b.built(*coredns)
	err := b.run(ctx, strings.Split(*only, ","))
	if err == nil && *write {
		err = b.report.write()
	}
	exit(err)
}

// exit ends with 2 on an error, as nameplane does, so that a Makefile does not take a half report for a whole one.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	os.Exit(0)
}

// run measures the sections one after the other: two at a time would share the two cores, and no figure would be valid.
func (b *bench) run(ctx context.Context, sections []string) error {
	if runtime.NumCPU() < 2 {
		return errors.New("two cores are needed, one for the server and one for its clients")
	}
	// /tmp may be memory, where fsync costs nothing; /var/tmp is on a disk.
	if os.Getenv("TMPDIR") == "" {
		if err := os.Setenv("TMPDIR", "/var/tmp"); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	measures := map[string]func(context.Context) error{"dns": b.dns, "changing": b.changing, "mec": b.mec,
		"alias": b.alias, "rest": b.rest, "transfer": b.transfer, "scale": b.scale}
	for _, name := range sections {
		measure, ok := measures[name]
		if !ok {
			return fmt.Errorf("-only %s: unknown section; use dns, changing, mec, transfer, alias, rest or scale", name)
		}
		if err := measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// built returns the absolute path of a program. Without the program it returns "" and adds a note to the report.
func (b *bench) built(path string) string {
	full, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(full)
	}
	if err != nil {
		b.report.note("%s is not built: measured without it", filepath.Base(path))
		return ""
	}
	return full
}

// seconds returns the length of a round. Rounds of full length are long enough that the start of a client does not
// count.
func (b *bench) seconds(full, quick int) time.Duration {
	if b.quick {
		full = quick
	}
	return time.Duration(full) * time.Second
}

// programs returns the available servers, nameplane first.
func (b *bench) programs() []peers.Program {
	var list []peers.Program
	if b.nameplane != "" {
		list = append(list, peers.Nameplane(b.nameplane))
	}
	list = append(list, peers.Knot(), peers.NSD(), peers.BIND())
	if b.coredns != "" {
		list = append(list, peers.CoreDNS(b.coredns))
	}
	return list
}
