package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/test/server"
)

// targets are the limits for each command, at the 95th percentile over all domains of the lab. 0: no limit. A person
// waits for analyze and service at a terminal. Queries are limited because they go to servers of others, and those to
// one resolver because public resolvers limit their clients.
var targets = map[string]struct {
	took     time.Duration
	queries  int
	resolver int // queries to each resolver
}{"scan": {queries: 150}, "analyze": {took: time.Second, queries: 120}, "compare": {resolver: 8},
	"service": {took: 1500 * time.Millisecond, queries: 150}}

// commandHead is the heading of the rows of addCommand.
var commandHead = []string{"command", "time p50", "time p95", "slowest", "names slower than 1 s", "queries p50",
	"queries p95", "most queries", "most queries to one resolver"}

// measureService checks a service of one hostname for every domain of the lab, as users do.
func measureService(o options) (f figure, err error) {
	err = inLab(o, func(dir string, domains []lab.Domain) error {
		f = figure{title: fmt.Sprintf("A service of one hostname in the lab: %d domains, each checked %d times",
			len(domains), o.times), met: true, want: "at the 95th percentile at most 1.5 s and 150 queries",
			head: commandHead}
		return f.addCommand(o, dir, "service", domains)
	})
	return f, err
}

// inLab calls do with the directory and the domains of a lab.
func inLab(o options, do func(dir string, domains []lab.Domain) error) error {
	dir, err := os.MkdirTemp("", "explain-lab-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	stop, err := startLab(o.bin, dir)
	if err != nil {
		return err
	}
	defer stop()
	domains, err := labDomains(o.bin, dir)
	if err != nil {
		return err
	}
	return do(dir, domains)
}

// measureLab runs every command for every domain of the lab, as users run it.
func measureLab(o options) (f figure, err error) {
	err = inLab(o, func(dir string, domains []lab.Domain) error {
		f = figure{title: fmt.Sprintf("In the lab: %d domains, most with faults, each scanned %d times", len(domains),
			o.times),
			met: true,
			want: "at the 95th percentile, analyze at most 1 s and 120 queries, scan at most 150 queries, compare at most 8 " +
				"queries to each resolver",
			head: commandHead}
		for _, verb := range []string{"scan", "analyze", "compare"} {
			if err := f.addCommand(o, dir, verb, domains); err != nil {
				return err
			}
		}
		return nil
	})
	return f, err
}

// addCommand adds the row of one command.
func (f *figure) addCommand(o options, dir, verb string, domains []lab.Domain) error {
	var took []time.Duration
	var queries, resolver []int
	var slow []string
	for range o.times {
		for _, d := range domains {
			m, err := measureOnce(o.bin, dir, verb, d)
			if err != nil {
				return err
			}
			if m.took > time.Second && !slices.Contains(slow, m.name) {
				slow = append(slow, m.name)
			}
			took, queries, resolver = append(took, m.took), append(queries, m.queries), append(resolver, m.resolver)
		}
	}
	p := targets[verb]
	f.met = f.met && (p.took == 0 || quantile(took, .95) <= p.took) &&
		(p.queries == 0 || quantile(queries, .95) <= p.queries) && (p.resolver == 0 || quantile(resolver, 1) <= p.resolver)
	to := "-"
	if verb == "compare" {
		to = strconv.Itoa(quantile(resolver, 1))
	}
	f.row(verb, seconds(quantile(took, .5)), seconds(quantile(took, .95)), seconds(quantile(took, 1)),
		strings.Join(slow, " "),
		strconv.Itoa(quantile(queries, .5)), strconv.Itoa(quantile(queries, .95)), strconv.Itoa(quantile(queries, 1)), to)
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// measurement is the cost of one run: the time of the whole process, and the queries.
type measurement struct {
	name              string
	took              time.Duration
	queries, resolver int
}

// measureOnce runs one command in a process of its own, so that its start is measured as well.
func measureOnce(bin, dir, verb string, d lab.Domain) (m measurement, err error) {
	// Domain.Try is "nameplane VERB NAME", possibly followed by a type.
	m.name = d.Name
	if words := strings.Fields(d.Try); verb != "scan" && len(words) > 2 {
		if m.name = words[2]; words[1] == "scan" {
			m.name = "www." + d.Name
		}
	}
	record := filepath.Join(dir, "record")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args := []string{verb, "--lab=" + filepath.Join(dir, "lab"), "--record", record, "--quiet", "-o", "json", m.name}
	if verb == "service" {
		args = append(args, "--target", "eu.edge.net") // a host of the lab that most domains do not point to
	}
	cmd := exec.CommandContext(ctx, bin, args...)
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	m.took = time.Since(begun)
	var exit *exec.ExitError
	// Exit statuses up to 3 are verdicts about the domain.
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 3) {
		return m, fmt.Errorf("%s %s: %w\n%s", verb, m.name, err, out)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		return m, fmt.Errorf("%s %s: %w\n%s", verb, m.name, err, out)
	}
	facts, err := gather.Load(bytes.NewReader(text))
	if err != nil {
		return m, fmt.Errorf("%s %s: %w", verb, m.name, err)
	}
	m.queries, m.resolver = facts.Queries, mostAsked(facts)
	return m, os.Remove(record)
}

// mostAsked returns the largest number of queries to one resolver.
func mostAsked(f *explain.Facts) (most int) {
	asked := map[netip.Addr]int{}
	for _, e := range f.Exchanges {
		if e.Try > 0 { // it was sent
			asked[e.Server]++
		}
	}
	for _, c := range f.Caches {
		most = max(most, asked[c.Addr])
	}
	return most
}

// startLab starts a lab and waits until it can be loaded. Ten seconds are far more than it needs: a lab that is not
// there by then has failed, and its log says why.
func startLab(bin, dir string) (stop func(), err error) {
	p := &server.Process{Name: "the lab", Command: []string{bin, "lab", "up", "--dir", filepath.Join(dir, "lab")},
		LogFile: filepath.Join(dir, "log")}
	if err := p.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		if _, err = lab.Load(filepath.Join(dir, "lab")); err == nil {
			return p.Stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.Stop()
	return nil, err
}

// labDomains returns the domains of the running lab, with a command to try for each.
func labDomains(bin, dir string) ([]lab.Domain, error) {
	out, err := exec.Command(bin, "lab", "list", "--dir", filepath.Join(dir, "lab"), "-o", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("lab list: %w", err)
	}
	var list struct {
		Domains []lab.Domain `json:"domains"`
	}
	err = json.Unmarshal(out, &list)
	return list.Domains, err
}
