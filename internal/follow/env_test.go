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

// testEnv is a tracker on an in-memory network. It runs in a synctest bubble.
type testEnv struct {
	*follow.Tracker
	net   *simnet.Net
	stop  context.CancelFunc
	ended chan struct{} // closed when Run has returned

	mu      sync.Mutex // guards changes
	changes []reported
}

// reported is a change and the time of its report.
type reported struct {
	at time.Duration
	follow.Change
}

// noJitter makes every wait the longest possible after an answer, and the shortest possible after a failure.
func noJitter() float64 { return 0 }

// newTestEnv returns a tracker that queries the given servers. Call start to run it.
func newTestEnv(net *simnet.Net, opts follow.Options, servers ...string) *testEnv {
	r := &testEnv{net: net, ended: make(chan struct{})}
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

// start runs the tracker until the test ends, or until end is called.
func (r *testEnv) start(t *testing.T) {
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
func (r *testEnv) end() {
	r.stop()
	<-r.ended
}

func (r *testEnv) note(c follow.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, reported{r.net.Age(), c})
}

// changesSince returns the reported changes from the n-th on.
func (r *testEnv) changesSince(n int) []reported {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes[n:])
}

// until advances the time until the network has the given age.
func (r *testEnv) until(age time.Duration) {
	time.Sleep(age - r.net.Age())
	synctest.Wait()
}

// stateText returns the state of a name in one line.
func (r *testEnv) stateText(name string, f follow.Family) string {
	s, ok := r.State(dnsname.MustParse(name), f)
	if !ok {
		return "not followed"
	}
	return brief(s)
}

// brief formats a state in one line: the result of the last attempt, and the addresses.
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
