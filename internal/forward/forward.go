// Package forward finds answers for names that are not ours: it asks other resolvers, and remembers what they said.
package forward

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// Config says whom to ask, and for whom. The zero value of each field but Upstreams is safe.
type Config struct {
	Upstreams   []resolve.Server // asked in this order: the next ones when the first fail or are slow
	Clients     []netip.Prefix   // for whom names are found; default nobody, because an open resolver is a weapon
	Timeout     time.Duration    // for all that is tried for one question; default 2s, because stubs ask again after 5s or less
	MaxInFlight int              // questions that wait for upstreams at one time; default 1024
	Cache       CacheConfig
	Private     []dnsname.Name    // zones that are not asked for outside; default PrivateZones(); empty but not nil: none
	Roots       *x509.CertPool    // whom to trust for the certificates of TLS upstreams; default whom the system trusts
	Exchanger   resolve.Exchanger // default a resolve.Client
	Log         *slog.Logger
}

// CacheConfig bounds what is remembered.
type CacheConfig struct {
	Size        int           // bytes, everything counted; default DefaultCacheSize
	MinTTL      time.Duration // floor of TTLs; default none, because a short TTL is somebody's wish
	MaxTTL      time.Duration // ceiling of TTLs; default a day
	MaxNegative time.Duration // ceiling of the TTLs of negative answers; default an hour
	// MaxStale is how long an answer may be given after its TTL when no upstream can be reached (RFC 8767); default never.
	MaxStale time.Duration
}

// DefaultCacheSize is the default of CacheConfig.Size.
const DefaultCacheSize = 32 << 20

// Bounds of the Config.
const (
	MaxTimeout = 2400 * time.Millisecond // with what a reply takes besides, below the 2.5s that clients are promised
	minTimeout = 100 * time.Millisecond
	maxTTL     = 7 * 24 * time.Hour // RFC 8767 §4
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
func New(cfg Config) (*Forwarder, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	f := &Forwarder{cache: newCache(cfg.Cache.Size), metrics: newMetrics(), flights: map[string]*flight{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.state.Store(f.newState(cfg, nil))
	return f, nil
}

// complete checks the Config and fills in what was left out.
func (c *Config) complete() error {
	c.Timeout = cmp.Or(c.Timeout, 2*time.Second)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 1024)
	c.Cache.Size = cmp.Or(c.Cache.Size, DefaultCacheSize)
	c.Cache.MaxTTL = cmp.Or(c.Cache.MaxTTL, 24*time.Hour)
	c.Cache.MaxNegative = cmp.Or(c.Cache.MaxNegative, time.Hour)
	if c.Private == nil {
		c.Private = PrivateZones()
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	for i, u := range c.Upstreams {
		if slices.Contains(c.Upstreams[:i], u) {
			return fmt.Errorf("upstream %s is there twice", u)
		}
	}
	switch t := c.Cache; {
	case len(c.Upstreams) == 0:
		return errors.New("there is no upstream to forward to")
	case slices.ContainsFunc(c.Private, dnsname.Name.IsRoot):
		return errors.New("the root cannot be a private zone: there would be nothing to forward")
	case c.Timeout < minTimeout || c.Timeout > MaxTimeout:
		return fmt.Errorf("timeout %s is not between %s and %s", c.Timeout, minTimeout, MaxTimeout)
	case c.MaxInFlight < 0 || t.Size < 0:
		return errors.New("the number of questions in flight and the size of the cache cannot be negative")
	case t.MinTTL < 0 || t.MaxTTL < t.MinTTL || t.MaxTTL > maxTTL:
		return fmt.Errorf("TTLs from %s to %s: they must be in order and at most %s", t.MinTTL, t.MaxTTL, maxTTL)
	case t.MaxNegative < 0 || t.MaxNegative > maxTTL:
		return fmt.Errorf("negative TTL %s is not between 0s and %s", t.MaxNegative, maxTTL)
	case t.MaxStale < 0 || t.MaxStale > maxTTL:
		return fmt.Errorf("stale answers of %s are not between 0s and %s old", t.MaxStale, maxTTL)
	}
	return nil
}

// newState keeps of the state before what stays the same: what is known of upstreams, and the connections to them.
func (f *Forwarder) newState(cfg Config, old *state) *state {
	s := &state{cfg: cfg, exchanger: cfg.Exchanger, local: newLocalZones(cfg.Private)}
	switch {
	case s.exchanger != nil:
	case old != nil && old.cfg.Exchanger == nil && old.cfg.Roots.Equal(cfg.Roots):
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
	if s == nil {
		return nil
	}
	for _, u := range s.upstreams {
		if u.server == server {
			return u
		}
	}
	return nil
}

// SetConfig changes the configuration. What is remembered stays, as do the questions in flight.
func (f *Forwarder) SetConfig(cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.state.Load()
	s := f.newState(cfg, old)
	f.state.Store(s)
	f.cache.resize(cfg.Cache.Size)
	for _, u := range old.upstreams {
		if s.upstream(u.server) == nil {
			u.stop()
			f.metrics.forget(u.server)
		}
	}
	if s.exchanger != old.exchanger {
		closeIdle(old.exchanger)
	}
	return nil
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
