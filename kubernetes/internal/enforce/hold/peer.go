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
	maxFlights = 4096 // per agent; further holds fail at once
	// Leases beyond maxLeases are not remembered: their addresses are sent again, and replies with them are held again.
	// The limit is for all agents together. Each agent has an equal share, but at least minLeases. A lease takes 150
	// bytes. A server that returns thousands of addresses for each of many names can fill the limit.
	maxLeases, minLeases = 500_000, 5_000
	maxOrphaned          = 10_000 // prefixes of removed agents
	flightTimeout        = 10 * time.Second
	pingEvery            = 5 * time.Second
	pingBroken           = time.Second
	clientIdle           = 15 * time.Second
	minBackoff           = 100 * time.Millisecond
	maxBackoff           = time.Second // short, so that replies wait for a returning agent within a second
	tripAfter            = 3           // consecutive timeouts
	leaseSlack           = time.Second // a reply passes only if this much of its lease is left
	// maxLag is the difference up to which a lease may be shorter than that of a new answer without being renewed. Callers
	// add as much to the time for which clients may use an address, so that no client uses an address without a lease.
	maxLag = 5 * time.Second
)

// agent is the state of one agent, on the plugin's side.
type agent struct {
	endpoint string
	client   *Client
	started  atomic.Bool
	room     atomic.Int64    // maximum number of leases
	removed  context.Context // ends when the agent is removed
	end      context.CancelFunc

	mu       sync.Mutex // guards the fields below; never held while waiting
	stream   *stream    // nil if not connected
	drop     context.CancelCauseFunc
	prefixes []netip.Prefix
	flights  map[key]*flight
	byID     map[uint64]*flight
	leases   map[key]time.Time // end of each lease, by the local clock
	misses   int
	open     bool   // circuit breaker: replies do not wait for this agent
	trial    uint64 // id of the ping whose reply closes the breaker
	lastID   uint64
}

// key is an address of a pattern. There is at most one flight per key, and all replies that need it wait for it.
type key struct {
	pattern string
	addr    netip.Addr
}

// flight is a message that is not acknowledged yet.
type flight struct {
	id   uint64
	what Learned
	born time.Time
	sent time.Time
	done chan struct{} // closed when it is acknowledged or given up
	err  error         // valid after done is closed
}

func newAgent(endpoint string, c *Client) *agent {
	a := &agent{endpoint: endpoint, client: c, flights: map[key]*flight{}, byID: map[uint64]*flight{},
		leases: map[key]time.Time{}}
	a.removed, a.end = context.WithCancel(context.Background())
	return a
}

// program starts flights for the addresses that the agent does not have. It returns the flights that a reply must wait
// for, without those that only renew a lease. open reports that replies must not wait.
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
		// A third of the lease: early enough that no reply waits for a renewal, late enough that a busy name costs little.
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
		f.err = fmt.Errorf("%w: too many messages in flight", ErrBroken)
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
	a.queueLocked(message{Op: opProgram, ID: f.id, Pattern: f.what.Pattern, Name: f.what.Name, Addrs: f.what.Addrs,
		LeaseMS: f.what.Lease.Milliseconds()})
}

func (a *agent) queueLocked(m message) {
	if a.stream == nil {
		return
	}
	if err := a.stream.send(m); err != nil {
		a.drop(err)
	}
}

// endLocked ends a flight. The lease counts from the time of sending, which is before the agent's start.
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

// miss counts a timeout. After tripAfter consecutive ones, replies do not wait for the agent until it answers a ping.
func (a *agent) miss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.misses++
	if a.misses >= tripAfter && !a.open {
		a.open = true
		a.client.opts.Log.Warn("agent did not answer in time; replies do not wait for it until it answers", "agent",
			a.endpoint)
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

// run keeps a connection until ctx ends or the agent is removed.
func (a *agent) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(a.removed, cancel)
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
		a.abandon(ErrBroken, func(f *flight) bool { return time.Since(f.born) > flightTimeout })
		sleep(ctx, backoff/2+rand.N(backoff/2))
		backoff = min(2*backoff, maxBackoff)
	}
}

// abandon ends the flights for which which returns true.
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
