// Package hostname watches the objects that publish the hostnames of a cluster, checks each hostname from its objects
// to its page, and writes the results into HostnameReports.
//
// Start with Controller.Start in hostname.go. index.go finds out which hostnames an object concerns, schedule.go when
// each is checked, check.go runs a check, status.go and carry.go turn its results into a status, and reports.go writes
// it.
//
// Secrets are never read. An API server or DNS server that is away changes no result: the reports stay as they are, and
// say how old they are.
package hostname

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
)

// LeaderElectionID is the name of the lease. Two controllers would write the same reports in turn.
const LeaderElectionID = "service.nameplane"

// Options are the options of Setup.
type Options struct {
	Gatherer gather.Gatherer // asks the servers, with the Pace of its Options; its Past is replaced
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	// Owner returns whether the owner of a hostname has proved it, or nil if no proof is needed; nil: none is.
	Owner func(ctx context.Context, namespace, host string) *metav1.Condition
}

// workers is the number of hostnames that are checked at the same time. More would only wait for the rate limit of the
// servers that hostnames of one domain share.
const workers = 8

// findAgain is the time after which kinds that were not installed are searched for again.
const findAgain = time.Minute

// Controller checks the hostnames of a cluster.
type Controller struct {
	options  Options
	index    *index
	schedule *schedule
	reports  *reports
	metrics  *metrics
	dynamic  dynamic.Interface
	discover discovery.DiscoveryInterface
	strays   chan types.NamespacedName // reports that another program created

	mu     sync.Mutex // guards the following
	states map[Key]*state
}

// state is what the controller remembers about a hostname between two checks.
type state struct {
	changed time.Time      // when the objects or the results changed last
	past    []explain.Past // earlier results
}

// Setup adds a controller to a manager.
func Setup(mgr ctrl.Manager, o Options) error {
	c, err := newController(mgr, o)
	if err != nil {
		return err
	}
	return mgr.Add(c)
}

func newController(mgr ctrl.Manager, o Options) (*Controller, error) {
	c := &Controller{options: o, index: newIndex(), schedule: newSchedule(), metrics: newMetrics(),
		strays: make(chan types.NamespacedName, 1024), states: map[Key]*state{}}
	for _, m := range c.metrics.collectors() {
		if err := o.Metrics.Register(m); err != nil {
			return nil, err
		}
	}
	var err error
	if c.dynamic, err = dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return nil, err
	}
	c.discover, err = discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	c.reports = &reports{client: mgr.GetClient(), events: mgr.GetEventRecorder("nameplane-service"),
		have: map[types.NamespacedName]*v1alpha1.HostnameReport{}, appeared: c.appeared, deleted: c.deleted}
	return c, err
}

var (
	_ manager.Runnable               = (*Controller)(nil)
	_ manager.LeaderElectionRunnable = (*Controller)(nil)
)

// NeedLeaderElection returns true: only the leader reads objects and asks servers.
func (c *Controller) NeedLeaderElection() bool { return true }

// reportKind is the kind of the reports.
var reportKind = kind{"HostnameReport", "hostnamereports", v1alpha1.GroupVersion.Group,
	[]string{v1alpha1.GroupVersion.Version}}

// Start watches and checks until ctx ends. Nothing is checked or deleted before all objects are known.
func (c *Controller) Start(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	var missing sync.WaitGroup // kinds whose objects are not yet known
	found, err := c.find(ctx, append([]kind{reportKind}, kinds...))
	if err != nil {
		return err // ctx ended
	}
	if _, ok := found[reportKind.name]; !ok {
		return &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind(reportKind.name).GroupKind(),
			SearchedVersions: reportKind.versions}
	}
	missing.Add(len(found))
	c.reports.synced = missing.Done
	group.Go(func() { mirror(ctx, c.dynamic, found[reportKind.name], reportKind.name, c.reports) })
	var absent []kind
	for _, k := range kinds {
		if gvr, ok := found[k.name]; ok {
			group.Go(func() { c.watch(ctx, k, gvr, missing.Done) })
		} else {
			absent = append(absent, k)
			c.options.Log.Info("a kind is not installed; it is watched when it appears", "kind", k.name)
		}
	}
	group.Go(func() { c.findAbsent(ctx, &group, absent) })
	if !waitFor(ctx, &missing) {
		return nil
	}
	c.begin(ctx)
	for range workers {
		group.Go(func() { c.work(ctx) })
	}
	c.settle(ctx)
	return nil
}

