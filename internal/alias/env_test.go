package alias_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

var actor = store.Actor{Who: "test", API: "test"}

const resolver = "192.0.2.53"

// testEnv is a Service on a store, with a tracker on an in-memory network. It runs in a synctest bubble.
type testEnv struct {
	*alias.Service
	t       *testing.T
	net     *simnet.Net
	pub     *publish.Publisher
	tracker *follow.Tracker
	store   *flaky
	stop    func() // stops everything cleanly
	path    string // path of the store

	mu        sync.Mutex // guards the following
	log       []string   // events, mostly commits
	flattened []int      // number of flattened record sets that each commit changed
}

// note logs the changes of a commit that are visible in DNS.
func (r *testEnv) note(changes []store.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	flattened := 0
	defer func() { r.flattened = append(r.flattened, flattened) }()
	for _, c := range changes {
		for _, s := range c.Sets {
			if s.After != nil && s.After.Hidden {
				flattened++
			}
			set, verb := s.After, "serves"
			if set == nil {
				set, verb = s.Before, "no longer serves"
			}
			if set.Type != rr.TypeA && set.Type != rr.TypeAAAA {
				continue
			}
			text := fmt.Sprintf("%v %s %s %s %d", r.net.Age(), verb, set.Name, set.Type, set.Served(c.ZoneTTL).TTL)
			for _, d := range set.Data {
				text += " " + rr.DataText(set.Type, d)
			}
			r.log = append(r.log, text)
		}
	}
}

// logf adds an event to the log.
func (r *testEnv) logf(format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf("%v ", r.net.Age())+fmt.Sprintf(format, a...))
}

// flaky is a store that can refuse changes.
type flaky struct {
	store.Store
	mu     sync.Mutex // guards the following
	broken bool
	writes int
	before func() // called in each commit before it reaches the disk
}

func (f *flaky) Update(fn func(store.Writer) error) error {
	err := f.Store.Update(func(w store.Writer) error {
		if err := fn(w); err != nil { // fn may take edits that were submitted after Update began
			return err
		}
		f.mu.Lock()
		broken, before := f.broken, f.before
		f.mu.Unlock()
		if before != nil {
			before()
		}
		if broken {
			return fmt.Errorf("no room: %w", store.ErrUnavailable)
		}
		return nil
	})
	if err == nil {
		f.mu.Lock()
		f.writes++
		f.mu.Unlock()
	}
	return err
}

func (f *flaky) setBroken(b bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = b
}

// beforeCommit sets a function that each commit calls before it reaches the disk.
func (f *flaky) beforeCommit(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = fn
}

func (f *flaky) commits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// start opens a service on a new store, with a resolver that serves the script.
func start(t *testing.T, script string) *testEnv {
	t.Helper()
	net := simnet.New(1)
	net.MustServer(resolver, script)
	return open(t, filepath.Join(t.TempDir(), "db"), net, alias.Options{}, follow.Options{})
}

// open opens a service on a new or existing store. Without a Rand, the lookups of each run come at the same moments.
func open(t *testing.T, path string, net *simnet.Net, opts alias.Options, fo follow.Options) *testEnv {
	t.Helper()
	return openWith(t, path, net, publish.Options{}, opts, fo)
}

// openWith is like open, with options for the publisher.
func openWith(t *testing.T, path string, net *simnet.Net, po publish.Options, opts alias.Options,
	fo follow.Options) *testEnv {
	t.Helper()
	st, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &testEnv{Service: alias.New(opts), t: t, net: net, store: &flaky{Store: st}, path: path}
	po.Derive, po.Committed = r.Derive, r.note
	if r.pub, err = publish.Open(r.store, po); err != nil {
		t.Fatal(err)
	}
	if err := r.Open(r.pub); err != nil {
		t.Fatal(err)
	}
	fo.Exchanger, fo.Changed = net, r.Changed
	if fo.Rand == nil {
		fo.Rand = func() float64 { return 0 }
	}
	srv, err := resolve.ParseServer(resolver)
	if err != nil {
		t.Fatal(err)
	}
	fo.Servers = []resolve.Server{srv}
	r.tracker = follow.New(fo)
	r.SetTracker(r.tracker)
	var pubs, others sync.WaitGroup
	pubCtx, endPub := context.WithCancel(context.Background())
	ctx, end := context.WithCancel(context.Background())
	pubs.Go(func() { r.pub.Run(pubCtx) })
	others.Go(func() { r.Run(ctx) })
	others.Go(func() { r.tracker.Run(ctx) })
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			end()
			others.Wait()
			endPub()
			pubs.Wait()
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(r.stop)
	synctest.Wait()
	return r
}

