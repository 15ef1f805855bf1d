package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// fakeSecondaries is a set of secondaries that the test controls.
type fakeSecondaries struct {
	mu      sync.Mutex
	serial  map[transfer.Remote]uint32 // serial that each secondary serves
	deaf    map[transfer.Remote]bool
	pulls   map[transfer.Remote]bool // transfers the newest serial when notified
	newest  func() uint32
	notifys map[transfer.Remote]int
	soas    map[transfer.Remote]int
}

func newFakeSecondaries() *fakeSecondaries {
	return &fakeSecondaries{serial: map[transfer.Remote]uint32{}, deaf: map[transfer.Remote]bool{},
		pulls:   map[transfer.Remote]bool{},
		notifys: map[transfer.Remote]int{}, soas: map[transfer.Remote]int{}}
}

// notifies and queries count the messages to a secondary.
func (f *fakeSecondaries) notifies(a transfer.Remote) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notifys[a]
}
func (f *fakeSecondaries) queries(a transfer.Remote) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.soas[a]
}

func (f *fakeSecondaries) ask(_ context.Context, s transfer.Secondary, m *dns.Msg) (*dns.Msg, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Opcode == dns.OpcodeNotify {
		f.notifys[s.Addr]++
	} else {
		f.soas[s.Addr]++
	}
	if f.deaf[s.Addr] {
		return nil, errors.New("no answer")
	}
	r := new(dns.Msg).SetReply(m)
	if m.Opcode == dns.OpcodeNotify {
		if f.pulls[s.Addr] {
			f.serial[s.Addr] = f.newest()
		}
		return r, nil
	}
	r.Authoritative = true
	r.Answer = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeSOA, Class: dns.ClassINET},
		Ns: ".", Mbox: ".", Serial: f.serial[s.Addr]}}
	return r, nil
}

var (
	one = transfer.Remote{AddrPort: netip.MustParseAddrPort("127.0.0.2:53")}
	two = transfer.Remote{AddrPort: netip.MustParseAddrPort("127.0.0.3:53")}
)

// startNotifier returns a running notifier of two secondaries on fake time, and a zone.
func startNotifier(t *testing.T, f *fakeSecondaries) (*publish.Publisher, *transfer.Notifier, zone.Zone) {
	t.Helper()
	var notifier atomic.Pointer[transfer.Notifier]
	p := newPublisher(t, publish.Options{Committed: func(c []store.Change) {
		if n := notifier.Load(); n != nil {
			n.Committed(c)
		}
	}})
	z := newZone(t, p, "example.org.")
	f.newest = func() uint32 {
		z := p.Snapshot().ZoneOf(z.Name)
		return z.Serial()
	}
	f.serial[one], f.serial[two] = f.newest(), f.newest()
	n := transfer.NewNotifier(p, transfer.NotifierOptions{Ask: f.ask,
		Secondaries: []transfer.Secondary{{Addr: one}, {Addr: two}}})
	notifier.Store(n)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p, n, z
}

func change(t *testing.T, p *publish.Publisher, z zone.Zone, name string) {
	t.Helper()
	commit(t, p, func(tx *publish.Tx) error {
		s := recordSet(t, name, "A", 60, "192.0.2.1")
		s.Zone = z.ID
		_, err := tx.CreateSet(s)
		return err
	})
}

func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSecondaries()
		f.pulls[one], f.pulls[two] = true, true
		p, n, z := startNotifier(t, f)
		time.Sleep(time.Second)
		if f.notifies(one) != 0 || f.queries(one) != 1 || !n.InSync(z.ID) {
			t.Errorf("at the start %d NOTIFY and %d questions, in sync %v", f.notifies(one), f.queries(one), n.InSync(z.ID))
		}
		change(t, p, z, "a.example.org.")
		if n.InSync(z.ID) {
			t.Error("in sync right after a change")
		}
		time.Sleep(time.Second)
		if f.notifies(one) != 1 || f.notifies(two) != 1 || !n.InSync(z.ID) {
			t.Errorf("after a change %d NOTIFY, in sync %v", f.notifies(one), n.InSync(z.ID))
		}
		time.Sleep(time.Hour)
		if f.notifies(one) != 1 || f.queries(one) > 3 {
			t.Errorf("with nothing to do %d NOTIFY and %d questions", f.notifies(one), f.queries(one))
		}
		z.Serial = f.newest()
		n.Notify(z)
		time.Sleep(time.Second)
		if f.notifies(one) != 2 || f.notifies(two) != 2 || !n.InSync(z.ID) {
			t.Errorf("on request %d NOTIFY, in sync %v", f.notifies(one), n.InSync(z.ID))
		}
	})
}

