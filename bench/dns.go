package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/nameplane/nameplane/test/peers"
)

// figures are the results of one round, or the medians of several, for one server.
type figures struct {
	qps    float64
	cpu    float64 // microseconds of server CPU per query
	memory float64 // MB
	lost   float64 // percent of queries without an answer
	others float64 // percent of the machine's CPU that other programs used
	busy   float64 // percent of its core that the server used
}

// disturbed reports whether other programs used more than 10 % of the machine, which is more than the harness and the
// kernel's own threads use.
func (f figures) disturbed() bool { return f.others > 10 }

// dns measures every server over UDP and TCP.
func (b *bench) dns(ctx context.Context) error {
	zone, err := writeZone(b.dir, zoneNames)
	if err != nil {
		return err
	}
	list := mix(askedFor)
	file, err := writeQueries(b.dir, list)
	if err != nil {
		return err
	}
	var servers []*peers.Server
	for _, p := range b.programs() {
		s, err := p.Start(ctx, []peers.Zone{zone}, peers.Options{Core: serverCore, Ready: time.Minute})
		if err != nil {
			return err
		}
		defer s.Stop()
		if err := verify(s.Addr, list); err != nil {
			return fmt.Errorf("%s answers wrongly: %w", s.Name, err)
		}
		servers = append(servers, s)
	}
	for _, transport := range []string{"udp", "tcp"} {
		results, err := b.rounds(ctx, servers, dnsperf{file: file, transport: transport, length: b.seconds(5, 2)})
		if err != nil {
			return fmt.Errorf("over %s: %w", transport, err)
		}
		b.report.servers(transport, servers, results)
	}
	return b.limits(ctx, servers, file)
}

// loadGenerator is a program that sends queries to a server and reports the result.
type loadGenerator interface {
	run(ctx context.Context, addr string) (outcome, error)
}

// outcome is the result of one run as the client sees it.
type outcome struct {
	queries float64 // answered
	qps     float64
	lost    float64 // percent
	cpu     time.Duration
}

// rounds measures the servers one after the other, several times, so that a slow moment of the machine affects all of
// them. It returns the median of each figure.
func (b *bench) rounds(ctx context.Context, servers []*peers.Server, by loadGenerator) ([]figures, error) {
	rounds := 5
	if b.quick {
		rounds = 1
	}
	all := make([][]figures, len(servers))
	for round := range rounds + 1 {
		for i, s := range servers {
			f, err := measure(ctx, s, by)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			if round > 0 { // the first round warms the caches
				all[i] = append(all[i], f)
			}
		}
	}
	results := make([]figures, len(servers))
	for i, list := range all {
		results[i] = medians(list)
	}
	return results, nil
}

// medians returns the medians of the undisturbed rounds, when there are any: a pinned server does not get the CPU
// time that other programs take.
func medians(list []figures) figures {
	if quiet := slices.DeleteFunc(slices.Clone(list), figures.disturbed); len(quiet) > 0 {
		list = quiet
	}
	pick := func(of func(figures) float64) float64 {
		values := make([]float64, len(list))
		for i, f := range list {
			values[i] = of(f)
		}
		return median(values)
	}
	return figures{
		qps:    pick(func(f figures) float64 { return f.qps }),
		cpu:    pick(func(f figures) float64 { return f.cpu }),
		memory: pick(func(f figures) float64 { return f.memory }),
		lost:   pick(func(f figures) float64 { return f.lost }),
		others: pick(func(f figures) float64 { return f.others }),
		busy:   pick(func(f figures) float64 { return f.busy }),
	}
}

// median sorts values; nobody needs their order.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// measure runs by against a server, and reads the server's CPU time before and after.
func measure(ctx context.Context, s *peers.Server, by loadGenerator) (figures, error) {
	clock, err := startClock()
	if err != nil {
		return figures{}, err
	}
	before, err := s.Usage()
	if err != nil {
		return figures{}, err
	}
	got, err := by.run(ctx, s.Addr)
	if err != nil {
		return figures{}, err
	}
	after, err := s.Usage()
	if err != nil {
		return figures{}, err
	}
	spent := after.CPU - before.CPU
	others, err := clock.others(got.cpu + spent)
	if err != nil {
		return figures{}, err
	}
	each := float64(spent.Microseconds()) / got.queries
	return figures{
		qps:    got.qps,
		cpu:    each,
		memory: float64(after.Memory) / 1e6,
		lost:   got.lost,
		others: others,
		busy:   each * got.qps / 1e4,
	}, nil
}

// dnsperf is one run of that program.
type dnsperf struct {
	file      string
	transport string
	length    time.Duration
	clients   int // sockets; default 20
}

var (
	completed = regexp.MustCompile(`Queries completed:\s+(\d+) \(([\d.]+)%\)`)
	perSecond = regexp.MustCompile(`Queries per second:\s+([\d.]+)`)
)

// measure measures one round of dnsperf.
func (d dnsperf) measure(ctx context.Context, s *peers.Server) (figures, error) {
	return measure(ctx, s, d)
}

// run queries from the clients' core, with 200 outstanding queries. Linux gives a socket room for about 270 small
// datagrams, and a lost one occupies one of the outstanding queries until it times out.
func (d dnsperf) run(ctx context.Context, addr string) (outcome, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return outcome{}, err
	}
	args := []string{"-c", clientCore, "dnsperf", "-s", host, "-p", port, "-d", d.file, "-m", d.transport,
		"-l", strconv.Itoa(int(d.length.Seconds())), "-T", "1", "-c", strconv.Itoa(cmp.Or(d.clients, 20)), "-q", "200"}
	cmd := exec.CommandContext(ctx, "taskset", args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return outcome{}, fmt.Errorf("dnsperf (run make test, which installs it): %w\n%s", err, out)
	}
	done, qps := completed.FindSubmatch(out), perSecond.FindSubmatch(out)
	if done == nil || qps == nil {
		return outcome{}, fmt.Errorf("cannot read what dnsperf said:\n%s", out)
	}
	queries := number(done[1])
	if queries == 0 {
		return outcome{}, fmt.Errorf("no query was answered:\n%s", out)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return outcome{queries, number(qps[1]), 100 - number(done[2]), cpu}, nil
}

// number parses a number that a pattern has matched.
func number(text []byte) float64 {
	f, _ := strconv.ParseFloat(string(text), 64)
	return f
}
