package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// writes counts the requests to store data in the API server while nothing changes. Each write is stored by etcd and
// sent to every watcher, so it costs the whole cluster. The first minutes are left out: every name is written once
// when it is learned.
func writes(t cluster.T, o options) figure {
	n, warm, long := o.scaled(1000, 200), o.long(3*time.Minute, 90*time.Second), o.long(5*time.Minute, 2*time.Minute)
	rate := o.scaled(2000, 400)
	f := figure{title: fmt.Sprintf("API writes: %d names, TTL 5 s, stable addresses, 3 replicas, %d questions/s, for "+
		"%v after %v", n, rate, long, warm),
		want: "at most one write per name and 60 s, no conflicts"}
	var rules []string
	for i := range n {
		rules = append(rules, "allow "+strings.TrimSuffix(rig.Name(i, suffix), "."))
	}
	s := start(t, o, rig.Options{Plugin: hold, Replicas: 3}, rig.DenyRest...)
	s.Authority.Fresh(suffix, 5*time.Second)
	if err := s.Firewall(space, append(rules, rig.DenyRest...)...); err != nil {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), warm+long)
	defer cancel()
	var l load
	i := 0
	var servers []netip.AddrPort
	for _, r := range s.DNS {
		servers = append(servers, r.At)
	}
	begun := time.Now()
	// 7919 is prime, so all names are asked in turn, and neighbours do not fall due together.
	if err := l.run(ctx, s.pod, servers, rate, func() string { i++; return rig.Name(i*7919%n, suffix) }); err != nil {
		t.Fatalf("%v", err)
	}
	all, err := s.Writes("dnsnameresolvers", begun)
	if err != nil {
		t.Fatalf("%v", err)
	}
	all = slices.DeleteFunc(all, func(r cluster.Request) bool { return r.Subresource != "status" })
	steady := slices.DeleteFunc(slices.Clone(all), func(r cluster.Request) bool { return r.At.Before(begun.Add(warm)) })
	conflicts := count(all, func(r cluster.Request) bool { return r.Code == http.StatusConflict })
	// A patch with a test operation fails with 422 where an update would fail with 409.
	isLost := func(r cluster.Request) bool { return r.Code == http.StatusUnprocessableEntity }
	lost := count(all, isLost)
	stored := count(steady, func(r cluster.Request) bool { return r.Code < 300 })
	perName := float64(stored) / float64(n) / long.Seconds() * 60
	f.row("questions", "%s", l.String())
	f.row("writes of a status in the first "+warm.String(), "%d", len(all)-len(steady))
	f.row("writes of a status after that", "%d tried, %d stored: %.2f per name and 60 s", len(steady), stored, perName)
	f.row("names written more than once within 50 s, after that", "%d", writtenTwice(steady, 50*time.Second))
	f.row("conflicts (409), in total", "%d", conflicts)
	f.row("patches refused because their test operation failed (422), in total", "%d, of which %d after that", lost,
		count(steady, isLost))
	f.row("for comparison: a write for each answer with another TTL, as the stock plugin does",
		"%.0f per name and 60 s", 3*60.0/5)
	f.met = perName <= 1 && conflicts == 0 && lost == 0 && l.failed.Load() == 0
	return f
}

// writtenTwice counts the names that were stored twice within a time. The mean alone would hide a few names that are
// written all the time.
func writtenTwice(all []cluster.Request, within time.Duration) int {
	last, out := map[string]time.Time{}, map[string]bool{}
	for _, r := range all {
		if r.Code >= 300 {
			continue
		}
		if was, ok := last[r.Name]; ok && r.At.Sub(was) < within {
			out[r.Name] = true
		}
		last[r.Name] = r.At
	}
	return len(out)
}

// refresh follows many names through CoreDNS pods, of which some do not work. If names have an address of each family,
// as here, the status of a wildcard has room for about 260. The addresses of other names are in the entry of the
// wildcard, which does not have the names to query: they live as long as pods query them.
func refresh(t cluster.T, o options) figure {
	groups, each, long := o.scaled(80, 16), 125, o.long(4*time.Minute, 100*time.Second)
	n := groups * each
	f := figure{title: fmt.Sprintf("Refresh: %d names of TTL 30 s under %d wildcards, 5 pods of CoreDNS, for %v", n,
		groups, long), want: "no live name ever leaves its set"}
	f.row("faults", "one pod of CoreDNS is silent, one takes 4 s; 5 %% of the names turn NXDOMAIN")
	s := start(t, o, rig.Options{Plugin: hold, Replicas: 4}, rig.DenyRest...)
	slow, err := s.SlowReplica()
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.DNS = append(s.DNS, slow)
	if err := s.Publish(); err != nil {
		t.Fatalf("%v", err)
	}
	var rules []string
	for g := range groups {
		rules = append(rules, fmt.Sprintf("allow *.g%d.%s", g, suffix))
	}
	s.Authority.Fresh(suffix, 30*time.Second)
	if err := s.Firewall(space, append(rules, rig.DenyRest...)...); err != nil {
		t.Fatalf("%v", err)
	}
	name := func(i int) string { return rig.Name(i, fmt.Sprintf("g%d.%s", i/each, suffix)) }
	taught := s.teach(t, groups, each, name)
	return s.watchRefresh(f, n, long, name, taught)
}
