package follow_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
)

// rig is a tracker on a network in memory. It lives in a synctest bubble.
type rig struct {
	*follow.Tracker
	net   *simnet.Net
	stop  context.CancelFunc
	ended chan struct{} // Run has

	mu      sync.Mutex // guards changes
	changes []told
}

// told is a change, and when it was told.
type told struct {
	at time.Duration
	follow.Change
}

// noJitter makes every wait the longest it can be after an answer, and the shortest after a failure.
func noJitter() float64 { return 0 }

// newRig makes a tracker that asks the given servers. It runs after start.
func newRig(net *simnet.Net, opts follow.Options, servers ...string) *rig {
	r := &rig{net: net, ended: make(chan struct{})}
	if opts.Exchanger == nil {
		opts.Exchanger = net
	}
	if opts.Changed == nil {
		opts.Changed = r.note
	}
	for _, s := range servers {
		srv, err := resolve.ParseServer(s)
		if err != nil {
			panic(err)
		}
		opts.Servers = append(opts.Servers, srv)
	}
	r.Tracker = follow.New(opts)
	return r
}

// start runs the tracker until the test ends, or until end.
func (r *rig) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() {
		defer close(r.ended)
		if err := r.Run(ctx); err != nil {
			t.Errorf("Run = %v", err)
		}
	}()
	t.Cleanup(r.end)
	synctest.Wait()
}

// end stops the tracker and waits for it.
func (r *rig) end() {
	r.stop()
	<-r.ended
}

func (r *rig) note(c follow.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, told{r.net.Age(), c})
}

// toldSince are the changes from the n-th on.
func (r *rig) toldSince(n int) []told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes[n:])
}

// until lets the network grow so old.
func (r *rig) until(age time.Duration) {
	time.Sleep(age - r.net.Age())
	synctest.Wait()
}

// know is what the tracker knows of a name, in a line.
func (r *rig) know(name string, f follow.Family) string {
	s, ok := r.State(dnsname.MustParse(name), f)
	if !ok {
		return "not followed"
	}
	return brief(s)
}

// brief is a state in a line: how the last attempt ended, and what is known.
func brief(s follow.State) string {
	out := string(s.Cause())
	if s.Err != nil {
		out += ", before that " + string(s.Answer)
		if s.Answer == "" {
			out += "nothing"
		}
	}
	for _, a := range s.Addrs {
		out += " " + a.String()
	}
	if len(s.Addrs) > 0 {
		out += fmt.Sprintf(" ttl %d", s.TTL/time.Second)
	}
	return strings.TrimSpace(out)
}

func name(s string) dnsname.Name { return dnsname.MustParse(s) }

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}
