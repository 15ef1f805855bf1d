package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// load sends queries at a rate, from one pod, to several servers in turn.
type load struct {
	sent, answered, failed, late atomic.Int64
	onAnswer                     func(question string) // called concurrently after each answer; may be nil
}

// run queries the names that next returns until ctx ends or next returns an empty name. If no worker is free, a query
// counts as late and is not sent later. That keeps the rate honest: a backlog would turn slow servers into a burst
// later, and hide the delay.
func (l *load) run(ctx context.Context, pod *cluster.Pod, servers []netip.AddrPort, rate int,
	next func() string) error {
	questions := make(chan string, 16)
	var wg sync.WaitGroup
	// At 2000 questions per second, 48 workers are enough for answers of 24 ms.
	for i := range 48 {
		a, err := rig.NewAsker(pod, servers[i%len(servers)])
		if err != nil {
			close(questions)
			return err
		}
		wg.Go(func() {
			defer a.Close()
			for q := range questions {
				m, _, err := a.Ask(q, dns.TypeA, 2*time.Second)
				if err != nil || m.Rcode == dns.RcodeServerFailure {
					l.failed.Add(1)
				} else {
					l.answered.Add(1)
					if l.onAnswer != nil {
						l.onAnswer(q)
					}
				}
			}
		})
	}
	defer wg.Wait()
	defer close(questions)
	const step = 10 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	begun, made := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for due := int(time.Since(begun).Seconds() * float64(rate)); made < due; made++ {
			q := next()
			if q == "" {
				return nil
			}
			select {
			case questions <- q:
				l.sent.Add(1)
			default:
				l.late.Add(1)
			}
		}
	}
}

func (l *load) String() string {
	return fmt.Sprintf("%d sent, %d answered, %d failed, %d not sent in time", l.sent.Load(), l.answered.Load(),
		l.failed.Load(), l.late.Load())
}

// resident returns the resident memory of a process, in bytes. The heap of Go alone would leave out memory that was
// freed but not returned, which the node pays for as well.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no memory", pid)
}
