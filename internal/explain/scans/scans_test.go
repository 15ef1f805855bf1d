package scans_test

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

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

var (
	alice  = store.Actor{Who: "alice", Project: "p1"}
	bob    = store.Actor{Who: "bob", Project: "p2"}
	client = netip.MustParseAddr("192.0.2.1")
)

// fakeScanner finds one address for every name, and records how many earlier results it was given.
type fakeScanner struct {
	addr  string
	mu    sync.Mutex // guards pasts
	pasts []int
	gate  chan struct{} // if set, scans wait until it is closed
	err   error
}

func (w *fakeScanner) scan(ctx context.Context, name dnsname.Name, r scans.Request, past []explain.Past,
	progress func(scans.Progress)) (*explain.Facts, error) {
	w.mu.Lock()
	w.pasts = append(w.pasts, len(past))
	w.mu.Unlock()
	f := &explain.Facts{Schema: explain.Schema, Kind: r.Kind, Name: name, Input: r.Target, At: time.Now(), Zone: name,
		Queries: 3}
	progress(scans.Progress{Step: "walk", Queries: 1, Facts: f})
	if w.gate != nil {
		select {
		case <-w.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	a := rr.TypeA
	f.Outcomes = []explain.Outcome{{Type: a, Result: iterate.Answer, End: name, Zone: name,
		Sets: []explain.Set{{Name: name, Type: a, TTL: 300, Data: []string{w.addr}}}}}
	return f, w.err
}

func parse(s string) (dnsname.Name, error) {
	n, err := dnsname.Parse(s)
	return n, err
}

func openStore(t *testing.T, path string) *publish.Publisher {
	t.Helper()
	st, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := publish.Open(st, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- pub.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; _ = st.Close() })
	return pub
}

// serve runs a service on a store until the test ends.
func serve(t *testing.T, pub *publish.Publisher, w *fakeScanner, o scans.Options) *scans.Service {
	t.Helper()
	o.Parse = parse
	s, err := scans.Open(pub, w.scan, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return s
}

func begin(t *testing.T, s *scans.Service, actor store.Actor, kind explain.Kind, target string) scans.Scan {
	t.Helper()
	x, err := s.Start(t.Context(), actor, client, scans.Request{Kind: kind, Target: target})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// finish waits until a scan has ended.
func finish(t *testing.T, s *scans.Service, x scans.Scan) scans.Scan {
	t.Helper()
	for {
		got, changed, err := s.Get(x.Project, x.ID)
		if err != nil {
			t.Fatal(err)
		}
		if changed == nil {
			return got
		}
		<-changed
	}
}

// factsOf returns the facts of a scan, without a memory limit.
func factsOf(s *scans.Service, project, id string) (*explain.Facts, error) {
	all, release, err := s.Facts(context.Background(), project, id)
	if err != nil {
		return nil, err
	}
	defer release()
	return all[0], nil
}

// documentOf returns a report, without a memory limit.
func documentOf(s *scans.Service, project, id, format string) (scans.Document, error) {
	d, release, err := s.Document(context.Background(), project, id, format)
	if err == nil {
		release()
	}
	return d, err
}

func TestScan(t *testing.T) {
	w := &fakeScanner{addr: "192.0.2.80"}
	s := serve(t, openStore(t, filepath.Join(t.TempDir(), "db")), w, scans.Options{})
	x := begin(t, s, alice, explain.Analyze, "www.example.org")
	if x.State != scans.Waiting || x.ID == "" {
		t.Errorf("a new scan is %+v", x)
	}
	got := finish(t, s, x)
	if got.State != scans.Done || got.Summary == "" || got.Verdict == "" || got.Queries != 3 || got.Ended.IsZero() {
		t.Errorf("a scan that ended is %+v", got)
	}
	facts, err := factsOf(s, "p1", x.ID)
	if err != nil || facts.Outcomes[0].Sets[0].Data[0] != "192.0.2.80" {
		t.Errorf("facts are %+v, %v", facts, err)
	}
	if _, err := factsOf(s, "p2", x.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another project's facts: %v", err)
	}
	if _, _, err := s.Get("p2", x.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another project's scan: %v", err)
	}
	if n := len(s.List("p2", scans.Filter{})); n != 0 {
		t.Errorf("another project sees %d scans", n)
	}
}

func TestShared(t *testing.T) {
	w := &fakeScanner{gate: make(chan struct{})}
	s := serve(t, openStore(t, filepath.Join(t.TempDir(), "db")), w, scans.Options{})
	x := begin(t, s, alice, explain.Scan, "example.org")
	if y := begin(t, s, alice, explain.Scan, "EXAMPLE.org."); y.ID != x.ID {
		t.Error("the same request is another scan")
	}
	if y := begin(t, s, bob, explain.Scan, "example.org"); y.ID == x.ID {
		t.Error("projects share a scan, and so see each other's")
	}
	if y := begin(t, s, alice, explain.Compare, "example.org"); y.ID == x.ID {
		t.Error("another kind is the same scan")
	}
	close(w.gate)
	finish(t, s, x)
	if y := begin(t, s, alice, explain.Scan, "example.org"); y.ID != x.ID {
		t.Error("a scan that has just ended is made again")
	}
}

func TestRefused(t *testing.T) {
	w := &fakeScanner{}
	pub := openStore(t, filepath.Join(t.TempDir(), "db"))
	s := serve(t, pub, w, scans.Options{Public: true})
	for _, r := range []struct {
		req  scans.Request
		want error
	}{
		{scans.Request{Kind: "other", Target: "example.org"}, scans.ErrRequest},
		{scans.Request{Kind: explain.Scan, Target: "a..b"}, scans.ErrRequest},
		{scans.Request{Kind: explain.Scan, Target: "example.org", Types: make([]rr.Type, 9)}, scans.ErrRequest},
		{scans.Request{Kind: explain.Analyze, Target: "example.org", Types: []rr.Type{255}}, scans.ErrRequest}, // ANY
		{scans.Request{Kind: explain.Scan, Target: "example.org", Types: []rr.Type{rr.TypeA}}, scans.ErrRequest},
		{scans.Request{Kind: explain.Analyze, Target: "example.org", DKIM: []string{"s1"}}, scans.ErrRequest},
		{scans.Request{Kind: explain.Scan, Target: "example.org", DKIM: []string{"a b"}}, scans.ErrRequest},
		{scans.Request{Kind: explain.Scan, Target: "example.org", Expect: []string{"A=192.0.2.1"}}, scans.ErrRequest},
		{scans.Request{Kind: explain.Analyze, Target: "example.org", Expect: []string{"nonsense"}}, scans.ErrRequest},
		{scans.Request{Kind: explain.Analyze, Target: "example.org", Expect: []string{"NOTYPE!=x"}}, scans.ErrRequest},
		{scans.Request{Kind: explain.Analyze, Target: "example.org", Expect: []string{"ANY=x"}}, scans.ErrRequest},
		{scans.Request{Kind: explain.Analyze, Target: "example.org", Expect: []string{"A=example.org"}}, scans.ErrRequest},
		{scans.Request{Kind: explain.Analyze, Target: "example.org", Expect: []string{"AAAA=192.0.2.1"}}, scans.ErrRequest},
		{scans.Request{Kind: explain.Analyze, Target: "example.org",
			Expect: []string{"A=192.0.2.1", "AAAA=2001:db8::1", "MX=10 mail"}}, nil},
		{scans.Request{Kind: explain.Scan, Target: "printer.local"}, scans.ErrPrivate},
		{scans.Request{Kind: explain.Scan, Target: "localhost"}, scans.ErrPrivate},
		{scans.Request{Kind: explain.Analyze, Target: "1.0.16.172.in-addr.arpa"}, scans.ErrPrivate},
		{scans.Request{Kind: explain.Analyze, Target: "1.0.32.172.in-addr.arpa"}, nil},
		{scans.Request{Kind: explain.Analyze, Target: "1.0.127.100.in-addr.arpa"}, scans.ErrPrivate},
		{scans.Request{Kind: explain.Analyze, Target: "1.0.128.100.in-addr.arpa"}, nil},
		{scans.Request{Kind: explain.Analyze, Target: "1.0.0.b.e.f.ip6.arpa"}, scans.ErrPrivate},
		{scans.Request{Kind: explain.Analyze, Target: "0.0.c.f.ip6.arpa"}, scans.ErrPrivate},
		{scans.Request{Kind: explain.Analyze, Target: "1.0.0.2.ip6.arpa"}, nil},
		{scans.Request{Kind: explain.Scan, Target: "example.org"}, nil},
	} {
		if _, err := s.Start(t.Context(), alice, client, r.req); !errors.Is(err, r.want) {
			t.Errorf("%+v: %v, want %v", r.req, err, r.want)
		}
	}
}

func TestLimits(t *testing.T) {
	w := &fakeScanner{gate: make(chan struct{})}
	s := serve(t, openStore(t, filepath.Join(t.TempDir(), "db")), w,
		scans.Options{PerClient: 4, PerTarget: 2, Parallel: 1, Queue: 3})
	start := func(from, target string, kind explain.Kind) error {
		_, err := s.Start(t.Context(), alice, netip.MustParseAddr(from), scans.Request{Kind: kind, Target: target})
		return err
	}
	busy := func(what string, err error) {
		t.Helper()
		if b := new(scans.BusyError); !errors.As(err, &b) || b.After <= 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, kind := range []explain.Kind{explain.Scan, explain.Analyze} {
		if err := start("192.0.2.9", "example.org", kind); err != nil {
			t.Fatal(err)
		}
	}
	err := start("192.0.2.10", "example.org", explain.Compare)
	busy("a third scan of one target", err)
	if want := "example.org., with all names in it, has been scanned too often"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	for i := 0; ; i++ {
		err := start("192.0.2.11", string(rune('a'+i))+".test", explain.Scan)
		if err != nil {
			busy("more than may wait", err)
			break
		}
		if i > 4 {
			t.Fatal("the queue has no end")
		}
	}
	close(w.gate)
}

func TestPerClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := scans.Open(openStore(t, filepath.Join(t.TempDir(), "db")), (&fakeScanner{}).scan,
			scans.Options{PerClient: 2, Parse: parse})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		start := func(project, from string) error {
			n++
			_, err := s.Start(t.Context(), store.Actor{Project: project}, netip.MustParseAddr(from),
				scans.Request{Kind: explain.Scan, Target: fmt.Sprintf("%d.test", n)})
			return err
		}
		var busy *scans.BusyError
		for _, c := range []struct{ project, one, same, another string }{
			{"p1", "192.0.2.1", "198.51.100.1", ""}, // a project is one client, whatever its address
			{"", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"},
			{"", "2001:db8:0:1::1", "2001:db8:0:1:ffff::2", "2001:db8:0:2::1"},
		} {
			if err := errors.Join(start(c.project, c.one), start(c.project, c.same)); err != nil {
				t.Fatal(err)
			}
			if err := start(c.project, c.one); !errors.As(err, &busy) {
				t.Errorf("%+v: a third scan: %v", c, err)
			}
			if c.another == "" {
				continue
			}
			if err := start(c.project, c.another); err != nil {
				t.Errorf("%+v: somebody else: %v", c, err)
			}
		}
		if err := start("p2", "192.0.2.1"); err != nil {
			t.Errorf("another project at the same address: %v", err)
		}
		time.Sleep(busy.After)
		if err := start("", "2001:db8:0:1::1"); err != nil {
			t.Errorf("after the time that it was asked to wait: %v", err)
		}
	})
}

// TestHistory scans a name that changes, across a restart of the server.
func TestHistory(t *testing.T) {
	pub := openStore(t, filepath.Join(t.TempDir(), "db"))
	w := &fakeScanner{addr: "192.0.2.80"}
	opts := scans.Options{Share: time.Nanosecond, Keep: 3, PerTarget: 100}
	s := serve(t, pub, w, opts)
	first := finish(t, s, begin(t, s, alice, explain.Analyze, "www.example.org"))
	if first.Previous != "" || first.Changes != nil {
		t.Errorf("the first scan has a past: %+v", first)
	}
	again := serve(t, pub, w, opts)
	w.addr = "192.0.2.81"
	second := finish(t, again, begin(t, again, alice, explain.Analyze, "www.example.org"))
	want := []scans.Change{{What: "www.example.org. A", Before: "300 192.0.2.80", After: "300 192.0.2.81"}}
	if diff := cmp.Diff(want, second.Changes); diff != "" || second.Previous != first.ID {
		t.Errorf("changes since %s (-want +got):\n%s", second.Previous, diff)
	}
	for range 3 {
		finish(t, again, begin(t, again, alice, explain.Analyze, "www.example.org"))
	}
	if n := len(again.List("p1", scans.Filter{Kind: explain.Analyze})); n != 3 {
		t.Errorf("%d scans are kept, not 3", n)
	}
	if _, err := factsOf(again, "p1", first.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the facts of a scan that is not kept: %v", err)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 3}, w.pasts); diff != "" {
		t.Errorf("earlier results:\n%s", diff)
	}
}

// TestPastOfKinds checks that Compare uses the results of Analyze, but does not list changes since then. Scans are
// about domains and use neither.
func TestPastOfKinds(t *testing.T) {
	w := &fakeScanner{addr: "192.0.2.80"}
	s := serve(t, openStore(t, filepath.Join(t.TempDir(), "db")), w, scans.Options{Share: time.Nanosecond, PerTarget: 100})
	for _, kind := range []explain.Kind{explain.Analyze, explain.Scan, explain.Compare} {
		if got := finish(t, s, begin(t, s, alice, kind, "example.org")); got.Previous != "" {
			t.Errorf("the first %s is since %s", kind, got.Previous)
		}
	}
	if diff := cmp.Diff([]int{0, 0, 1}, w.pasts); diff != "" {
		t.Errorf("earlier results:\n%s", diff)
	}
}

func TestFailed(t *testing.T) {
	w := &fakeScanner{err: errors.New("no network")}
	s := serve(t, openStore(t, filepath.Join(t.TempDir(), "db")), w, scans.Options{})
	got := finish(t, s, begin(t, s, alice, explain.Scan, "example.org"))
	if got.State != scans.Failed || got.Problem != "no network" || got.Verdict != "" {
		t.Errorf("a scan that failed is %+v", got)
	}
}
