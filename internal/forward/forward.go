// Package forward finds answers for names that are not ours: it asks other resolvers, and remembers what they said.
package forward

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nameplane/nameplane/internal/resolve"
)

// Config says whom to ask, and for whom. The zero value of each field but Upstreams is safe.
type Config struct {
	Upstreams []resolve.Server // asked in this order: the next ones when the first fail or are slow; each once
	Clients   []netip.Prefix   // for whom names are found; default nobody, because an open resolver is a weapon
	CacheSize int              // bytes of what is remembered, everything counted; default DefaultCacheSize
	// MaxStale is how long an answer may be given after its TTL when no upstream can be reached (RFC 8767); default never.
	MaxStale   time.Duration
	AskPrivate bool              // ask upstreams for privateZones too
	Roots      *x509.CertPool    // whom to trust for the certificates of TLS upstreams; default whom the system trusts
	Exchanger  resolve.Exchanger // default a resolve.Client
	Log        *slog.Logger
}

// DefaultCacheSize is the default of Config.CacheSize.
const DefaultCacheSize = 32 << 20

// Timeout bounds all that is tried for one question: stubs ask again after 5s or less.
const Timeout = 2 * time.Second

const (
	maxInFlight = 1024           // questions that wait for upstreams at one time
	maxTTL      = 24 * time.Hour // ceiling of TTLs; there is no floor, because a short TTL is somebody's wish
	maxNegative = time.Hour      // ceiling of the TTLs of negative answers
)

// Forwarder finds answers. Its methods may be called at the same time.
type Forwarder struct {
	state   atomic.Pointer[state]
	cache   *cache
	metrics *metrics

	ctx  context.Context // ends when Run does
	stop context.CancelFunc

	mu      sync.Mutex // guards the following
	flights map[string]*flight
	closed  bool
	work    sync.WaitGroup // goroutines of flights; probes end with ctx
}

// state is what follows from a Config. It does not change; SetConfig swaps it.
type state struct {
	cfg       Config
	exchanger resolve.Exchanger
	upstreams []*upstream
	local     localZones
}

// New makes a Forwarder. It is ready at once; Run is what ends it.
func New(cfg Config) *Forwarder {
	f := &Forwarder{cache: newCache(), metrics: newMetrics(), flights: map[string]*flight{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.state.Store(&state{})
	f.SetConfig(cfg)
	return f
}

// newState keeps of the state before what stays the same: what is known of upstreams, and the connections to them.
func (f *Forwarder) newState(cfg Config, old *state) *state {
	s := &state{cfg: cfg, exchanger: cfg.Exchanger, local: newLocalZones(cfg.AskPrivate)}
	switch {
	case s.exchanger != nil:
	case old.exchanger != nil && old.cfg.Exchanger == nil && old.cfg.Roots.Equal(cfg.Roots):
		s.exchanger = old.exchanger
	default:
		s.exchanger = &resolve.Client{Roots: cfg.Roots}
	}
	for _, server := range cfg.Upstreams {
		u := old.upstream(server)
		if u == nil {
			u = newUpstream(f.ctx, server)
		}
		s.upstreams = append(s.upstreams, u)
	}
	return s
}

// upstream finds what is known of a server; nil for nothing.
func (s *state) upstream(server resolve.Server) *upstream {
	for _, u := range s.upstreams {
		if u.server == server {
			return u
		}
	}
	return nil
}

// SetConfig changes the configuration. What is remembered stays, as do the questions in flight.
func (f *Forwarder) SetConfig(cfg Config) {
	cfg.CacheSize = cmp.Or(cfg.CacheSize, DefaultCacheSize)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.state.Load()
	s := f.newState(cfg, old)
	f.state.Store(s)
	f.cache.resize(cfg.CacheSize)
	for _, u := range old.upstreams {
		if s.upstream(u.server) == nil {
			u.stop()
			f.metrics.forget(u.server)
		}
	}
	if s.exchanger != old.exchanger {
		closeIdle(old.exchanger)
	}
}

func closeIdle(e resolve.Exchanger) {
	if c, ok := e.(*resolve.Client); ok {
		c.CloseIdle()
	}
}

// Run waits for the end of ctx, and then for the questions in flight, which have their timeout. Questions that come later
// fail.
func (f *Forwarder) Run(ctx context.Context) error {
	<-ctx.Done()
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.work.Wait()
	f.stop()
	closeIdle(f.state.Load().exchanger)
	return nil
}

// Allowed reports whether names that are not ours are found for a client of this address.
func (f *Forwarder) Allowed(client netip.Addr) bool {
	client = client.Unmap().WithZone("")
	return slices.ContainsFunc(f.state.Load().cfg.Clients, func(p netip.Prefix) bool { return p.Contains(client) })
}
