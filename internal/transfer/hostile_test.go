package transfer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// listening answers each query over TCP with the given messages, with the ID of the query.
func listening(t *testing.T, messages ...[]byte) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answer(conn, messages)
			conn.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func answer(conn net.Conn, messages [][]byte) {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return
	}
	query := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return
	}
	for _, m := range messages {
		copy(m, query[:2])
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)); err != nil {
			return
		}
	}
}

// testSpool returns a new spool with its own limit.
func testSpool(t *testing.T, most int) *spool {
	t.Helper()
	s, err := newSpools(testRoot(t, t.TempDir()), most).begin(dnsID(1), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

func testRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// The size of a zone counts after decompression: compression pointers turn two bytes into a kilobyte.
func TestFetchCountsNames(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 60)+".", 3) + apexName
	m := new(dns.Msg)
	m.Response, m.Compress = true, true
	m.Answer = []dns.RR{mustRR(soaText(1)), mustRR(apexName + " 60 IN NS ns.test.")}
	for i := range 1000 {
		m.Answer = append(m.Answer, mustRR(fmt.Sprintf("%s 60 IN MX %d %s", long, i, long)))
	}
	m.Answer = append(m.Answer, mustRR(soaText(1)))
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	at := listening(t, wire)
	for _, tt := range []struct {
		limit int
		want  bool
	}{{10 * len(wire), false}, {100 * len(wire), true}} {
		_, err := fetch(t.Context(), request{master: at, zone: dnsname.MustParse(apexName), to: testSpool(t, tt.limit)})
		if got := err == nil; got != tt.want || err != nil && !strings.Contains(err.Error(), "larger than the limit") {
			t.Errorf("%d bytes in the message, limit %d: %v", len(wire), tt.limit, err)
		}
	}
}

// TestSpoolsOfProject checks that the running transfers of a project share one limit, separate from other projects.
func TestSpoolsOfProject(t *testing.T) {
	all := newSpools(testRoot(t, t.TempDir()), 1000)
	begin := func(n byte, project string) *spool {
		s, err := all.begin(dnsID(n), project)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := zonefile.Record{Name: dnsname.MustParse(apexName), Type: rr.TypeTXT, Data: strings.Repeat("x", 500)}
	first, second, other := begin(1, "p"), begin(2, "p"), begin(3, "q")
	if err := first.put(r); err != nil {
		t.Fatal(err)
	}
	if err := second.put(r); !forOwner(err) {
		t.Errorf("more than the limit in two transfers of one project: %v", err)
	}
	if err := other.put(r); err != nil {
		t.Errorf("another project: %v", err)
	}
	first.end()
	second.end()
	if err := begin(2, "p").put(r); err != nil {
		t.Errorf("after the others have ended: %v", err)
	}
}

// TestPace checks that a master that stalls or trickles soon loses its slot, and that one at the slowest rate keeps it.
func TestPace(t *testing.T) {
	for _, tt := range []struct {
		name  string
		size  int // bytes sent each second
		ends  bool
		bound time.Duration
	}{{"silent", 0, true, stallTime}, {"drop by drop", 10, true, stallTime + time.Second}, {"slow", slowest, false, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, theirs := net.Pipe()
				start := time.Now()
				var sender sync.WaitGroup
				defer sender.Wait()
				defer near.Close()
				sender.Go(func() {
					defer theirs.Close()
					for range 60 {
						time.Sleep(time.Second)
						if _, err := theirs.Write(make([]byte, tt.size)); err != nil {
							return
						}
					}
				})
				n, err := io.Copy(io.Discard, &paced{conn: near, end: start.Add(stallTime)})
				took := time.Since(start)
				if ended := errors.Is(err, os.ErrDeadlineExceeded); ended != tt.ends || ended && took > tt.bound {
					t.Errorf("ended after %v and %d bytes with %v", took, n, err)
				}
			})
		})
	}
}

// endless is a master that never ends its zone: record returns the record with a number. It counts the bytes that it
// could send.
func endless(conn net.Conn, record func(i int) string) (sent int) {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return 0
	}
	query := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return 0
	}
	for i := 0; ; {
		m := new(dns.Msg)
		m.Id, m.Response = binary.BigEndian.Uint16(query), true
		if i == 0 {
			m.Answer = []dns.RR{mustRR(soaText(1))}
		}
		for range 100 {
			m.Answer = append(m.Answer, mustRR(record(i)))
			i++
		}
		raw, err := m.Pack()
		if err != nil {
			return sent
		}
		n, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(raw))), raw...))
		if sent += n; err != nil {
			return sent
		}
	}
}

// TestEndless checks that an endless transfer stops at the first limit while it is read, also if its records are not
// stored. The owner of the zone can read which limit it was.
func TestEndless(t *testing.T) {
	hosts := func(i int) string { return a(fmt.Sprintf("h%d", i), "192.0.2.1") }
	ignored := func(int) string { return fmt.Sprintf("x.%s 60 IN TYPE%d \\# 1 00", apexName, rr.TypeALIAS) }
	steps := func(i int) string { return soaText(uint32(2 + (i+1)/2)) } // 2 3 3 4 4 ...: a difference of empty steps
	for _, tt := range []struct {
		name   string
		record func(i int) string
		has    *uint32
		quota  int // quota of records
		budget int64
		size   int
		want   string
	}{
		{"quota", hosts, nil, 1000, 0, 1 << 30, "zone_records"},
		{"memory", hosts, nil, -1, 4 << 20, 1 << 30, "memory"},
		{"size", hosts, nil, -1, 0, 64 << 10, "larger than the limit"},
		{"records that are ignored", ignored, nil, 100, 0, 1 << 30, "zone_records"},
		{"ignored, without a quota", ignored, nil, -1, 4 << 20, 1 << 30, "memory"},
		{"empty steps of a difference", steps, new(uint32(2)), 100, 0, 1 << 30, "zone_records"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			near, far := net.Pipe()
			sent := make(chan int)
			go func() { sent <- endless(far, tt.record) }()
			at := attempt{Refresher: &Refresher{opts: RefresherOptions{Budget: budget.New(tt.budget)}},
				quotas: publish.Quotas{ZoneRecords: tt.quota}}
			_, err := request{zone: dnsname.MustParse(apexName), has: tt.has, to: testSpool(t, tt.size),
				check: at.checkLimits}.transferOver(near)
			near.Close()
			if !forOwner(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want one about %s", err, tt.want)
			}
			if n := <-sent; n > 1<<20 {
				t.Errorf("read %d bytes", n)
			}
		})
	}
}