func name(s string) dnsname.Name { return dnsname.MustParse(s) }

// zone creates a zone with SOA, NS and the given records.
func (r *testEnv) zone(apex string, lines ...string) zone.Zone {
	r.t.Helper()
	var z zone.Zone
	sets := []zone.RecordSet{r.set(apex+" 0 SOA ns."+apex+" host."+apex+" 1 3600 600 86400 60", true),
		r.set(apex+" 0 NS ns."+apex, true)}
	for _, l := range lines {
		sets = append(sets, r.set(l, false))
	}
	r.must(r.commit(func(tx *publish.Tx) (err error) {
		z, err = tx.CreateZone(zone.Zone{Name: name(apex), Kind: zone.Primary, TTL: 3600}, sets...)
		return err
	}))
	return z
}

// set parses a record set from a line: owner, TTL (0: the zone's), type, data separated by commas.
func (r *testEnv) set(line string, managed bool) zone.RecordSet {
	r.t.Helper()
	w := strings.Fields(line)
	t, err := rr.ParseType(w[2])
	r.must(err)
	s := zone.RecordSet{Name: name(w[0]), Type: t, Managed: managed}
	var ttl uint32
	if _, err := fmt.Sscan(w[1], &ttl); err != nil {
		r.t.Fatal(err)
	}
	if ttl > 0 {
		s.TTL = &ttl
	}
	for _, text := range strings.Split(strings.Join(w[3:], " "), ",") {
		d, err := rr.ParseData(t, strings.TrimSpace(text))
		r.must(err)
		s.Data = append(s.Data, d)
	}
	return s
}

func (r *testEnv) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *testEnv) commit(fn func(*publish.Tx) error) error {
	return r.pub.Commit(context.Background(), actor, fn)
}

// zoneOf returns the zone of a name.
func zoneOf(v store.View, n dnsname.Name) (zone.Zone, error) {
	for m := n; !m.IsZero(); m = m.Parent() {
		if z, err := v.ZoneByName(m); err == nil {
			return z, nil
		}
	}
	return zone.Zone{}, fmt.Errorf("%s is in no zone", n)
}

// put writes record sets, all in one edit.
func (r *testEnv) put(lines ...string) error {
	r.t.Helper()
	return r.commit(func(tx *publish.Tx) error { return r.putIn(tx, lines...) })
}

