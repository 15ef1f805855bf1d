package hold

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxFlights = 4096 // of one agent; more holds than that end at once
	// Leases beyond these are not remembered: their addresses are told again, and replies with them held again. They are for
	// all agents together, each of which has a share, but not too small a one. One takes 150 octets, and whoever answers with thousands of
	// addresses for each of many names can have as many of them as there may be.
	maxLeases, minLeases = 500_000, 5_000
	maxLeft              = 10_000 // prefixes of agents that are gone
	flightLife           = 10 * time.Second
	pingEvery            = 5 * time.Second
	pingBroken           = time.Second
	clientIdle           = 15 * time.Second
	minBackoff           = 100 * time.Millisecond
	maxBackoff           = time.Second // so that an agent that comes back is waited for within a second
	tripAfter            = 3           // holds in a row that ran out
	leaseSlack           = time.Second // of a lease must be left for a reply to pass at once
	// maxLag is by how much a lease may be shorter than a new answer asks for without being renewed. Those who lease add as
	// much to the time for which clients may use an address, so that no client ever has one whose lease is over.
	maxLag = 5 * time.Second
)

// agent is one agent, seen from a plugin.
type agent struct {
	endpoint string
	client   *Client
	started  atomic.Bool
	room     atomic.Int64    // for leases
	gone     context.Context // ends when the agent is no longer one of ours
	end      context.CancelFunc

	mu       sync.Mutex // guards all below; never held while waiting
	stream   *stream    // nil: not connected
	drop     context.CancelCauseFunc
	prefixes []netip.Prefix
	flights  map[key]*flight
	byID     map[uint64]*flight
	leases   map[key]time.Time // until when, by our own clock
	misses   int
	open     bool   // the breaker: not waited for
	trial    uint64 // the ping that closes it again
	lastID   uint64
}

// key is one address of one pattern. There is one flight at a time for it, which all who need it wait for.
type key struct {
	pattern string
	addr    netip.Addr
}

// flight is one message that waits for its acknowledgement.
type flight struct {
	id   uint64
	what Learned
	born time.Time
	sent time.Time
	done chan struct{} // closed when it is acknowledged or given up
	err  error         // to be read after that
}

func newAgent(endpoint string, c *Client) *agent {
	a := &agent{endpoint: endpoint, client: c, flights: map[key]*flight{}, byID: map[uint64]*flight{}, leases: map[key]time.Time{}}
	a.gone, a.end = context.WithCancel(context.Background())
	return a
}

// program starts flights for what the agent does not have, and returns those that a reply must wait for: not the ones that
// only renew a lease. open says that nobody should wait.
func (a *agent) program(what []Learned) (waits []*flight, open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, l := range what {
		l.Lease = min(l.Lease, maxLease)
		waits = a.programLocked(waits, l, now)
	}
	return waits, a.open
}

func (a *agent) programLocked(waits []*flight, l Learned, now time.Time) []*flight {
	var fresh []netip.Addr
	must := false
	for _, addr := range l.Addrs {
		k := key{l.Pattern, addr}
		until := a.leases[k]
		known := until.Sub(now) > leaseSlack
		// A third: often enough that no reply waits for a renewal, seldom enough that a busy name costs little.
		lag := min(l.Lease/3, maxLag)
		if f := a.flights[k]; f != nil {
			if !known && !slices.Contains(waits, f) {
				waits = append(waits, f)
			}
			if l.Lease-f.what.Lease > lag { // another name has the same address for longer
				fresh = append(fresh, addr)
			}
			continue
		}
		if known && now.Add(l.Lease).Sub(until) <= lag {
			continue
		}
		fresh = append(fresh, addr)
		must = must || !known
	}
	for len(fresh) > 0 {
		n := min(len(fresh), maxAddrs)
		f := a.startLocked(Learned{l.Pattern, l.Name, fresh[:n:n], l.Lease}, now)
		fresh = fresh[n:]
		if must {
			waits = append(waits, f)
		}
	}
	return waits
}

func (a *agent) startLocked(l Learned, now time.Time) *flight {
	a.lastID++
	f := &flight{id: a.lastID, what: l, born: now, done: make(chan struct{})}
	if len(a.byID) >= maxFlights {
		f.err = fmt.Errorf("%w: too many wait for it", ErrBroken)
		close(f.done)
		return f
	}
	a.byID[f.id] = f
	for _, addr := range l.Addrs {
		a.flights[key{l.Pattern, addr}] = f
	}
	a.sendLocked(f, now)
	return f
}

// sendLocked sends a flight, or leaves it to the next connection.
func (a *agent) sendLocked(f *flight, now time.Time) {
	f.sent = now
	a.queueLocked(message{Op: opProgram, ID: f.id, Pattern: f.what.Pattern, Name: f.what.Name, Addrs: f.what.Addrs, LeaseMS: f.what.Lease.Milliseconds()})
}

func (a *agent) queueLocked(m message) {
	if a.stream == nil {
		return
	}
	if err := a.stream.send(m); err != nil {
		a.drop(err)
	}
}

// endLocked ends a flight. The lease counts from when it was sent, which is before the agent began to count.
func (a *agent) endLocked(f *flight, err error) {
	delete(a.byID, f.id)
	for _, addr := range f.what.Addrs {
		k := key{f.what.Pattern, addr}
		if a.flights[k] == f {
			delete(a.flights, k)
		}
		if until := f.sent.Add(f.what.Lease); err == nil && until.After(a.leases[k]) && int64(len(a.leases)) < a.room.Load() {
			a.leases[k] = until
		}
	}
	f.err = err
	close(f.done)
}

// miss counts a hold that ran out. After some in a row the agent is not waited for until it answers a ping.
func (a *agent) miss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.misses++
	if a.misses >= tripAfter && !a.open {
		a.open = true
		a.client.opts.Log.Warn("agent is not waited for until it answers", "agent", a.endpoint)
		a.lastID++
		a.trial = a.lastID
		a.queueLocked(message{Op: opPing, ID: a.trial})
	}
}

func (a *agent) closeBreakerLocked() {
	if a.open {
		a.client.opts.Log.Info("agent answers again", "agent", a.endpoint)
	}
	a.open, a.misses = false, 0
}

func (a *agent) announced() []netip.Prefix {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.prefixes
}

func (a *agent) state() AgentState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return AgentState{a.stream != nil, a.open, len(a.leases)}
}

// run keeps a connection until ctx ends or the agent is gone.
func (a *agent) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(a.gone, cancel)
	defer stop()
	defer a.abandon(ErrBroken, func(*flight) bool { return true })
	backoff := minBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := a.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		a.client.opts.Log.Warn("no connection to agent", "agent", a.endpoint, "err", err)
		if time.Since(began) > maxBackoff {
			backoff = minBackoff
		}
		a.abandon(ErrBroken, func(f *flight) bool { return time.Since(f.born) > flightLife })
		sleep(ctx, backoff/2+rand.N(backoff/2))
		backoff = min(2*backoff, maxBackoff)
	}
}

// abandon ends the flights that are not to go on.
func (a *agent) abandon(err error, which func(*flight) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.byID {
		if which(f) {
			a.endLocked(f, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
