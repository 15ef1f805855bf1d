package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/test/peers"
)

// changingAtLimit measures how much changes reduce queries when the server is the limit: it uses its whole core, and
// the client, which also sends the changes, has time to spare. With dnsperf the client would be the limit.
func (b *bench) changingAtLimit(ctx context.Context, s *peers.Server, file string) error {
	rounds := 9
	if b.quick {
		rounds = 1
	}
	by := &changingClient{fastClient: fastClient{file, 20, b.seconds(2, 1)}}
	if err := by.find(s); err != nil {
		return err
	}
	if _, err := measure(ctx, s, by.fastClient); err != nil { // warms the caches
		return err
	}
	all := loads()[1:]
	results := make([][]comparison, len(all))
	for range rounds {
		for i, l := range all {
			pair, err := by.compare(ctx, s, l)
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			results[i] = append(results[i], pair)
		}
	}
	var with []figures
	for _, list := range results {
		with = append(with, figures{others: undisturbed(list).median(func(p comparison) float64 { return p.with.others })})
	}
	b.report.disturbed(with)
	const heading = "nameplane over UDP where it is the limit, while %d changes per second are applied by REST"
	b.report.table(fmt.Sprintf(heading, changeRate),
		comparisonRows(all, results))
	return nil
}

// comparison is two runs, one directly after the other: without changes and with them. On a shared machine the
// conditions change from one minute to the next by more than the measured effect.
type comparison struct {
	without, with figures
	done          sourceResult
}

func (p comparison) disturbed() bool { return p.without.disturbed() || p.with.disturbed() }

// kept returns the fraction of the queries that is left with changes.
func (p comparison) kept() float64 { return p.with.qps / p.without.qps }

// each returns the server's CPU time for a change, in milliseconds, beyond that for queries without changes.
func (p comparison) each() float64 {
	return (p.with.cpu - p.without.cpu) * p.with.qps / max(1, p.done.PerSec) / 1000
}

// comparisonRows returns the medians of the comparisons, of the undisturbed ones when there are any.
func comparisonRows(all []load, results [][]comparison) [][]string {
	rows := [][]string{{"changes", "queries/s without changes", "with changes", "ratio to no changes",
		"ratio to the control", "use of its core", "CPU µs/query without changes", "CPU ms/change",
		"client CPU ms/change", "changes/s", "p50", "p99", "errors"}}
	for i, l := range all {
		m := undisturbed(results[i])
		kept := m.median(comparison.kept)
		control, each := "-", "-"
		if !l.control {
			control = ratio(kept, undisturbed(results[i+1]).median(comparison.kept))
			each = fmt.Sprintf("%.2f", m.median(comparison.each))
		}
		var done []sourceResult
		for _, p := range m {
			done = append(done, p.done)
		}
		c := medianSource(done)
		row := []string{l.name, fmt.Sprintf("%.0f", m.median(func(p comparison) float64 { return p.without.qps })),
			fmt.Sprintf("%.0f", m.median(func(p comparison) float64 { return p.with.qps })), ratio(kept, 1), control,
			fmt.Sprintf("%.0f %%", m.median(func(p comparison) float64 { return p.with.busy })),
			fmt.Sprintf("%.2f", m.median(func(p comparison) float64 { return p.without.cpu })), each,
			fmt.Sprintf("%.3f", c.Each)}
		rows = append(rows, append(row, c.row("")[1:]...))
	}
	return rows
}

// comparisons are the rounds of one load.
type comparisons []comparison

// undisturbed returns the comparisons during which other programs used little CPU, or all when there are none.
func undisturbed(list []comparison) comparisons {
	var quiet comparisons
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

// median is used instead of the mean, because a single round that another program disturbs must not move the figure.
func (list comparisons) median(of func(comparison) float64) float64 {
	values := make([]float64, len(list))
	for i, p := range list {
		values[i] = of(p)
	}
	return median(values)
}

// changingClient is a fastClient that also makes changes.
type changingClient struct {
	fastClient
	load    load
	changes askChanges
	done    changesDone // of the last run
}

// compare measures without changes and with them.
func (a *changingClient) compare(ctx context.Context, s *peers.Server, l load) (p comparison, err error) {
	if p.without, err = measure(ctx, s, a.fastClient); err != nil {
		return p, err
	}
	a.load = l
	p.with, err = measure(ctx, s, a)
	p.done = a.done.sourceResult
	return p, err
}

// find finds the record sets to change.
func (a *changingClient) find(s *peers.Server) error {
	d, err := designateOf(s, 1)
	if err != nil {
		return err
	}
	sets, err := d.addressSets(zoneName, 5000)
	if err != nil {
		return err
	}
	a.changes = askChanges{Addr: strings.TrimPrefix(s.HTTP, "http://"), Token: d.token, Zone: sets[0].zone, Sets: sets,
		Rate: changeRate}
	return nil
}

// run sends queries and changes from one process, because a second one would need a part of the core of the clients.
// The control sends its changes to itself: it costs the client the same and the server nothing.
func (a *changingClient) run(ctx context.Context, addr string) (outcome, error) {
	c := a.changes
	c.Batch = a.load.batch
	if a.load.control {
		c.Addr = ""
	}
	got, r, err := runAsk(ctx, askSpec{Addr: addr, File: a.file, Clients: a.clients, Window: window, Length: a.length,
		Changes: &c})
	if err != nil {
		return got, err
	}
	// More than were sent, so that the next run makes other changes.
	a.changes.First += 2 * int(a.length.Seconds()*changeRate)
	if r.Changes == nil {
		return got, errors.New("no changes were made")
	}
	if a.done = *r.Changes; a.done.Errors > 0 {
		return got, fmt.Errorf("%d changes failed, the first with %s", a.done.Errors, a.done.First)
	}
	return got, nil
}