// A secondary that is down delays neither the other one nor the machine, and is notified when it is back.
func TestNotifyOneDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSecondaries()
		f.pulls[one], f.pulls[two], f.deaf[two] = true, true, true
		p, n, z := startNotifier(t, f)
		change(t, p, z, "a.example.org.")
		time.Sleep(time.Hour)
		got := n.Progress(z.ID)
		if !got[0].InSync || got[1].InSync || got[1].Problem == "" || got[1].Next.Before(time.Now()) || n.InSync(z.ID) {
			t.Errorf("progress %+v", got)
		}
		if f.notifies(two) > 40 {
			t.Errorf("a dead secondary was notified %d times in an hour", f.notifies(two))
		}
		f.mu.Lock()
		f.deaf[two] = false
		f.mu.Unlock()
		time.Sleep(6 * time.Minute)
		if !n.InSync(z.ID) {
			t.Errorf("not in sync after the secondary came back: %+v", n.Progress(z.ID))
		}
	})
}

// A secondary that accepts the NOTIFY and does nothing is notified again.
func TestNotifyReminds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSecondaries()
		f.pulls[one] = true
		p, n, z := startNotifier(t, f)
		change(t, p, z, "a.example.org.")
		time.Sleep(time.Minute)
		if f.notifies(two) < 2 || n.InSync(z.ID) {
			t.Errorf("%d NOTIFY in a minute, in sync %v", f.notifies(two), n.InSync(z.ID))
		}
		f.mu.Lock()
		f.serial[two] = f.newest() + 5 // a newer serial: the secondary has another primary too
		f.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if !n.InSync(z.ID) {
			t.Error("a secondary that is ahead counts as behind")
		}
	})
}

// A zone that changes all the time is behind at its secondaries by the last changes only. Progress says which.
func TestNotifyBusyZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSecondaries()
		f.pulls[one], f.pulls[two], f.deaf[two] = true, true, true
		p, n, z := startNotifier(t, f)
		time.Sleep(time.Second)
		start := time.Now()
		for i := range 300 {
			change(t, p, z, fmt.Sprintf("n%d.example.org.", i))
			time.Sleep(100 * time.Millisecond)
		}
		got := n.Progress(z.ID)
		if got[0].InSync {
			t.Fatal("in sync, so the test shows nothing: make changes faster")
		}
		if lag := time.Since(got[0].Since); lag > 3*time.Second || time.Since(got[0].From) > 3*time.Second {
			t.Errorf("the secondary that keeps up lacks changes since %v, from %v", lag, time.Since(got[0].From))
		}
		if got[1].Since.After(start) || got[1].From.After(start) {
			t.Errorf("the deaf secondary lacks changes since %v and from %v, want %v", got[1].Since, got[1].From, start)
		}
		f.mu.Lock()
		f.deaf[two] = false
		f.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if !n.InSync(z.ID) {
			t.Errorf("not in sync after the last change: %+v", n.Progress(z.ID))
		}
	})
}

