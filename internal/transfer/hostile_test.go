package transfer

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// listening answers each query over TCP with messages, which are given its ID.
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

// A zone is as large as it is here, and not as it was on the way: pointers make a kilobyte of two octets.
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
		_, err := fetch(t.Context(), request{master: at, zone: dnsname.MustParse(apexName), limit: tt.limit})
		if got := err == nil; got != tt.want || err != nil && !strings.Contains(err.Error(), "transfer.max_zone") {
			t.Errorf("%d octets on the way, limit %d: %v", len(wire), tt.limit, err)
		}
	}
}

// deadlines is a connection that only remembers how long it would wait.
type deadlines struct {
	net.Conn
	last time.Time
}

func (d *deadlines) SetDeadline(t time.Time) error { d.last = t; return nil }
func (d *deadlines) Read([]byte) (int, error)      { return 0, io.EOF }

// A master has half a minute for a message, and for all of them no longer than their size deserves.
func TestFetchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deadlines
		for _, end := range []time.Duration{time.Hour, 10 * time.Second} {
			readMessage(&d, time.Now().Add(end))
			if got := time.Until(d.last); got != min(end, stallTime) {
				t.Errorf("waits %v for a message of a transfer that has %v left", got, end)
			}
		}
	})
}

// A look at masters that never comes to its end is given up, and what is wrong is told.
func TestRefreshGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1)
		g := newRig(t, m)
		time.Sleep(time.Second)
		synctest.Wait() // nobody reads what is written now
		g.fetch = func(ctx context.Context, _ request) (*copied, error) { <-ctx.Done(); return nil, ctx.Err() }
		g.Refresh(g.zone.ID, true)
		time.Sleep(longestLook + time.Second)
		if s := g.State(g.zone.ID); !strings.Contains(s.Problem, context.DeadlineExceeded.Error()) {
			t.Errorf("problem %q", s.Problem)
		}
	})
}

// NOTIFY that nobody gets round to is remembered once, however often it comes.
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

// A master that changes a zone and not its serial, or begins again with an older one, leaves no difference that could be told.
func TestRefreshWithoutNewSerial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(5, a("www", "192.0.2.1"))
		g := newRig(t, m)
		time.Sleep(time.Second)
		step := func(serial uint32, force bool, addr string) {
			m.set(serial, a("www", addr))
			g.Refresh(g.zone.ID, force)
			time.Sleep(time.Second)
			g.wants(m, serial)
		}
		tells := func(serial uint32, want bool) {
			t.Helper()
			err := g.pub.View(func(v store.View) error {
				z, err := v.Zone(g.zone.ID)
				if _, ok := Since(v, z, serial, 1<<20); ok != want {
					t.Errorf("the journal tells the way from %d to %d: %v", serial, z.Serial, ok)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		step(6, false, "192.0.2.2")
		tells(5, true)
		step(6, true, "192.0.2.3") // the same serial
		tells(5, false)
		step(7, false, "192.0.2.4")
		tells(6, true)
		tells(5, false)
		step(3, true, "192.0.2.5") // an older one
		step(4, false, "192.0.2.6")
		tells(3, true)
		tells(7, false)
	})
}

// What is known of a copy goes with its zone, whatever an attempt that was under way has to say.
func TestNoteOfDeletedZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(1)
		g := newRig(t, m)
		time.Sleep(time.Second)
		at := attempt{Refresher: g.Refresher, id: g.zone.ID}
		if err := at.load(); err != nil {
			t.Fatal(err)
		}
		if err := g.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error { return tx.DeleteZone(g.zone.ID) }); err != nil {
			t.Fatal(err)
		}
		if err := at.note(t.Context(), "confirmed"); err == nil {
			t.Error("noted something of a zone that is gone")
		}
	})
}

// A copy is taken anew from masters that are others now, though their serial is older, and though they are not there at first.
func TestOtherMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &master{}
		m.set(9, a("www", "192.0.2.1"))
		g := newRig(t, m)
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
		g.wants(m, 5)
		_, before := m.seen()
		g.Refresh(g.zone.ID, false)
		time.Sleep(time.Second)
		if _, kinds := m.seen(); kinds != before {
			t.Errorf("transferred %s after %s", kinds, before)
		}
	})
}

// Ten thousand small zones are not ten thousand times all memory looked through; and one that cannot be served leaves nothing behind.
func TestSmallZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forced := func() uint32 { var s runtime.MemStats; runtime.ReadMemStats(&s); return s.NumForcedGC }
		m := &master{}
		m.set(1, a("old", "192.0.2.1"), a("www", "192.0.2.1"))
		g := newRig(t, m)
		time.Sleep(time.Second)
		before := forced()
		g.Refresh(g.zone.ID, true)
		time.Sleep(time.Second)
		g.wants(m, 1)
		m.set(2, a("new", "192.0.2.1"), a("www", "192.0.2.2"), a("x", "192.0.2.1"), "x."+apexName+" 60 IN CNAME www.test.")
		g.Refresh(g.zone.ID, true)
		time.Sleep(time.Second)
		g.wants(m, 1)
		if s := g.State(g.zone.ID); !strings.Contains(s.Problem, "CNAME") {
			t.Errorf("problem %q", s.Problem)
		}
		if n := forced() - before; n != 0 {
			t.Errorf("memory was looked through %d times", n)
		}
	})
}
