package daemon

import (
	"context"
	"net"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// following keeps ALIAS records up to date. It has the service that flattens them, and the tracker of targets outside
// the zones of this server.
type following struct {
	aliases *alias.Service
	client  *resolve.Client
	special specialaddr.Table
	next    chan config.Follow // new configurations from Reload

	mu      sync.Mutex // guards wanted and tracker
	wanted  config.Follow
	tracker *follow.Tracker // nil when no resolver is configured
}

func newFollowing(d *Daemon) *following {
	return &following{client: &resolve.Client{}, next: make(chan config.Follow, 1), wanted: d.cfg.Follow,
		special: d.cfg.Special(), aliases: alias.New(alias.Options{Log: d.log})}
}

// newTracker returns a tracker, or nil when no resolver is configured.
func (f *following) newTracker(c config.Follow) *follow.Tracker {
	if len(c.Resolvers) == 0 {
		return nil
	}
	return follow.New(follow.Options{Exchanger: f.client, Servers: c.Servers(), Changed: f.aliases.Changed,
		Floor:   c.TTLFloor,
		Ceiling: c.Interval})
}

// set applies a configuration. own lists the addresses of this server.
func (f *following) set(c config.Follow, own []netip.Addr) *follow.Tracker {
	f.aliases.SetPolicy(alias.Policy{Special: f.special, AllowPrivate: c.AllowPrivate, AllowOwn: c.AllowOwn, Own: own,
		StaleLimit: time.Duration(c.StaleLimit), AllZones: c.OwnZones == config.OwnZonesAll})
	t := f.newTracker(c)
	f.aliases.SetTracker(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tracker = t
	return t
}

// reload passes a configuration to run when it differs from the last one.
func (f *following) reload(c config.Follow) {
	f.mu.Lock()
	same := reflect.DeepEqual(f.wanted, c)
	f.wanted = c
	f.mu.Unlock()
	if same {
		return
	}
	select {
	case <-f.next: // drop an older configuration that run has not received
	default:
	}
	f.next <- c
}

// Describe sends nothing, because the metrics of resolvers change with the configuration.
func (f *following) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of the running tracker.
func (f *following) Collect(out chan<- prometheus.Metric) {
	f.mu.Lock()
	t := f.tracker
	f.mu.Unlock()
	if t == nil {
		return
	}
	for _, c := range t.Collectors() {
		c.Collect(out)
	}
}

// run follows targets and flattens ALIAS records until ctx ends. A new configuration starts a new tracker with the
// state of the old one.
func (f *following) run(ctx context.Context, own []netip.Addr) error {
	defer f.client.CloseIdle()
	var all sync.WaitGroup
	all.Go(func() { _ = f.aliases.Run(ctx) })
	defer all.Wait()
	f.mu.Lock()
	c := f.wanted
	f.mu.Unlock()
	for {
		t := f.set(c, own)
		tctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			if t == nil {
				<-tctx.Done()
				ended <- nil
				return
			}
			ended <- t.Run(tctx)
		}()
		select {
		case c = <-f.next:
			cancel()
			<-ended
		case err := <-ended:
			cancel()
			return err
		}
	}
}

// ownAddresses returns the addresses on which this server answers queries. For a listener on all addresses, these are
// all addresses of the machine.
func (d *Daemon) ownAddresses() (out []netip.Addr) {
	for _, a := range d.dns.Addrs() {
		if !a.Addr().IsUnspecified() {
			out = append(out, a.Addr().Unmap())
			continue
		}
		all, _ := net.InterfaceAddrs() // after an error, the server's own addresses are not recognized
		for _, i := range all {
			if p, err := netip.ParsePrefix(i.String()); err == nil {
				out = append(out, p.Addr().Unmap())
			}
		}
	}
	return out
}
