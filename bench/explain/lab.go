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

// What a look may take, at the 95th percentile over all domains of the lab. 0: nothing is promised.
var promised = map[string]struct {
	took     time.Duration
	queries  int
	resolver int // queries to each
}{"scan": {queries: 150}, "analyze": {took: time.Second, queries: 120}, "compare": {resolver: 8}}

// inLab looks at every domain of the lab in every way, with the program as people run it.
func inLab(o options) (f figure, err error) {
	dir, err := os.MkdirTemp("", "explain-lab-")
	if err != nil {
		return f, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	stop, err := startLab(o.bin, dir)
	if err != nil {
		return f, err
	}
	defer stop()
	domains, err := labDomains(o.bin, dir)
	if err != nil {
		return f, err
	}
	f = figure{title: fmt.Sprintf("In the lab: %d domains, most with faults, each looked at %d times", len(domains), o.times), met: true,
		want: "at the 95th percentile, analyze at most 1 s and 120 queries, scan at most 150 queries, compare at most 8 queries to each resolver",
		head: []string{"", "time p50", "time p95", "slowest", "above 1 s", "queries p50", "queries p95", "most queries", "to one resolver, most"}}
	for _, verb := range []string{"scan", "analyze", "compare"} {
		if err := f.verb(o, dir, verb, domains); err != nil {
			return f, err
		}
	}
	return f, nil
}

// verb adds the row of one verb.
func (f *figure) verb(o options, dir, verb string, domains []lab.Domain) error {
	var took []time.Duration
	var queries, resolver []int
	var slow []string
	for range o.times {
		for _, d := range domains {
			l, err := oneLook(o.bin, dir, verb, d)
			if err != nil {
				return err
			}
			if l.took > time.Second && !slices.Contains(slow, l.name) {
				slow = append(slow, l.name)
			}
			took, queries, resolver = append(took, l.took), append(queries, l.queries), append(resolver, l.resolver)
		}
	}
	p := promised[verb]
	f.met = f.met && (p.took == 0 || share(took, .95) <= p.took) && (p.queries == 0 || share(queries, .95) <= p.queries) && (p.resolver == 0 || share(resolver, 1) <= p.resolver)
	to := "-"
	if verb == "compare" {
		to = strconv.Itoa(share(resolver, 1))
	}
	f.row(verb, seconds(share(took, .5)), seconds(share(took, .95)), seconds(share(took, 1)), strings.Join(slow, " "),
		strconv.Itoa(share(queries, .5)), strconv.Itoa(share(queries, .95)), strconv.Itoa(share(queries, 1)), to)
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// aLook is what one look took: time of the whole program, and queries.
type aLook struct {
	name              string
	took              time.Duration
	queries, resolver int
}

func oneLook(bin, dir, verb string, d lab.Domain) (l aLook, err error) {
	// What to try is "nameplane VERB NAME", perhaps with a type.
	l.name = d.Name
	if words := strings.Fields(d.Try); verb != "scan" && len(words) > 2 {
		if l.name = words[2]; words[1] == "scan" {
			l.name = "www." + d.Name
		}
	}
	record := filepath.Join(dir, "record")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, verb, "--lab="+filepath.Join(dir, "lab"), "--record", record, "--quiet", "-o", "json", l.name)
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	l.took = time.Since(begun)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 3) {
		return l, fmt.Errorf("%s %s: %w\n%s", verb, l.name, err, out)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		return l, fmt.Errorf("%s %s: %w\n%s", verb, l.name, err, out)
	}
	facts, err := gather.Load(bytes.NewReader(text))
	if err != nil {
		return l, fmt.Errorf("%s %s: %w", verb, l.name, err)
	}
	l.queries, l.resolver = facts.Queries, mostAsked(facts)
	return l, os.Remove(record)
}

// mostAsked is how many queries the resolver got that got the most.
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

// startLab starts a lab and waits until it can be found.
func startLab(bin, dir string) (stop func(), err error) {
	p := &server.Process{Name: "the lab", Command: []string{bin, "lab", "up", "--dir", filepath.Join(dir, "lab")}, LogFile: filepath.Join(dir, "log")}
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
