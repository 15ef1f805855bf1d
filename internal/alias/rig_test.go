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

var actor = store.Actor{Who: "test", Door: "test"}

const resolver = "192.0.2.53"

// rig is a service on a store, with a tracker on a network in memory. It lives in a synctest bubble.
type rig struct {
	*alias.Service
	t       *testing.T
	net     *simnet.Net
	pub     *publish.Publisher
	tracker *follow.Tracker
	store   *flaky
	stop    func() // ends everything, as a clean stop does
	path    string // of the store

	mu        sync.Mutex // guards the following
	log       []string   // of commits
	flattened []int      // record sets made of ALIAS that each commit changed
}

// note writes down what a commit changed on the wire.
func (r *rig) note(changes []store.Change) {
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
				set, verb = s.Before, "serves no more"
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

// told writes a line of a story.
func (r *rig) told(format string, a ...any) {
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
	before func() // when edits are made, and not yet on the disk
}

func (f *flaky) Update(fn func(store.Writer) error) error {
	err := f.Store.Update(func(w store.Writer) error {
		if err := fn(w); err != nil { // fn may take edits that were asked for after Update began
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

func (f *flaky) breaks(b bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = b
}

// on has fn called in each commit, before it reaches the disk.
func (f *flaky) on(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = fn
}

func (f *flaky) commits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// start opens a service on a new store, with a resolver that knows what the script says.
func start(t *testing.T, script string) *rig {
	t.Helper()
	net := simnet.New(1)
	net.MustServer(resolver, script)
	return open(t, filepath.Join(t.TempDir(), "db"), net, alias.Options{}, follow.Options{})
}

// open opens a service on a store that may be there already. Without a Rand the lookups of each run come at the same moments.
func open(t *testing.T, path string, net *simnet.Net, opts alias.Options, fo follow.Options) *rig {
	t.Helper()
	return openWith(t, path, net, publish.Options{}, opts, fo)
}

// openWith is open with options of the publisher.
func openWith(t *testing.T, path string, net *simnet.Net, po publish.Options, opts alias.Options, fo follow.Options) *rig {
	t.Helper()
	st, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Service: alias.New(opts), t: t, net: net, store: &flaky{Store: st}, path: path}
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

// zone makes a zone with SOA and NS, and the given records.
func (r *rig) zone(apex string, lines ...string) zone.Zone {
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

// set is a record set in a line: owner, TTL (0 is the zone's), type, data with commas between.
func (r *rig) set(line string, managed bool) zone.RecordSet {
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

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) commit(fn func(*publish.Tx) error) error {
	return r.pub.Commit(context.Background(), actor, fn)
}

// home is the zone of a name.
func home(v store.View, n dnsname.Name) (zone.Zone, error) {
	for m := n; !m.IsZero(); m = m.Parent() {
		if z, err := v.ZoneByName(m); err == nil {
			return z, nil
		}
	}
	return zone.Zone{}, fmt.Errorf("%s is in no zone", n)
}

// put writes record sets, all in one edit.
func (r *rig) put(lines ...string) error {
	r.t.Helper()
	return r.commit(func(tx *publish.Tx) error { return r.putIn(tx, lines...) })
}

func (r *rig) putIn(tx *publish.Tx, lines ...string) error {
	for _, l := range lines {
		s := r.set(l, false)
		z, err := home(tx.View, s.Name)
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
func (r *rig) drop(owner, typ string) error {
	return r.commit(func(tx *publish.Tx) error { return dropIn(tx, owner, typ) })
}

func dropIn(tx *publish.Tx, owner, typ string) error {
	t, err := rr.ParseType(typ)
	if err != nil {
		return err
	}
	z, err := home(tx.View, name(owner))
	if err != nil {
		return err
	}
	return tx.DeleteSet(z.ID, name(owner), t)
}

// wait lets so much time pass.
func (r *rig) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// key finds an ALIAS.
func (r *rig) key(owner string) (k alias.Key) {
	r.t.Helper()
	r.must(r.pub.View(func(v store.View) error {
		z, err := home(v, name(owner))
		k = alias.Key{Zone: z.ID, Name: name(owner)}
		return err
	}))
	return k
}

// serial is that of a zone.
func (r *rig) serial(apex string) (n uint32) {
	r.t.Helper()
	r.must(r.pub.View(func(v store.View) error {
		z, err := v.ZoneByName(name(apex))
		n = z.Serial
		return err
	}))
	return n
}

// rows is what is stored of the addresses of a name, in a line; user's own sets have a star.
func (r *rig) rows(owner string) string {
	r.t.Helper()
	var out []string
	r.must(r.pub.View(func(v store.View) error {
		z, err := home(v, name(owner))
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

// status is the state of an ALIAS in a line.
func (r *rig) status(owner string) string {
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

// want checks status and rows of an ALIAS.
func (r *rig) want(owner, status, rows string) {
	r.t.Helper()
	if got := r.status(owner); got != status {
		r.t.Errorf("at %v, %s is %s, want %s", r.net.Age(), owner, got, status)
	}
	if got := r.rows(owner); got != rows {
		r.t.Errorf("at %v, %s has %q, want %q", r.net.Age(), owner, got, rows)
	}
	if got, old := r.stale(owner), strings.HasPrefix(status, "STALE"); (got != "") != old && !strings.HasPrefix(status, "ERROR") {
		r.t.Errorf("at %v, answers of %s are told as stale: %q", r.net.Age(), owner, got)
	}
}

// do has the server do several things.
func (r *rig) do(server *simnet.Server, script string) {
	r.t.Helper()
	for line := range strings.SplitSeq(script, "|") {
		if line != "" {
			r.must(server.Do(line))
		}
	}
}

// stale is the types of which a name's records are told to be old.
func (r *rig) stale(owner string) string {
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

// commitsBegun is the metric of that.
func (r *rig) commitsBegun() float64 {
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

// asked counts the queries for a name since the history was forgotten.
func (r *rig) asked(target string) (n int) {
	for _, q := range r.net.History() {
		if q.Name == name(target) {
			n++
		}
	}
	return n
}

// bubble runs a test in a bubble.
func bubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, fn)
}

func follows(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}