// An attempt that never ends is cancelled, and the problem is reported.
func TestRefreshGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1)
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		synctest.Wait() // no reader is running now
		g.fetch = func(ctx context.Context, _ request) (*incoming, error) { <-ctx.Done(); return nil, ctx.Err() }
		g.Refresh(g.zone.ID, true)
		time.Sleep(masterTimeout + time.Second)
		if s := g.State(g.zone.ID); !strings.Contains(s.Problem, context.DeadlineExceeded.Error()) {
			t.Errorf("problem %q", s.Problem)
		}
	})
}

// A NOTIFY that cannot be handled yet is remembered once, however often it arrives.
func TestRefreshRemembersOnce(t *testing.T) {
	r := NewRefresher(nil, nil, RefresherOptions{})
	id := dnsID(1)
	for range 1000 {
		r.Refresh(id, false)
	}
	r.ready(time.Now())
	for range 1000 {
		r.Refresh(id, false)
	}
	if len(r.queue) > 1 || !r.zones[id].again {
		t.Errorf("%d in the queue, again %v", len(r.queue), r.zones[id].again)
	}
}

func dnsID(n byte) (id [16]byte) { id[0] = n; return id }

// A master that changes a zone without its serial, or restarts with an older serial, leaves no usable difference.
func TestRefreshWithoutNewSerial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(5, a("www", "192.0.2.1"))
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		step := func(serial uint32, force bool, addr string) {
			m.set(serial, a("www", addr))
			g.Refresh(g.zone.ID, force)
			time.Sleep(time.Second)
			g.wantState(m, serial)
		}
		differences := func(serial uint32, want bool) {
			t.Helper()
			err := g.pub.View(func(v store.View) error {
				z, err := v.Zone(g.zone.ID)
				if _, ok := Since(v, z, serial, 1<<20); ok != want {
					t.Errorf("the journal has the differences from %d to %d: %v", serial, z.Serial, ok)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		step(6, false, "192.0.2.2")
		differences(5, true)
		step(6, true, "192.0.2.3") // the same serial
		differences(5, false)
		step(7, false, "192.0.2.4")
		differences(6, true)
		differences(5, false)
		step(3, true, "192.0.2.5") // an older one
		step(4, false, "192.0.2.6")
		differences(3, true)
		differences(7, false)
	})
}

// The state of a copy is deleted with its zone, even if an attempt is running.
func TestNoteOfDeletedZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1)
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		at := attempt{Refresher: g.Refresher, id: g.zone.ID}
		if err := at.load(); err != nil {
			t.Fatal(err)
		}
		if err := g.pub.Commit(t.Context(), store.Actor{},
			func(tx *publish.Tx) error { return tx.DeleteZone(g.zone.ID) }); err != nil {
			t.Fatal(err)
		}
		if err := at.save(t.Context(), "confirmed"); err == nil {
			t.Error("noted something of a zone that is gone")
		}
	})
}

// After a change of masters the whole zone is transferred. The new serial is older, and the new masters are not
// reachable at first.
func TestOtherMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(9, a("www", "192.0.2.1"))
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		m.setDown(true)
		m.set(5, a("www", "192.0.2.5"))
		err := g.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
			z := g.zone
			z.Masters = []string{"192.0.2.77"}
			_, err := tx.UpdateZone(z)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		g.Refresh(g.zone.ID, false)
		time.Sleep(5 * time.Second)
		m.setDown(false)
		g.stop()
		g.start(m, false)
		time.Sleep(5 * time.Second)
		g.wantState(m, 5)
		_, before := m.seen()
		g.Refresh(g.zone.ID, false)
		time.Sleep(time.Second)
		if _, kinds := m.seen(); kinds != before {
			t.Errorf("transferred %s after %s", kinds, before)
		}
	})
}

// TestSmallZones checks that ten thousand small zones do not cause ten thousand collections of all memory, and that a
// zone that cannot be served leaves nothing behind.
func TestSmallZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forced := func() uint32 { var s runtime.MemStats; runtime.ReadMemStats(&s); return s.NumForcedGC }
		m := &master{}
		m.set(1, a("old", "192.0.2.1"), a("www", "192.0.2.1"))
		g := newTestEnv(t, m)
		time.Sleep(time.Second)
		before := forced()
		g.Refresh(g.zone.ID, true)
		time.Sleep(time.Second)
		g.wantState(m, 1)
		m.set(2, a("new", "192.0.2.1"), a("www", "192.0.2.2"), a("x", "192.0.2.1"), "x."+apexName+" 60 IN CNAME www.test.")
		g.Refresh(g.zone.ID, true)
		time.Sleep(time.Second)
		g.wantState(m, 1)
		if s := g.State(g.zone.ID); !strings.Contains(s.Problem, "CNAME") {
			t.Errorf("problem %q", s.Problem)
		}
		if n := forced() - before; n != 0 {
			t.Errorf("%d collections of all memory", n)
		}
	})
}