// The time from which records may be missing is the time of the first change that a secondary lacks. After a start it
// is not known.
func TestNotifyFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSecondaries()
		f.deaf[two] = true
		p, n, z := startNotifier(t, f)
		time.Sleep(time.Second)
		if got := n.Progress(z.ID)[1]; got.InSync || !got.From.IsZero() {
			t.Errorf("of one that did not answer yet: %+v, want no time", got)
		}
		at := time.Now()
		change(t, p, z, "a.example.org.")
		time.Sleep(time.Minute)
		change(t, p, z, "b.example.org.")
		if got := n.Progress(z.ID)[0]; got.InSync || !got.From.Equal(at) || got.Since.Before(at) {
			t.Errorf("of one that lacks two changes: %+v, want the time of the first, %v", got, at)
		}
	})
}

func TestNotifyForgetsDeletedZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSecondaries()
		f.deaf[one], f.deaf[two] = true, true
		p, n, z := startNotifier(t, f)
		change(t, p, z, "a.example.org.")
		commit(t, p, func(tx *publish.Tx) error { return tx.DeleteZone(z.ID) })
		time.Sleep(10 * time.Minute)
		before := f.notifies(one)
		time.Sleep(time.Hour)
		if !n.InSync(z.ID) || f.notifies(one) != before {
			t.Errorf("a deleted zone is still notified: %d, then %d", before, f.notifies(one))
		}
	})
}

// A secondary that is added at run time is queried for its serials, and notified of newer ones.
func TestNotifySecondariesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSecondaries()
		f.pulls[one], f.pulls[two] = true, true
		p, n, z := startNotifier(t, f)
		n.SetSecondaries(nil)
		time.Sleep(time.Second)
		change(t, p, z, "a.example.org.")
		time.Sleep(time.Minute)
		if f.notifies(one) != 0 || !n.InSync(z.ID) || len(n.Progress(z.ID)) != 0 {
			t.Errorf("without secondaries %d NOTIFY, in sync %v", f.notifies(one), n.InSync(z.ID))
		}
		n.SetSecondaries([]transfer.Secondary{{Addr: two}})
		time.Sleep(10 * time.Second)
		if f.notifies(one) != 0 || f.notifies(two) != 1 || !n.InSync(z.ID) {
			t.Errorf("NOTIFY to one that left %d, to one that came %d, in sync %v", f.notifies(one), f.notifies(two),
				n.InSync(z.ID))
		}
		change(t, p, z, "b.example.org.")
		time.Sleep(10 * time.Second)
		if f.notifies(two) != 2 || !n.InSync(z.ID) {
			t.Errorf("NOTIFY %d, in sync %v", f.notifies(two), n.InSync(z.ID))
		}
	})
}

// After a start the serials of the secondaries are unknown. One that does not answer is notified when it is back.
func TestNotifyDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSecondaries()
		f.pulls[one], f.pulls[two], f.deaf[two] = true, true, true
		_, n, z := startNotifier(t, f)
		time.Sleep(time.Second)
		got := n.Progress(z.ID)
		if !got[0].InSync || got[1].InSync || got[1].Problem == "" || n.InSync(z.ID) {
			t.Errorf("with one that does not answer: %+v", got)
		}
		f.mu.Lock()
		f.deaf[two] = false
		f.mu.Unlock()
		time.Sleep(time.Minute)
		if f.notifies(two) == 0 || !n.InSync(z.ID) {
			t.Errorf("after it came back: %+v, notified %d times", n.Progress(z.ID), f.notifies(two))
		}
	})
}

// Progress reports why a notified secondary does not have a serial.
func TestNotifyWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSecondaries()
		f.pulls[one] = true
		p, n, z := startNotifier(t, f)
		time.Sleep(time.Second)
		f.mu.Lock() // no NOTIFY is sent while the test reads the progress
		change(t, p, z, "a.example.org.")
		if got := n.Progress(z.ID)[1]; got.Acknowledged || got.Problem != "" {
			t.Errorf("before the first NOTIFY: %+v", got)
		}
		f.mu.Unlock()
		time.Sleep(time.Second)
		if got := n.Progress(z.ID)[1]; got.InSync || !got.Acknowledged || !strings.Contains(got.Problem, "still has serial") {
			t.Errorf("of one that was notified and does nothing: %+v", got)
		}
	})
}