func (r *testEnv) putIn(tx *publish.Tx, lines ...string) error {
	for _, l := range lines {
		s := r.set(l, false)
		z, err := zoneOf(tx.View, s.Name)
		if err != nil {
			return err
		}
		s.Zone = z.ID
		if _, err = tx.UpdateSet(s); errors.Is(err, store.ErrNotFound) {
			_, err = tx.CreateSet(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drop deletes a record set.
func (r *testEnv) drop(owner, typ string) error {
	return r.commit(func(tx *publish.Tx) error { return dropIn(tx, owner, typ) })
}

func dropIn(tx *publish.Tx, owner, typ string) error {
	t, err := rr.ParseType(typ)
	if err != nil {
		return err
	}
	z, err := zoneOf(tx.View, name(owner))
	if err != nil {
		return err
	}
	return tx.DeleteSet(z.ID, name(owner), t)
}

// wait advances the time by d.
func (r *testEnv) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// key returns the key of an ALIAS.
func (r *testEnv) key(owner string) (k alias.Key) {
	r.t.Helper()
	r.must(r.pub.View(func(v store.View) error {
		z, err := zoneOf(v, name(owner))
		k = alias.Key{Zone: z.ID, Name: name(owner)}
		return err
	}))
	return k
}

// serial returns the serial of a zone.
func (r *testEnv) serial(apex string) (n uint32) {
	r.t.Helper()
	r.must(r.pub.View(func(v store.View) error {
		z, err := v.ZoneByName(name(apex))
		n = z.Serial
		return err
	}))
	return n
}

// rows returns the stored addresses of a name in one line; a star marks a user's own record sets.
func (r *testEnv) rows(owner string) string {
	r.t.Helper()
	var out []string
	r.must(r.pub.View(func(v store.View) error {
		z, err := zoneOf(v, name(owner))
		if err != nil {
			return err
		}
		for _, t := range []rr.Type{rr.TypeA, rr.TypeAAAA} {
			s, err := v.RecordSet(z.ID, name(owner), t)
			if err != nil {
				continue
			}
			text := fmt.Sprintf("%s %d", t, s.Served(z.TTL).TTL)
			if !s.Hidden || !s.Managed {
				text += "*"
			}
			for _, d := range s.Data {
				text += " " + rr.DataText(t, d)
			}
			out = append(out, text)
		}
		return nil
	}))
	return strings.Join(out, ", ")
}

// status returns the state of an ALIAS in one line.
func (r *testEnv) status(owner string) string {
	r.t.Helper()
	st, ok := r.State(r.key(owner))
	if !ok {
		return "none"
	}
	out := string(st.Status)
	if st.Action != "NONE" {
		out += " " + st.Action
	}
	if st.Cause != "" {
		out += " " + string(st.Cause)
	}
	return out
}

// want checks the status and the rows of an ALIAS.
func (r *testEnv) want(owner, status, rows string) {
	r.t.Helper()
	if got := r.status(owner); got != status {
		r.t.Errorf("at %v, %s is %s, want %s", r.net.Age(), owner, got, status)
	}
	if got := r.rows(owner); got != rows {
		r.t.Errorf("at %v, %s has %q, want %q", r.net.Age(), owner, got, rows)
	}
	if got, old := r.stale(owner), strings.HasPrefix(status, "STALE"); (got != "") != old &&
		!strings.HasPrefix(status, "ERROR") {
		r.t.Errorf("at %v, answers of %s are reported as stale: %q", r.net.Age(), owner, got)
	}
}

// do runs several commands of a server, separated by "|".
func (r *testEnv) do(server *simnet.Server, script string) {
	r.t.Helper()
	for line := range strings.SplitSeq(script, "|") {
		if line != "" {
			r.must(server.Do(line))
		}
	}
}

// stale returns the types for which the records of a name are reported as stale.
func (r *testEnv) stale(owner string) string {
	var out []string
	for _, t := range []rr.Type{rr.TypeA, rr.TypeAAAA, rr.TypeMX} {
		q := lookup.Question{Name: []byte(name(owner).Wire()), Type: t}
		reply := lookup.Reply{Msg: make([]byte, 12, 1000), Limit: 1000}
		lookup.Answer(r.pub.Snapshot(), q, &reply)
		if reply.Kind == lookup.Positive && r.Stale(q.Name, reply.Encloser, t) {
			out = append(out, t.String())
		}
	}
	return strings.Join(out, " ")
}

// commitsBegun returns the metric nameplane_alias_commits_total.
func (r *testEnv) commitsBegun() float64 {
	r.t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(r.Collectors()...)
	families, err := reg.Gather()
	r.must(err)
	for _, f := range families {
		if f.GetName() == "nameplane_alias_commits_total" {
			return f.Metric[0].GetCounter().GetValue()
		}
	}
	return 0
}

// asked counts the queries for a name since the history was cleared.
func (r *testEnv) asked(target string) (n int) {
	for _, q := range r.net.History() {
		if q.Name == name(target) {
			n++
		}
	}
	return n
}

// bubble runs a test in a synctest bubble.
func bubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, fn)
}

func addrs(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}
