package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/test/peers"
)

// changingAtLimit measures what changes take from queries where the server is what limits them: its core is used up, and the
// client, which sends the changes too, has time to spare. With dnsperf it is the client whose share falls.
func (b *bench) changingAtLimit(ctx context.Context, s *peers.Server, file string) error {
	rounds := 9
	if b.quick {
		rounds = 1
	}
	by := &changingAsker{asker: asker{file, 20, b.seconds(2, 1)}}
	if err := by.find(s); err != nil {
		return err
	}
	if _, err := measure(ctx, s, by.asker); err != nil { // warms caches up
		return err
	}
	all := loads()[1:]
	results := make([][]besides, len(all))
	for range rounds {
		for i, l := range all {
			pair, err := by.beside(ctx, s, l)
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			results[i] = append(results[i], pair)
		}
	}
	var with []figures
	for _, list := range results {
		with = append(with, figures{others: quietPairs(list).median(func(p besides) float64 { return p.with.others })})
	}
	b.report.disturbed(with)
	b.report.table(fmt.Sprintf("nameplane over UDP where it is the limit, while %d changes a second are applied by REST", changeRate),
		besideRows(all, results))
	return nil
}

// besides are two runs, one right after the other: without changes and with them. A machine that others use too changes from
// one minute to the next by more than is measured here.
type besides struct {
	without, with figures
	done          sourced
}

func (p besides) disturbed() bool { return p.without.disturbed() || p.with.disturbed() }

// kept is how much of the queries is left.
func (p besides) kept() float64 { return p.with.qps / p.without.qps }

// each is the server's CPU for a change, in milliseconds, beyond what its queries take without changes.
func (p besides) each() float64 {
	return (p.with.cpu - p.without.cpu) * p.with.qps / max(1, p.done.PerSec) / 1000
}

// besideRows are medians of the pairs, of the quiet ones when there are any.
func besideRows(all []load, results [][]besides) [][]string {
	rows := [][]string{{"changes", "queries/s without", "with", "kept", "kept to the control", "of its core", "CPU µs/query without", "CPU ms/change",
		"the source's CPU ms/change", "changes/s", "p50", "p99", "errors"}}
	for i, l := range all {
		m := quietPairs(results[i])
		kept := m.median(besides.kept)
		control, each := "-", "-"
		if !l.idle {
			control = ratio(kept, quietPairs(results[i+1]).median(besides.kept))
			each = fmt.Sprintf("%.2f", m.median(besides.each))
		}
		var done []sourced
		for _, p := range m {
			done = append(done, p.done)
		}
		c := middle(done)
		row := []string{l.name, fmt.Sprintf("%.0f", m.median(func(p besides) float64 { return p.without.qps })),
			fmt.Sprintf("%.0f", m.median(func(p besides) float64 { return p.with.qps })), ratio(kept, 1), control,
			fmt.Sprintf("%.0f %%", m.median(func(p besides) float64 { return p.with.busy })),
			fmt.Sprintf("%.2f", m.median(func(p besides) float64 { return p.without.cpu })), each, fmt.Sprintf("%.3f", c.Each)}
		rows = append(rows, append(row, c.row("")[1:]...))
	}
	return rows
}

type pairs []besides

func quietPairs(list []besides) pairs {
	var quiet pairs
	for _, p := range list {
		if !p.disturbed() {
			quiet = append(quiet, p)
		}
	}
	if quiet == nil {
		return list
	}
	return quiet
}

func (list pairs) median(of func(besides) float64) float64 {
	values := make([]float64, len(list))
	for i, p := range list {
		values[i] = of(p)
	}
	return median(values)
}

// changingAsker is an asker that makes changes meanwhile.
type changingAsker struct {
	asker
	load    load
	changes askChanges
	done    changesDone // of the last run
}

// beside measures without changes and with them.
func (a *changingAsker) beside(ctx context.Context, s *peers.Server, l load) (p besides, err error) {
	if p.without, err = measure(ctx, s, a.asker); err != nil {
		return p, err
	}
	a.load = l
	p.with, err = measure(ctx, s, a)
	p.done = a.done.sourced
	return p, err
}

// find finds what is to be changed.
func (a *changingAsker) find(s *peers.Server) error {
	d, err := designateOf(s, 1)
	if err != nil {
		return err
	}
	sets, err := d.addressSets(zoneName, 5000)
	if err != nil {
		return err
	}
	a.changes = askChanges{Addr: strings.TrimPrefix(s.HTTP, "http://"), Token: d.token, Zone: sets[0].zone, Sets: sets, Rate: changeRate}
	return nil
}

func (a *changingAsker) run(ctx context.Context, addr string) (outcome, error) {
	c := a.changes
	c.Batch = a.load.batch
	if a.load.idle {
		c.Addr = ""
	}
	got, r, err := runAsk(ctx, askSpec{Addr: addr, File: a.file, Clients: a.clients, Window: window, Length: a.length, Changes: &c})
	if err != nil {
		return got, err
	}
	a.changes.First += 2 * int(a.length.Seconds()*changeRate) // what was sent, and more: the next ones are others
	if r.Changes == nil {
		return got, errors.New("no changes were made")
	}
	if a.done = *r.Changes; a.done.Errors > 0 {
		return got, fmt.Errorf("%d changes failed, the first with %s", a.done.Errors, a.done.First)
	}
	return got, nil
}
