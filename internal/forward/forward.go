// Package forward answers questions for names outside our zones: it queries upstream resolvers and caches their
// answers.
//
// Start with Forwarder.Exchange in flight.go: it answers from the cache (cache.go), locally (local.go), or from
// upstreams (ask.go). scrub.go extracts the answer from an upstream's reply, and upstream.go tracks the health of the
// upstreams.
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

// Config configures a Forwarder. The zero value of each field except Upstreams is safe.
type Config struct {
	Upstreams []resolve.Server // queried in this order: the next ones when the first fail or are slow; no duplicates
	Clients   []netip.Prefix   // clients that may use the forwarder; default none, because an open resolver can be abused
	CacheSize int              // maximum size of the cache in bytes, with all overhead; default DefaultCacheSize
	// MaxStale is how long an answer may be used after its TTL when no upstream can be reached (RFC 8767); default never.
	MaxStale   time.Duration
	AskPrivate bool              // query upstreams for privateZones too
	Roots      *x509.CertPool    // trusted roots for the certificates of TLS upstreams; default the system's
	Exchanger  resolve.Exchanger // default: a resolve.Client
	Log        *slog.Logger
}

// DefaultCacheSize is the default of Config.CacheSize.
const DefaultCacheSize = 32 << 20

// Timeout limits all attempts for one question: stub resolvers repeat a query after 5s or less.
const Timeout = 2 * time.Second

const (
	maxInFlight = 1024           // maximum number of questions that wait for upstreams
	maxTTL      = 24 * time.Hour // maximum TTL; there is no minimum, because a short TTL is the choice of the zone owner
	maxNegative = time.Hour      // maximum TTL of negative answers
)

// Forwarder answers questions for names outside our zones. Its methods are safe for concurrent use.
type Forwarder struct {
	state   atomic.Pointer[state]
	cache   *cache
	metrics *metrics

	ctx  context.Context // cancelled when Run returns
	stop context.CancelFunc

	mu      sync.Mutex // guards the following
	flights map[string]*flight
	closed  bool
	work    sync.WaitGroup // goroutines of flights; probes end with ctx
}

// state is derived from a Config. It is immutable; SetConfig swaps it.
type state struct {
	cfg       Config
	exchanger resolve.Exchanger
	upstreams []*upstream
	local     localZones
}

// New returns a Forwarder, which is ready at once. Run ends it.
func New(cfg Config) *Forwarder {
	f := &Forwarder{cache: newCache(), metrics: newMetrics(), flights: map[string]*flight{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.state.Store(&state{})
	f.SetConfig(cfg)
	return f
}

// newState builds a state. It keeps the health of the upstreams that stay, and their connections.
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

// upstream returns the upstream of a server, or nil.
func (s *state) upstream(server resolve.Server) *upstream {
	for _, u := range s.upstreams {
		if u.server == server {
			return u
		}
	}
	return nil
}

// SetConfig replaces the configuration. The cache and the questions in flight are kept.
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

// Run blocks until ctx is done, and then until the questions in flight have ended, which have a timeout. Later
// questions fail.
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

// Allowed reports whether a client of this address may use the forwarder.
func (f *Forwarder) Allowed(client netip.Addr) bool {
	client = client.Unmap().WithZone("")
	return slices.ContainsFunc(f.state.Load().cfg.Clients, func(p netip.Prefix) bool { return p.Contains(client) })
}
