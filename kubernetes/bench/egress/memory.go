package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// memory queries names that are never repeated. A pod can do this on purpose, to fill the memory of everything that
// learns names: each name is new, and all match one rule.
func memory(t cluster.T, o options) figure {
	long := o.long(10*time.Minute, 2*time.Minute)
	const rate = 200
	f := figure{title: fmt.Sprintf("Memory: %d new names per second under one wildcard for %v, TTL 30 s", rate, long),
		want: "memory does not grow in the last half, the custom resource stays under 256 KiB"}
	s := start(t, o, rig.Options{Plugin: hold})
	s.Authority.Fresh(suffix, 30*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	var l load
	i := 0
	done := make(chan error, 1)
	go func() {
		done <- l.run(ctx, s.pod, []netip.AddrPort{s.DNS[0].At, s.DNS[1].At}, rate,
			func() string { i++; return rig.Name(i, suffix) })
	}()
	samples := map[string][]int64{}
	largest, names := 0, 0
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			continue
		}
		for _, p := range s.Parts() {
			if m, err := resident(p.PID()); err == nil {
				samples[p.Pod.Name] = append(samples[p.Pod.Name], m)
			}
		}
		if obj, err := s.Name("*." + suffix); err == nil {
			if text, err := json.Marshal(obj); err == nil && len(text) > largest {
				largest, names = len(text), len(obj.Status.ResolvedNames)
			}
		}
	}
	if err := <-done; err != nil {
		t.Fatalf("%v", err)
	}
	f.row("questions", "%s", l.String())
	f.row("of them answered in time", "%.1f %%", 100*float64(l.answered.Load())/float64(l.sent.Load()))
	f.row("custom resource at its largest", "%.0f KiB with %d names", float64(largest)/1024, names)
	f.met = largest > 0 && largest < 256<<10
	for _, p := range s.Parts() {
		all := samples[p.Pod.Name]
		// The first half is left out: caches and the Go heap reach their size in it. A mean is needed, because garbage
		// collection makes single samples jump.
		third, last := mean(all[len(all)/2:len(all)*3/4]), mean(all[len(all)*3/4:])
		f.row(p.Pod.Name+": third and last quarter, mean", "%.1f MiB, %.1f MiB (%+.1f %%)", third/(1<<20), last/(1<<20),
			(last/third-1)*100)
		// A tenth leaves room for the noise of garbage collection.
		f.met = f.met && last < third*1.10
	}
	return f
}

func mean(all []int64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += float64(x)
	}
	return sum / float64(max(len(all), 1))
}

// judges compares explain with ovn-trace and with packets. The rules overlap on purpose: an allow rule inside a denied
// network, and names whose addresses are in both. explain reads the custom resources, ovn-trace the flows, and the
// packet the datapath, so they share no code.
func judges(t cluster.T, o options) figure {
	n := o.scaled(2000, 300)
	f := figure{title: fmt.Sprintf("Explain, ovn-trace and a packet on %d random destinations", n), want: "all agree"}
	s := start(t, o, rig.Options{Plugin: hold}, "deny bad."+suffix, "allow web."+suffix+" tcp/80", "allow *."+suffix+
		" tcp/443 udp/443", "deny 192.0.2.0/25",
		"allow 192.0.2.0/24 udp/80 tcp/80", "deny 2001:db8::/32", "deny 198.0.0.0/8 tcp/80 tcp/443", "deny 192.0.2.128/25")
	s.Authority.Fresh(suffix, time.Hour)
	var dst []netip.Addr
	for _, text := range []string{"192.0.2.7", "192.0.2.207", "203.0.113.9", "198.51.100.77", "2001:db8:ffff::1"} {
		dst = append(dst, netip.MustParseAddr(text))
	}
	for i := range 20 {
		name := rig.Name(i, suffix)
		if i < 2 {
			name = []string{"bad.", "web."}[i] + suffix
		}
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			m, _, err := rig.Ask(s.pod, s.DNS[0].At, name, qtype, 5*time.Second)
			if err != nil || len(rig.Addrs(m)) == 0 {
				t.Fatalf("%s: %v", name, err)
			}
			dst = append(dst, rig.Addrs(m)[0])
		}
	}
	if err := s.Settled(rig.Soon); err != nil {
		t.Fatalf("%v", err)
	}
	tuples, err := s.Judge(s.Nodes[0], s.pod, dst, rand.New(rand.NewPCG(7, 7)), n)
	if err != nil {
		t.Fatalf("%v", err)
	}
	apart := 0
	for _, x := range tuples {
		if x.Explained != x.Traced || x.Explained != x.Passed {
			apart++
			t.Logf("%s", x)
		}
	}
	f.row("destinations", "%d, of which %d are allowed", n, count(tuples, func(x rig.Tuple) bool { return x.Passed }))
	f.row("on which they differ", "%d", apart)
	f.met = apart == 0
	return f
}

// schedules injects random faults. The numbers of the schedules are fixed, so that one that fails can be repeated.
func schedules(t cluster.T, o options) figure {
	n := o.scaled(200, 20)
	f := figure{title: fmt.Sprintf("%d random schedules of kill -9, pauses, partitions and edits by hand, on two nodes",
		n),
		want: "after each schedule, OVN has the rows of the rules and no others, and a fresh name is reached with its " +
			"first SYN"}
	s := rig.Start(t, rig.Options{Nodes: 2, Bin: o.bin})
	chaos := rig.NewChaos(s)
	done := 0
	for ; done < n; done++ {
		if err := chaos.Schedule(rand.New(rand.NewPCG(uint64(done+1), 0))); err != nil {
			t.Logf("schedule %d: %v", done+1, err)
			f.row("failed", "schedule %d", done+1)
			break
		}
	}
	f.row("schedules", "%d, with seeds 1 to %d", done, done)
	for _, step := range slices.Sorted(maps.Keys(chaos.Spent)) {
		f.row("of the time: "+step, "%s", chaos.Spent[step].Round(time.Second))
	}
	f.met = done == n
	return f
}
