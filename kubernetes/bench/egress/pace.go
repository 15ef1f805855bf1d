package main

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// within is the maximum added time of a held reply, at the 99th percentile.
const within = 10 * time.Millisecond

// compared has the results with hold on and with hold off.
type compared struct {
	with, without tries
	before, after map[string]float64 // metrics of the parts that hold, before and after
}

// added returns the cost of a hold at the 99th percentile.
func (c compared) added() time.Duration {
	return share(c.with.asked, .99) - share(c.without.asked, .99)
}

func (c compared) met() bool {
	return c.with.lost == 0 && c.with.failed == 0 && len(c.with.asked) > 0 && c.added() <= within
}

// rows adds the rows; series is empty for the first one.
func (c compared) rows(f *figure, series string, n int) {
	if series != "" {
		series += ", "
	}
	for _, x := range []struct {
		name string
		tries
	}{{series + "hold on", c.with}, {series + "hold off", c.without}} {
		f.row(x.name+": first SYNs lost", "%d of %d", x.lost, n)
		f.row(x.name+": questions without an answer", "%d", x.failed)
		f.row(x.name+": reply p50, p99", "%s, %s", ms(share(x.asked, .5)), ms(share(x.asked, .99)))
		f.row(x.name+": connect p50, p99", "%s, %s", ms(share(x.connected, .5)), ms(share(x.connected, .99)))
	}
	for _, stage := range stageNames {
		f.row(series+"hold on: mean of "+stage.what, "%s", ms(average(c.before, c.after, stage.metric, stage.labels)))
	}
	f.row(series+"added: p99 with hold minus p50 without", "%s", ms(share(c.with.asked, .99)-share(c.without.asked, .5)))
	f.row(series+"added: p99 with hold minus p99 without", "%s", ms(c.added()))
}

// pace is the rate of new names, their number for each side, and whether the rest of the cluster leaves the machine to
// the node.
type pace struct {
	perSecond, names int
	apart            bool
}

func (p pace) String() string {
	if p.apart {
		return fmt.Sprintf("%d names per second with the rest of the cluster at low priority", p.perSecond)
	}
	return fmt.Sprintf("%d names per second", p.perSecond)
}

// paced queries a new name at each tick, whatever the result of the previous one, and connects when its answer arrives.
// Every other name goes through the replica that does not hold. Both thus see the same machine, and a held address is
// the neighbour of one that was just refused.
func (s site) paced(t cluster.T, off *rig.Replica, from int, p pace) compared {
	out := compared{before: s.stages(t)}
	sides := [2]*rig.Replica{s.DNS[0], off}
	var got [2]tries
	var mu sync.Mutex // guards got
	var wg sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(p.perSecond))
	defer tick.Stop()
	for i := range 2 * p.names {
		<-tick.C
		wg.Go(func() {
			side, name := i%2, rig.Name(from+i, suffix)
			one := s.connectOnce(sides[side], name)
			mu.Lock()
			defer mu.Unlock()
			got[side].add(one)
		})
	}
	wg.Wait()
	out.with, out.without, out.after = got[0], got[1], s.stages(t)
	return out
}

func (t *tries) add(o tries) {
	t.asked, t.connected = append(t.asked, o.asked...), append(t.connected, o.connected...)
	t.lost, t.failed = t.lost+o.lost, t.failed+o.failed
}

// connectOnce queries one name, with a socket that is opened before the measurement, and connects.
func (s site) connectOnce(r *rig.Replica, name string) (out tries) {
	a, err := rig.NewAsker(s.pod, r.At)
	if err != nil {
		out.failed++
		return out
	}
	defer a.Close()
	s.try(a, name, &out)
	return out
}

// try queries a name, and connects to its address when the answer arrives. A connection that takes more than a tenth of
// a second lost its first SYN: the next SYN comes after a second.
func (s site) try(a *rig.Asker, name string, out *tries) {
	m, took, err := a.Ask(name, dns.TypeA, 5*time.Second)
	if err != nil || len(rig.Addrs(m)) == 0 {
		out.failed++
		return
	}
	out.asked = append(out.asked, took)
	d := s.pod.Dial(netip.AddrPortFrom(rig.Addrs(m)[0], 80), 100*time.Millisecond)
	if d.Conn == nil || d.Lost > 0 {
		out.lost++
	} else {
		out.connected = append(out.connected, d.Took)
	}
	if d.Conn != nil {
		_ = d.Conn.Close()
	}
}

// series are the verdicts of several methods to measure one figure.
type series struct{ met, missed []string }

func (s *series) add(name string, met bool) {
	if met {
		s.met = append(s.met, name)
	} else {
		s.missed = append(s.missed, name)
	}
}

// verdict lists the methods that met the target and those that did not.
func (s series) verdict() string {
	var out []string
	for _, x := range []struct {
		word string
		of   []string
	}{{"met", s.met}, {"missed", s.missed}} {
		if len(x.of) > 0 {
			out = append(out, x.word+" "+strings.Join(x.of, ", "))
		}
	}
	return strings.Join(out, "; ")
}
