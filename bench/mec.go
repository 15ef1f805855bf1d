package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

const (
	edgeNames   = 10_000 // as in the published test, which has one client
	edgeApps    = 10_000
	rulesPerApp = 10
)

// edgeName returns a different name for each number, and edgeAddr its address.
func edgeName(i int) string { return fmt.Sprintf("app%d.edge.test.", i) }

func edgeAddr(i int) net.IP { return net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)) }

// mec measures the load of edge platforms: queries to nameplane and to the baseline server, and calls of the rule
// APIs with many applications.
func (b *bench) mec(ctx context.Context) error {
	if b.nameplane == "" {
		return nil // built has added a note
	}
	if err := b.edgeQueries(ctx); err != nil {
		return err
	}
	return b.edgeCalls(ctx)
}

// edgeQueries repeats the published test: questions of a single client.
func (b *bench) edgeQueries(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	opts := peers.Options{Core: serverCore, Ready: time.Minute}
	ours, err := peers.Nameplane(b.nameplane).Start(ctx, nil, opts)
	if err != nil {
		return err
	}
	defer ours.Stop()
	e, err := newEdge(ours)
	if err != nil {
		return err
	}
	if err := e.loadRecords(); err != nil {
		return err
	}
	baseline := peers.Command("bbolt baseline", self, baselineArg, "{dir}", "{port}", fmt.Sprint(edgeNames))
	other, err := baseline.Start(ctx, nil, opts)
	if err != nil {
		return err
	}
	defer other.Stop()
	list := make([]query, askedFor)
	for i := range list {
		n := rand.IntN(edgeNames)
		list[i] = query{edgeName(n), dns.TypeA, dns.RcodeSuccess, edgeAddr(n).String()}
	}
	file, err := writeQueries(b.dir, list)
	if err != nil {
		return err
	}
	servers := []*peers.Server{ours, other}
	for _, s := range servers {
		if err := answering(ctx, s, list[0]); err != nil {
			return err
		}
	}
	const heading = "Edge rules: %d names, one client, server on one core"
	for _, by := range []struct {
		heading string
		loadGenerator
	}{
		{fmt.Sprintf(heading, edgeNames), dnsperf{file, "udp", b.seconds(5, 2), 1}},
		{fmt.Sprintf(heading+", queries faster than it answers", edgeNames), fastClient{file, 1, b.seconds(5, 2)}},
	} {
		results, err := b.rounds(ctx, servers, by)
		if err != nil {
			return err
		}
		b.report.table(by.heading, edgeRows(servers, results))
		b.report.disturbed(results)
	}
	return nil
}

// edgeRows compares with the published figure, which is of a server that used one whole CPU.
func edgeRows(servers []*peers.Server, results []figures) [][]string {
	const published = 8740
	rows := [][]string{{"server", "queries/s", "ratio to the published figure of 8,740/s on one CPU", "CPU µs/query",
		"queries per second of CPU", "ratio to that figure", "memory MB", "use of its core", "lost %"}}
	for i, f := range results {
		perCPU := 1e6 / f.cpu
		rows = append(rows, []string{servers[i].Name, fmt.Sprintf("%.0f", f.qps), ratio(f.qps, published),
			fmt.Sprintf("%.2f", f.cpu), fmt.Sprintf("%.0f", perCPU), ratio(perCPU, published),
			fmt.Sprintf("%.0f", f.memory), fmt.Sprintf("%.0f %%", f.busy), fmt.Sprintf("%.2f", f.lost)})
	}
	return rows
}

// answering waits for the correct answer to a question.
func answering(ctx context.Context, s *peers.Server, q query) error {
	client := dns.Client{Timeout: time.Second}
	var last error
	for range 100 {
		r, _, err := client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(q.name, q.qtype), s.Addr)
		if err == nil && lastAddress(r) == q.data {
			return nil
		}
		last = err
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s does not answer %s with %s: %w", s.Name, q.name, q.data, last)
}

