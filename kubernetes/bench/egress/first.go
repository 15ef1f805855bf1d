package main

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// hold is the default hold, stated explicitly for the reader. A timeout ends in SERVFAIL, which is not the default:
// otherwise a late answer could not be distinguished from one that was in time.
const hold = "hold 250ms\non_timeout servfail"

// space is the namespace of the pods of a figure.
const space = "bench"

// site is a system with one pod whose firewall allows all names of a suffix.
type site struct {
	*rig.System
	pod *cluster.Pod
}

const suffix = "bench.test"

// start returns when the firewall is in force. Otherwise the first queries would measure the start of the system.
func start(t cluster.T, o options, opts rig.Options, rules ...string) site {
	opts.Bin = o.bin
	s := site{System: rig.Start(t, opts)}
	s.pod = s.Pod(s.Nodes[0], space, "web")
	s.Authority.Fresh(suffix, time.Minute)
	if rules == nil {
		rules = append([]string{"allow *." + suffix}, rig.DenyRest...)
	}
	if err := s.Firewall(space, rules...); err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

// tries is the result of many queries and connections.
type tries struct {
	asked, connected []time.Duration
	lost, failed     int // connections whose first SYN was lost; queries without an answer
}

// connectAfterAsking queries new names, one after the other, and connects to each when its answer arrives. Names are
// never repeated: only the first answer with an address is held.
func (s site) connectAfterAsking(r *rig.Replica, from, n int) tries {
	var out tries
	a, err := rig.NewAsker(s.pod, r.At)
	if err != nil {
		out.failed = n
		return out
	}
	defer a.Close()
	for i := from; i < from+n; i++ {
		s.try(a, rig.Name(i, suffix), &out)
	}
	return out
}

// stageNames are the measured stages of a hold. They are read from the metrics of the parts, because a client sees
// only their sum.
var stageNames = []struct{ what, metric, labels string }{
	{"the hold, in CoreDNS", "coredns_dnsnameresolver_hold_duration_seconds", `{result="programmed"}`},
	{"programming, in the agent", "nameplane_egress_agent_program_seconds", ""},
	{"its first part: waiting for the previous write", stageMetric, `{stage="turn"}`},
	{"its second part: the write", stageMetric, `{stage="write"}`},
	{"its third part: waiting until the switch confirms", stageMetric, `{stage="confirm"}`},
}

const stageMetric = "nameplane_egress_agent_program_stage_seconds"

// stages returns the metrics of the parts that a hold involves.
func (s site) stages(t cluster.T) map[string]float64 {
	out := map[string]float64{}
	for _, p := range []*rig.Part{s.DNS[0].Part, s.Nodes[0].Agent} {
		m, err := p.Metrics()
		if err != nil {
			t.Fatalf("%v", err)
		}
		maps.Copy(out, m)
	}
	return out
}

// average returns the mean of the values that a histogram counted between two reads.
func average(before, after map[string]float64, metric, labels string) time.Duration {
	sum, count := metric+"_sum"+labels, metric+"_count"+labels
	n := after[count] - before[count]
	if n == 0 {
		return 0
	}
	return time.Duration((after[sum] - before[sum]) / n * float64(time.Second))
}

// firstPackets measures the main figure: first packets at an even rate, as pods of a node use new names, and back to
// back, as fast as one client can with the whole machine.
func firstPackets(t cluster.T, o options) figure {
	n := o.scaled(1000, 300)
	f := figure{title: fmt.Sprintf("First packets: %d names, each with a fresh address, connect() as soon as the "+
		"reply arrives", n),
		want: "no first SYN lost, at most 10 ms more for a reply at the 99th percentile"}
	s, off := startCompared(t, o, rig.Options{Plugin: hold})
	var judged series
	c := compared{before: s.stages(t)}
	c.with = s.connectAfterAsking(s.DNS[0], 0, n)
	c.after = s.stages(t)
	c.without = s.connectAfterAsking(off, n, n)
	c.rows(&f, "", n)
	judged.add("back to back", c.met())
	few := o.scaled(300, 100)
	for i, p := range []pace{{10, n, false}, {20, few, false}, {10, n, true}, {5, few, true}} {
		s.measure(t, off, (i+1)*20_000, p, &f, &judged)
	}
	f.verdict, f.met = judged.verdict(), len(judged.missed) == 0
	return f
}

// localPackets is firstPackets with confirmation by the node's own switch, and with as many names known before.
func localPackets(t cluster.T, o options) figure {
	n := o.scaled(1000, 300)
	f := figure{title: fmt.Sprintf("First packets where the node's switch confirms (`--switch`): %d names", n),
		want: "no first SYN lost, at most 10 ms more for a reply at the 99th percentile"}
	s, off := startCompared(t, o, rig.Options{Plugin: hold, Switch: true})
	s.connectAfterAsking(s.DNS[0], 0, n)
	var judged series
	for i, p := range []pace{{10, o.scaled(300, 100), false}, {10, n, true}} {
		s.measure(t, off, (i+1)*20_000, p, &f, &judged)
	}
	f.verdict, f.met = judged.verdict(), len(judged.missed) == 0
	return f
}

// measure records the results of one pace.
func (s site) measure(t cluster.T, off *rig.Replica, from int, p pace, f *figure, judged *series) {
	if p.apart {
		s.yield(t)
	}
	c := s.paced(t, off, from, p)
	name := fmt.Sprintf("at %v", p)
	f.row(name, "%d names, every other with hold off", 2*p.names)
	c.rows(f, name, p.names)
	judged.add(name, c.met())
}

// startCompared is start with an additional CoreDNS replica that does not hold. Both have answered, and the copies of
// the databases are disconnected. Both run at the same time, so that the noise of the machine affects them alike.
func startCompared(t cluster.T, o options, opts rig.Options) (site, *rig.Replica) {
	s := start(t, o, opts)
	off, err := s.Replica("hold off")
	if err == nil {
		err = s.Answers(off)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.connectAfterAsking(s.DNS[0], 1_000_000, 50) // warm up both
	s.connectAfterAsking(off, 1_001_000, 50)
	s.Nodes[0].Disconnect()
	return s, off
}

// yield lowers the priority of the parts that would be on other machines: the API server with its etcd, the
// controllers, and the CoreDNS replica without queries.
func (s site) yield(t cluster.T) {
	for _, p := range []*cluster.Process{s.API, s.Etcd, s.Manager.Process, s.Resolver.Process, s.DNS[1].Process} {
		if err := p.Yield(); err != nil {
			t.Fatalf("%v", err)
		}
	}
}

// burst measures the load at which the stock plugin lost 85 of 100 names. Each name changes the status of the same
// wildcard: two replicas that write it at the same time conflict, and an update that is lost there is never repeated
// by a client.
func burst(t cluster.T, o options) figure {
	const n = 100
	f := figure{title: "Burst: 100 fresh names under one wildcard in one second, from two replicas",
		want: "all in the custom resource and in the address set within 1 s of the last reply"}
	s := start(t, o, rig.Options{Plugin: hold})
	type reply struct {
		addr netip.Addr
		at   time.Time
	}
	replies := make(chan reply, n)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		go func() {
			m, _, err := rig.Ask(s.pod, s.DNS[i%2].At, rig.Name(i, suffix), dns.TypeA, 5*time.Second)
			if err != nil || len(rig.Addrs(m)) == 0 {
				replies <- reply{at: time.Now()}
				return
			}
			replies <- reply{rig.Addrs(m)[0], time.Now()}
		}()
	}
	var want []netip.Addr
	var last time.Time
	for range n {
		r := <-replies
		if r.addr.IsValid() {
			want = append(want, r.addr)
		}
		if r.at.After(last) {
			last = r.at
		}
	}
	var stored, inSet time.Duration
	missing := 0
	err := rig.Within(30*time.Second, func() error {
		got, err := s.Stored("*." + suffix)
		if err != nil {
			return err
		}
		set, err := s.Nodes[0].Learned("*." + suffix)
		if err != nil {
			return err
		}
		noSet := count(want, func(a netip.Addr) bool { return !slices.Contains(set, a) })
		missing = count(want, func(a netip.Addr) bool { return !slices.Contains(got, a.String()) })
		if noSet == 0 && inSet == 0 {
			inSet = time.Since(last)
		}
		if missing > 0 || noSet > 0 {
			return fmt.Errorf("%d not stored, %d not in the set", missing, noSet)
		}
		stored = time.Since(last)
		return nil
	})
	f.row("replies with an address", "%d of %d", len(want), n)
	f.row("not in the custom resource at the end", "%d", missing)
	f.row("all in the address set, seen after the last reply", "%s", ms(inSet))
	f.row("all in the custom resource, seen after the last reply", "%s", ms(stored))
	f.row("the stock plugin, measured with one replica", "85 of 100 lost for good")
	f.met = err == nil && len(want) == n && stored <= time.Second && inSet <= time.Second
	return f
}

func count[T any](all []T, is func(T) bool) int {
	n := 0
	for _, x := range all {
		if is(x) {
			n++
		}
	}
	return n
}

var benchLine = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op.*?(\d+) allocs/op`)

// cost runs the benchmarks of the plugin's own packages: from outside, a microsecond cannot be distinguished from
// noise.
func cost(t cluster.T, _ options) figure {
	f := figure{title: "Names of no rule: what the plugin costs, with 100,000 patterns",
		want: "under 1 µs and no allocation"}
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", "Unmatched|Append", "-benchmem", "-benchtime", "1s",
		"github.com/nameplane/nameplane/kubernetes/plugin/dnsnameresolver",
		"github.com/nameplane/nameplane/kubernetes/internal/enforce/match").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type result struct{ ns, allocs float64 }
	by := map[string]result{}
	for _, m := range benchLine.FindAllStringSubmatch(string(out), -1) {
		ns, e1 := strconv.ParseFloat(m[2], 64)
		allocs, e2 := strconv.ParseFloat(m[3], 64)
		if err := errors.Join(e1, e2); err != nil {
			t.Fatalf("%v", err)
		}
		by[m[1]] = result{ns, allocs}
		f.row("`"+m[1]+"`", "%s ns, %s allocations", m[2], m[3])
	}
	with, ok := by["Unmatched/with"]
	without, ok2 := by["Unmatched/without"]
	f.row("a query through the plugin, minus the same query without it", "%.0f ns, %.0f allocations", with.ns-without.ns,
		with.allocs-without.allocs)
	// The difference counts, because most of the time is that of CoreDNS itself.
	f.met = ok && ok2 && with.ns-without.ns < 1000 && with.allocs == without.allocs
	return f
}
