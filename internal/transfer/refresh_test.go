package transfer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// master is an in-memory server with one zone. Its states are lists of records; the SOA has refresh 100, retry 10 and
// expire 1000.
type master struct {
	mu      sync.Mutex
	serial  uint32
	states  map[uint32][]string // records by serial
	down    bool
	noDiff  bool // answers IXFR with nonsense
	slow    time.Duration
	queries []time.Time
	kinds   []string // kinds of the transfers
}

const apexName = "second.test."

func soaText(serial uint32) string {
	return fmt.Sprintf("%s 60 IN SOA ns.test. host.test. %d 100 10 1000 60", apexName, serial)
}

func (m *master) set(serial uint32, records ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.states == nil {
		m.states = map[uint32][]string{}
	}
	m.serial, m.states[serial] = serial, append([]string{apexName + " 60 IN NS ns.test."}, records...)
}

func (m *master) setDown(down bool) { m.mu.Lock(); m.down = down; m.mu.Unlock() }

func (m *master) seen() (queries int, kinds string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queries), strings.Join(m.kinds, " ")
}

func (m *master) ask(_ context.Context, _ Secondary, q *dns.Msg) (*dns.Msg, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queries = append(m.queries, time.Now())
	if m.down {
		return nil, errors.New("no answer")
	}
	r := new(dns.Msg).SetReply(q)
	r.Authoritative = true
	r.Answer = []dns.RR{mustRR(soaText(m.serial))}
	return r, nil
}

func mustRR(s string) dns.RR {
	r, err := dns.NewRR(s)
	if err != nil {
		panic(err)
	}
	return r
}