// edgeCalls measures single calls while ten thousand applications have ten rules each.
func (b *bench) edgeCalls(ctx context.Context) error {
	s, err := peers.Nameplane(b.nameplane).Start(ctx, nil,
		peers.Options{Ready: time.Minute, Config: "apps: {listen: \"127.0.0.1:0\"}\n"})
	if err != nil {
		return err
	}
	defer s.Stop()
	e, err := newEdge(s)
	if err != nil {
		return err
	}
	apps := edgeApps
	if b.quick {
		apps = 200
	}
	load := writers{count: 32, calls: apps}.run(func(_, n int) error { return e.putApp(n - 1) })
	if load.Errors > 0 {
		return fmt.Errorf("load applications: %s", load.First)
	}
	mp1, err := e.applications(s)
	if err != nil {
		return err
	}
	const last = "terminate an application of ten rules"
	rows := [][]string{{"call", "calls/s", "p50", "p99", "errors"}}
	rows = append(rows, load.row("an application of ten rules, 32 callers"))
	app := func() string { return fmt.Sprintf("/mep/config/app-%d", rand.IntN(apps)) }
	state := func(n int) string { return []string{`{"state":"INACTIVE"}`, `{"state":"ACTIVE"}`}[n%2] }
	for _, c := range []struct {
		name string
		call func(n int) error
	}{
		{"list the rules of an application", func(int) error { return e.call("GET", app()+"/dns_rules", "", nil) }},
		{"one rule", func(int) error { return e.call("GET", app()+"/dns_rules/rule3", "", nil) }},
		{"switch one rule", func(n int) error { return e.call("PUT", app()+"/dns_rules/rule3", state(n), nil) }},
		{"switch all ten rules of an application", func(n int) error {
			return e.call("PUT", app()+"/dns_rules", state(n),
				nil)
		}},
		{"a page of applications with their rules", func(int) error {
			return e.call("GET", fmt.Sprintf("/mep/config?marker=app-%d", rand.IntN(apps)), "", nil)
		}},
		{"create a rule", func(n int) error {
			return e.call("POST", app()+"/dns_rules", edgeRule(fmt.Sprintf("new%d", n), 1_000_000+n), nil)
		}},
		{"begin a task of ten rules", func(n int) error {
			return e.call("POST", fmt.Sprintf("/mepcfg/app_lcm/v1/applications/task-%d/appd_configuration", n), edgeTask(n), nil)
		}},
		{"read a rule over Mp1", func(int) error {
			return mp1.call("GET", fmt.Sprintf("/applications/app-%d/dns_rules/rule3", rand.IntN(apps)), "", nil)
		}},
		{"create a record by server management", func(n int) error {
			return e.call("POST", "/mep/dns_server_mgmt/v1/rrecord?zone=.", edgeRecord(fmt.Sprintf("mgmt%d.edge.test.", n)), nil)
		}},
		{last, func(n int) error { return e.call("DELETE", fmt.Sprintf("/mep/config/app-%d", n-1), "", nil) }},
	} {
		w := writers{count: 1, length: b.seconds(5, 1)}
		if c.name == last {
			w.calls = min(apps, 2000) // each can be terminated once
		}
		got := w.run(func(_, n int) error { return c.call(n) })
		if got.Errors > 0 {
			return fmt.Errorf("%s: %s", c.name, got.First)
		}
		rows = append(rows, got.row(c.name+", 1 caller"))
	}
	b.report.table(fmt.Sprintf("Calls with %d applications of %d rules", apps, rulesPerApp), rows)
	return nil
}

// edge is a client of the platform's APIs.
type edge struct {
	base, token string
	http        *http.Client
}

// newEdge keeps idle connections for all callers, so that no figure has the time of opening one.
func newEdge(s *peers.Server) (*edge, error) {
	token, err := s.Token()
	return &edge{s.HTTP, token, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		Timeout: 30 * time.Second}}, err
}

// call fails on every status from 300 on, so that refused calls do not count as fast ones.
func (e *edge) call(method, path, body string, reply any) error {
	req, err := http.NewRequest(method, e.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Auth-Token", e.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := e.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s %s", method, path, res.Status, text)
	case reply == nil:
		return nil
	}
	return json.Unmarshal(text, reply)
}

// applications returns a client for the listener of the applications (Mp1).
func (e *edge) applications(s *peers.Server) (*edge, error) {
	text, err := os.ReadFile(filepath.Join(s.Dir, "data", "addresses.json"))
	var at struct{ Apps string }
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	return &edge{at.Apps, e.token, e.http}, err
}

// edgeTask returns the body of a task that configures an application with ten rules.
func edgeTask(n int) string {
	rules := make([]string, rulesPerApp)
	for i := range rules {
		rules[i] = edgeRule(fmt.Sprintf("rule%d", i), 2_000_000+n)
	}
	return fmt.Sprintf(`{"appName":"task-%d","appSupportMp1":true,"appTrafficRule":[],"appDNSRule":[%s]}`, n,
		strings.Join(rules, ","))
}

// loadRecords adds the names of the published test by server management, a thousand per call.
func (e *edge) loadRecords() error {
	const piece = 1000
	for from := 0; from < edgeNames; from += piece {
		var b bytes.Buffer
		b.WriteString(`[{"zone":".","rr":[`)
		for i := from; i < from+piece; i++ {
			if i > from {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"name":%q,"type":"A","class":"IN","ttl":30,"rData":[%q]}`, edgeName(i), edgeAddr(i))
		}
		b.WriteString(`]}]`)
		if err := e.call("PUT", "/mep/dns_server_mgmt/v1/rrecord", b.String(), nil); err != nil {
			return err
		}
	}
	return nil
}

// edgeRule returns a rule as JSON. Rules of different numbers have different names and addresses.
func edgeRule(id string, n int) string {
	return fmt.Sprintf(`{"dnsRuleId":%q,"domainName":"%s.app%d.edge.test",`+
		`"ipAddressType":"IP_V4","ipAddress":%q,"ttl":30,"state":"ACTIVE"}`,
		id, id, n, edgeAddr(n))
}

// edgeRecord returns a record in the form of server management, which EdgeGallery defined.
func edgeRecord(name string) string {
	return fmt.Sprintf(`{"name":%q,"type":"A","class":"IN","ttl":30,"rData":["192.0.2.1"]}`, name)
}

// putApp gives an application its rules.
func (e *edge) putApp(n int) error {
	rules := make([]string, rulesPerApp)
	for i := range rules {
		rules[i] = edgeRule(fmt.Sprintf("rule%d", i), n)
	}
	return e.call("PUT", fmt.Sprintf("/mep/config/app-%d/dns_rules", n), "["+strings.Join(rules, ",")+"]", nil)
}
