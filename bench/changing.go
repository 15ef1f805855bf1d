package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/nameplane/nameplane/test/peers"
)

const (
	generateArg = "generate" // runs this program as the source of changes
	changeRate  = 1000       // a second
)

// spec tells the source of changes what to do; it comes by stdin because it holds a token.
type spec struct {
	URL, Token, Zone string
	Rate             int
	Length           time.Duration
}

// generate is a process of its own so that all its threads can be kept on the
// clients' core.
func generate(in io.Reader, out io.Writer) error {
	var s spec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return err
	}
	const count = 8
	d := newDesignate(s.URL, s.Token, count)
	sets, err := d.addressSets(s.Zone, 5000)
	if err != nil {
		return err
	}
	done := writers{count: count, length: s.Length, rate: s.Rate}.run(func(_, n int) error {
		return d.put(sets[n%len(sets)], newAddress(n))
	})
	return json.NewEncoder(out).Encode(done)
}

// changing measures queries while changes are applied. The changes' client
// shares dnsperf's core and slows it down, which is not the server's doing; so
// in the control the same changes go to a second nameplane that nobody asks.
// That one runs on the clients' core too, so the control gives away somewhat
// more than the client costs: the truth lies between the two ratios.
func (b *bench) changing(ctx context.Context, s *peers.Server, zone peers.Zone, file string) error {
	other, err := peers.Nameplane(b.nameplane).Start(ctx, []peers.Zone{zone}, peers.Options{Core: clientCore, Ready: time.Minute})
	if err != nil {
		return err
	}
	defer other.Stop()
	perf := dnsperf{file: file, transport: "udp", length: b.seconds(5, 2)}
	targets := []struct {
		name string
		to   *peers.Server
	}{{"no changes", nil}, {"changes to the server asked", s}, {"changes to another server (control)", other}}
	rounds := 5
	if b.quick {
		rounds = 1
	}
	all := make([][]figures, len(targets))
	applied := make([]changes, len(targets))
	for range rounds {
		for i, target := range targets {
			f, c, err := whileChanging(ctx, perf, s, target.to)
			if err != nil {
				return fmt.Errorf("%s: %w", target.name, err)
			}
			// The source of changes is no disturbance; the rounds are interleaved,
			// so a real one falls on all three.
			f.others = 0
			all[i], applied[i] = append(all[i], f), c
		}
	}
	quiet, control := medians(all[0]), medians(all[2])
	rows := [][]string{{"", "queries/s", "to no changes", "to the control", "CPU µs/query", "changes/s", "p50", "p99", "errors"}}
	for i, target := range targets {
		f := medians(all[i])
		row := []string{target.name, fmt.Sprintf("%.0f", f.qps), ratio(f.qps, quiet.qps), ratio(f.qps, control.qps), fmt.Sprintf("%.2f", f.cpu)}
		rows = append(rows, append(row, applied[i].row("")[1:]...))
	}
	b.report.table(fmt.Sprintf("nameplane over UDP while %d changes a second are applied by REST", changeRate), rows)
	return nil
}

// whileChanging starts the source a moment before dnsperf and lets it outlast it.
func whileChanging(ctx context.Context, perf dnsperf, asked, changed *peers.Server) (figures, changes, error) {
	var c changes
	if changed == nil {
		f, err := perf.measure(ctx, asked)
		return f, c, err
	}
	token, err := changed.Token()
	if err != nil {
		return figures{}, c, err
	}
	in, err := json.Marshal(spec{changed.HTTP, token, zoneName, changeRate, perf.length + 2*time.Second})
	if err != nil {
		return figures{}, c, err
	}
	self, err := os.Executable()
	if err != nil {
		return figures{}, c, err
	}
	var out bytes.Buffer
	source := exec.CommandContext(ctx, "taskset", "-c", clientCore, self, generateArg)
	source.Stdin, source.Stdout, source.Stderr = bytes.NewReader(in), &out, os.Stderr
	if err := source.Start(); err != nil {
		return figures{}, c, err
	}
	time.Sleep(time.Second) // it lists the record sets first
	f, err := perf.measure(ctx, asked)
	if wait := source.Wait(); err == nil {
		err = wait
	}
	if err != nil {
		return f, c, err
	}
	err = json.Unmarshal(out.Bytes(), &c)
	if err == nil && c.Errors > 0 {
		err = fmt.Errorf("%d changes failed, the first with %s", c.Errors, c.First)
	}
	return f, c, err
}