// fetch answers as a server would: with the difference in one step if it knows the state.
func (m *master) fetch(_ context.Context, r request) (*incoming, error) {
	m.mu.Lock()
	defer func() {
		slow := m.slow
		m.mu.Unlock()
		time.Sleep(slow)
	}()
	if m.down {
		return nil, errors.New("no answer")
	}
	now := m.states[m.serial]
	lines := append([]string{soaText(m.serial)}, now...)
	kind := "axfr"
	if r.has != nil {
		kind = "ixfr"
		was := m.states[*r.has]
		lines = []string{soaText(m.serial), soaText(*r.has)}
		for _, s := range was {
			if !slices.Contains(now, s) || m.noDiff {
				lines = append(lines, s)
			}
		}
		if m.noDiff {
			lines = append(lines, "never."+apexName+" 60 IN A 192.0.2.99")
		}
		lines = append(lines, soaText(m.serial))
		for _, s := range now {
			if !slices.Contains(was, s) {
				lines = append(lines, s)
			}
		}
	}
	m.kinds = append(m.kinds, kind)
	c := &incoming{apex: r.zone, has: r.has, to: r.to, check: r.check}
	for _, s := range append(lines, soaText(m.serial)) {
		if err := c.add(mustRR(s)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// testEnv is a refresher of one zone on fake time.
type testEnv struct {
	*Refresher
	t    *testing.T
	path string
	stop func()
	zone zone.Zone
}

func newTestEnv(t *testing.T, m *master) *testEnv {
	t.Helper()
	g := &testEnv{t: t, path: filepath.Join(t.TempDir(), "db")}
	g.start(m, true)
	return g
}

func (g *testEnv) start(m *master, create bool) {
	g.t.Helper()
	st, err := boltstore.Open(g.path, boltstore.Options{})
	if err != nil {
		g.t.Fatal(err)
	}
	pub, err := publish.Open(st, publish.Options{})
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(g.t.Context())
	commits, stopCommits := context.WithCancel(context.Background())
	ended, committed := make(chan error), make(chan error)
	go func() { committed <- pub.Run(commits) }()
	g.Refresher = NewRefresher(pub, NewKeyring(pub), RefresherOptions{Spool: testRoot(g.t, filepath.Dir(g.path))})
	g.ask, g.fetch = m.ask, m.fetch
	if create {
		err := pub.Commit(ctx, store.Actor{}, func(tx *publish.Tx) (err error) {
			g.zone, err = tx.CreateZone(zone.Zone{Name: dnsname.MustParse(apexName), Project: "p", Kind: zone.Secondary,
				Masters: []string{"192.0.2.1"}})
			return err
		})
		if err != nil {
			g.t.Fatal(err)
		}
	}
	go func() { ended <- g.Run(ctx) }()
	var once sync.Once
	g.stop = func() {
		once.Do(func() { cancel(); <-ended; stopCommits(); <-committed; st.Close() })
	}
	g.t.Cleanup(g.stop)
}

// records returns the records of the copy, without its SOA.
func (g *testEnv) records() (out []string) {
	g.t.Helper()
	err := g.pub.View(func(v store.View) error {
		return v.Served(g.zone, func(s rr.Set) error {
			for _, d := range s.Data {
				if s.Type != rr.TypeSOA {
					out = append(out, fmt.Sprintf("%s %d IN %s %s", s.Name, s.TTL, s.Type, rr.DataText(s.Type, d)))
				}
			}
			return nil
		})
	})
	if err != nil {
		g.t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func (g *testEnv) served() uint32 { return g.pub.Snapshot().ZoneOf(g.zone.Name).Serial() }

// wantDifferences fails unless our journal has the given number of differences since a serial.
func (g *testEnv) wantDifferences(serial uint32, want int) {
	g.t.Helper()
	err := g.pub.View(func(v store.View) error {
		z, err := v.Zone(g.zone.ID)
		if d, ok := Since(v, z, serial, 1<<20); !ok || len(d) != want {
			g.t.Errorf("%d differences since serial %d (%v), want %d", len(d), serial, ok, want)
		}
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
}

// wantState fails unless the copy is the master's state of a serial.
func (g *testEnv) wantState(m *master, serial uint32) {
	g.t.Helper()
	m.mu.Lock()
	want := slices.Sorted(slices.Values(m.states[serial]))
	m.mu.Unlock()
	if diff := cmp.Diff(want, g.records()); diff != "" || g.served() != serial {
		g.t.Errorf("serial %d, want %d (-want +got)\n%s", g.served(), serial, diff)
	}
}

func a(name, addr string) string { return name + "." + apexName + " 60 IN A " + addr }

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(7, a("www", "192.0.2.1"), a("www", "192.0.2.2"), a("old", "192.0.2.3"))
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		g.wantState(m, 7)
		m.set(9, a("www", "192.0.2.2"), a("www", "192.0.2.9"), a("new", "192.0.2.4"))
		time.Sleep(50 * time.Second)
		g.wantState(m, 7) // the refresh time has not passed
		time.Sleep(60 * time.Second)
		g.wantState(m, 9) // after the refresh time of the SOA
		m.set(10, a("www", "192.0.2.10"))
		g.Refresh(g.zone.ID, false) // NOTIFY
		time.Sleep(time.Second)
		g.wantState(m, 10)
		g.wantDifferences(7, 2) // our own secondaries get differences too
		g.wantDifferences(9, 1)
		m.set(3, a("www", "192.0.2.77")) // older by RFC 1982: not transferred,
		g.Refresh(g.zone.ID, false)
		time.Sleep(time.Second)
		g.wantState(m, 10)
		g.Refresh(g.zone.ID, true) // except on request
		time.Sleep(time.Second)
		g.wantState(m, 3)
		if _, kinds := m.seen(); kinds != "axfr ixfr ixfr axfr" {
			t.Errorf("transfers %s", kinds)
		}
	})
}

// A NOTIFY that arrives during a transfer is not lost.
func TestRefreshAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{slow: 5 * time.Second}
		m.set(1, a("www", "192.0.2.1"))
		g := newTestEnv(t, m)
		time.Sleep(2 * time.Second) // the transfer is running
		m.set(2, a("www", "192.0.2.2"))
		g.Refresh(g.zone.ID, false)
		time.Sleep(4 * time.Second)
		g.wantState(m, 1)
		time.Sleep(6 * time.Second)
		g.wantState(m, 2)
	})
}

// When a difference does not match our copy, the whole zone is transferred.
func TestRefreshFallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1, a("www", "192.0.2.1"))
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		m.set(2, a("www", "192.0.2.2"))
		m.mu.Lock()
		m.noDiff = true
		m.mu.Unlock()
		g.Refresh(g.zone.ID, false)
		time.Sleep(time.Second)
		g.wantState(m, 2)
		if _, kinds := m.seen(); kinds != "axfr ixfr axfr" {
			t.Errorf("transfers %s", kinds)
		}
	})
}