// waitFor blocks until a group is done. It returns false if ctx ends first.
func waitFor(ctx context.Context, group *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() { // ends with the group; at the latest with the process
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// find returns the kinds that are installed. It retries while the API server does not answer.
func (c *Controller) find(ctx context.Context, all []kind) (map[string]schema.GroupVersionResource, error) {
	for {
		found, err := served(c.discover, all)
		if err == nil {
			return found, nil
		}
		c.options.Log.Warn("the kinds of the cluster are not known yet", "err", err)
		if err := resolve.Sleep(ctx, whenBroken); err != nil {
			return nil, err
		}
	}
}

// watch keeps the objects of a kind in the index until ctx ends.
func (c *Controller) watch(ctx context.Context, k kind, gvr schema.GroupVersionResource, synced func()) {
	c.index.watching(k.name)
	mirror(ctx, c.dynamic, gvr, k.name, &objectStore{kind: k.name, index: c.index, log: c.options.Log, synced: synced})
}

// findAbsent starts to watch kinds when their definitions appear.
func (c *Controller) findAbsent(ctx context.Context, group *sync.WaitGroup, absent []kind) {
	for len(absent) > 0 && resolve.Sleep(ctx, findAgain) == nil {
		found, err := served(c.discover, absent)
		if err != nil {
			continue // the API server is away, and the next attempt follows
		}
		var left []kind
		for _, k := range absent {
			if gvr, ok := found[k.name]; ok {
				c.options.Log.Info("a kind was installed", "kind", k.name)
				group.Go(func() { c.watch(ctx, k, gvr, func() {}) })
			} else {
				left = append(left, k)
			}
		}
		absent = left
	}
}

// begin schedules all hostnames, and deletes the reports of hostnames that are gone.
func (c *Controller) begin(ctx context.Context) {
	now := time.Now()
	all := c.index.settle()
	for _, key := range all {
		c.stateOf(key).changed = now
		c.schedule.at(key, now)
	}
	for _, at := range c.reports.names() {
		c.removeStray(ctx, at)
	}
	c.options.Log.Info("checking", "hostnames", len(all))
}

// settle passes changes of objects on to the schedule until ctx ends.
func (c *Controller) settle(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-c.strays:
			c.removeStray(ctx, at)
		case <-c.index.signal:
			now := time.Now()
			for _, key := range c.index.settle() {
				c.touch(key, now)
				c.schedule.now(key)
			}
		}
	}
}

// removeStray deletes a report whose hostname no route or Ingress has.
func (c *Controller) removeStray(ctx context.Context, at types.NamespacedName) {
	if _, ok := c.index.named(at); ok {
		return
	}
	if err := c.reports.remove(ctx, at); err != nil {
		c.options.Log.Warn("a report of no hostname stays", "err", err)
	}
}

// appeared is called for a report that was not known.
func (c *Controller) appeared(at types.NamespacedName) {
	select {
	case c.strays <- at:
	default: // before begin, which examines all reports
	}
}

// deleted is called for a report that was deleted. It is written again if its hostname still exists.
func (c *Controller) deleted(at types.NamespacedName) {
	if key, ok := c.index.named(at); ok {
		c.schedule.now(key)
	}
}

// stateOf returns the state of a hostname.
func (c *Controller) stateOf(key Key) *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.states[key] == nil {
		c.states[key] = &state{}
	}
	return c.states[key]
}

// touch records that something about a hostname changed.
func (c *Controller) touch(key Key, now time.Time) {
	s := c.stateOf(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.changed = now
}

// work checks hostnames until ctx ends.
func (c *Controller) work(ctx context.Context) {
	for {
		key, ok := c.schedule.next(ctx)
		if !ok {
			return
		}
		c.schedule.done(key, c.process(ctx, key))
	}
}

// process checks a hostname, writes its report, and returns the time of the next check; zero if it does not exist.
func (c *Controller) process(ctx context.Context, key Key) time.Time {
	at := types.NamespacedName{Namespace: key.Namespace, Name: Name(key.Host)}
	objects, owners := c.index.subset(key)
	if len(owners) == 0 {
		return c.forget(ctx, key, at)
	}
	var old status
	if have := c.reports.get(at); have != nil {
		old = have.Status
	}
	s := c.stateOf(key)
	got, err := c.check(ctx, key, objects, old, s.past) // only the worker that has the key uses past
	if err != nil {
		if ctx.Err() == nil {
			c.options.Log.Error("a hostname cannot be checked", "namespace", key.Namespace, "hostname", key.Host, "err", err)
		}
		return time.Now().Add(whenFine)
	}
	now := time.Now()
	got.status.ObservedGeneration = generationOf(owners[0])
	if c.options.Owner != nil {
		setOwner(&got.status, c.options.Owner(ctx, key.Namespace, key.Host))
	}
	next := carry(old, got.status, got.undecided, now)
	s.past = got.past
	if !sameResult(old, next) {
		c.touch(key, now)
		c.options.Log.Info("result", "namespace", key.Namespace, "hostname", key.Host, "verdict", next.Verdict,
			"broken", next.FirstBroken)
	}
	c.metrics.set(key, next.Conditions)
	if !got.undecided { // otherwise the certificate was not seen, and may still be there
		c.metrics.setExpiry(key, got.expires)
	}
	if err := c.reports.write(ctx, key, owners, next); err != nil {
		if outdated(err) {
			return now.Add(minimumPause)
		}
		if !ending(err) {
			c.options.Log.Warn("a result is not written; it is checked again", "err", err)
		}
		return now.Add(whenBroken)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Add(pause(next, now, s.changed))
}

// forget deletes everything about a hostname that no route or Ingress has.
func (c *Controller) forget(ctx context.Context, key Key, at types.NamespacedName) time.Time {
	if err := c.reports.remove(ctx, at); err != nil {
		c.options.Log.Warn("a report of no hostname stays; it is deleted later", "err", err)
		return time.Now().Add(whenBroken)
	}
	c.metrics.remove(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, key)
	return time.Time{}
}

// generationOf returns the generation of a route or Ingress.
func generationOf(o *object) int64 {
	for _, r := range o.parsed.Routes {
		return r.Generation
	}
	for _, in := range o.parsed.Ingresses {
		return in.Generation
	}
	return 0
}
