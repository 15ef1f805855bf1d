package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/nameplane/nameplane/test/peers"
)

// window is the number of open questions, as with dnsperf.
const window = 200

// limits measures every server at its own limit: the client takes less CPU for a question than the server.
func (b *bench) limits(ctx context.Context, servers []*peers.Server, file string) error {
	for _, clients := range []struct {
		count int
		what  string
	}{
		{20, "20 clients that share 200 open questions, like forwarders"},
		{window, "200 clients with one open question each"},
	} {
		results, err := b.rounds(ctx, servers, fastClient{file, clients.count, b.seconds(5, 2)})
		if err != nil {
			return err
		}
		b.report.disturbed(results)
		b.report.table("UDP queries that come faster than answers: "+clients.what, limitRows(servers, results))
	}
	return nil
}

// limitRows compares with the better of Knot and NSD, and with CoreDNS. The server was the limit when it used its
// whole core.
func limitRows(servers []*peers.Server, results []figures) [][]string {
	var best, coredns figures
	for i, s := range servers {
		switch f := results[i]; s.Name {
		case "Knot", "NSD":
			best.qps = max(best.qps, f.qps)
			if best.cpu == 0 || f.cpu < best.cpu {
				best.cpu = f.cpu
			}
		case "CoreDNS":
			coredns = f
		}
	}
	rows := [][]string{{"server", "queries/s", "ratio to the better of Knot and NSD", "ratio to CoreDNS", "CPU µs/query",
		"CPU ratio to the better of the two", "use of its core", "lost %"}}
	for i, s := range servers {
		f := results[i]
		rows = append(rows, []string{s.Name, fmt.Sprintf("%.0f", f.qps), ratio(f.qps, best.qps), ratio(f.qps, coredns.qps),
			fmt.Sprintf("%.2f", f.cpu), ratio(f.cpu, best.cpu), fmt.Sprintf("%.0f %%", f.busy), fmt.Sprintf("%.2f", f.lost)})
	}
	return rows
}

// fastClient runs this program as the client.
type fastClient struct {
	file    string
	clients int
	length  time.Duration
}

// run is for servers that answer faster than dnsperf can ask: then dnsperf would be measured.
func (a fastClient) run(ctx context.Context, addr string) (outcome, error) {
	got, _, err := runAsk(ctx, askSpec{Addr: addr, File: a.file, Clients: a.clients, Window: window, Length: a.length})
	return got, err
}

// runAsk starts this program again on the core of the clients. It fails if the replies do not match the questions: a
// server that answers anything can be as fast as it likes.
func runAsk(ctx context.Context, s askSpec) (outcome, askResult, error) {
	var r askResult
	self, err := os.Executable()
	if err != nil {
		return outcome{}, r, err
	}
	in, err := json.Marshal(s)
	if err != nil {
		return outcome{}, r, err
	}
	cmd := exec.CommandContext(ctx, "taskset", "-c", clientCore, self, askArg)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return outcome{}, r, fmt.Errorf("ask: %w", err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return outcome{}, r, err
	}
	if r.Answered == 0 || r.Wrong > r.Lost { // a lost question may have a late reply
		return outcome{}, r, fmt.Errorf("%d questions were answered, and %d replies matched no question", r.Answered, r.Wrong)
	}
	answered := float64(r.Answered)
	return outcome{answered, answered / r.Seconds, 100 * float64(r.Lost) / (answered + float64(r.Lost)),
		cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, r, nil
}