// A master that is down is queried after the retry time of the SOA. After the expire time the zone is not served, also
// after a restart. When the master is back, so is the zone.
func TestExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1, a("www", "192.0.2.1"))
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		m.setDown(true)
		before, _ := m.seen()
		time.Sleep(900 * time.Second)
		if queries, _ := m.seen(); queries-before < 60 || queries-before > 100 {
			t.Errorf("the master was queried %d times in 900 seconds", queries-before)
		}
		if s := g.State(g.zone.ID); g.served() != 1 || s.Expired || s.Problem == "" || !s.Next.After(time.Now()) {
			t.Errorf("before its time: serial %d, %+v", g.served(), s)
		}
		time.Sleep(120 * time.Second)
		if s := g.State(g.zone.ID); g.served() != 0 || !s.Expired {
			t.Errorf("after its time: serial %d, %+v", g.served(), s)
		}
		g.stop()
		g.start(m, false)
		time.Sleep(time.Second)
		if g.served() != 0 {
			t.Error("served again after a restart")
		}
		m.setDown(false)
		time.Sleep(20 * time.Second)
		g.wantState(m, 1)
		if s := g.State(g.zone.ID); s.Expired || s.Problem != "" {
			t.Errorf("back, and still %+v", s)
		}
	})
}

// A clock that was years ahead when the copy was made, and was set back since, does not keep the copy in service.
func TestExpireAfterClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1, a("www", "192.0.2.1"))
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		m.setDown(true)
		ahead := time.Now().AddDate(10, 0, 0)
		if err := g.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
			return tx.SetSecondary(g.zone.ID, publish.Secondary{Checked: ahead, Transferred: ahead})
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1200 * time.Second)
		if s := g.State(g.zone.ID); g.served() != 0 || !s.Expired {
			t.Errorf("after its time: serial %d, %+v", g.served(), s)
		}
	})
}

// Forged NOTIFY messages do not make us query a master all the time.
func TestRefreshIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1)
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		before, _ := m.seen()
		for range 1000 {
			g.Refresh(g.zone.ID, false)
			time.Sleep(10 * time.Millisecond)
		}
		if queries, _ := m.seen(); queries-before > 22 {
			t.Errorf("queried %d times in ten seconds", queries-before)
		}
	})
}

// A zone that was never there is queried less and less often.
func TestRefreshNeverThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{down: true}
		g := newTestEnv(t, m)
		time.Sleep(24 * time.Hour)
		if queries, _ := m.seen(); queries < 20 || queries > 50 || g.State(g.zone.ID).Problem == "" {
			t.Errorf("queried %d times in a day: %+v", queries, g.State(g.zone.ID))
		}
		if err := g.pub.Commit(t.Context(), store.Actor{},
			func(tx *publish.Tx) error { return tx.DeleteZone(g.zone.ID) }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		before, _ := m.seen()
		time.Sleep(24 * time.Hour)
		if queries, _ := m.seen(); queries != before {
			t.Error("the masters of a deleted zone are still queried")
		}
	})
}
