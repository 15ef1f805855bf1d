package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

var (
	www  = must.Pattern("www.example.com")
	wild = must.Pattern("*.example.com")
	t0   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

type learned = map[enforce.Pattern][]netip.Addr

var same = cmp.Options{
	cmpopts.SortSlices(netip.Addr.Less), cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b enforce.Pattern) bool { return a == b }),
}

func TestLeaseTable(t *testing.T) {
	b := newLeaseTable(time.Hour)
	used := map[enforce.Pattern]bool{www: true}
	a1, a2, a3 := addr("192.0.2.1"), addr("192.0.2.2"), addr("192.0.2.3")
	b.lease(www, []netip.Addr{a1}, t0.Add(10*time.Second))
	b.lease(www, []netip.Addr{a1}, t0.Add(5*time.Second)) // a shorter lease does not shorten the first one
	b.lease(wild, []netip.Addr{a3}, t0.Add(20*time.Second))
	steps := []struct {
		name          string
		after         time.Duration
		status        learned
		used          map[enforce.Pattern]bool
		learned, kept learned
		next          time.Duration // zero means never
	}{
		{"leases and status", 0, learned{www: {a2}}, used, learned{www: {a1, a2}}, nil, 10 * time.Second},
		{"both have it", time.Second, learned{www: {a1, a2}}, used, learned{www: {a1, a2}}, nil, 10 * time.Second},
		{"the lease is over", 10 * time.Second, learned{www: {a1, a2}}, used, learned{www: {a1, a2}}, nil, 20 * time.Second},
		{"an address leaves", 11 * time.Second, learned{www: {a2}}, used, learned{www: {a2}}, learned{www: {a1}},
			20 * time.Second},
		{"and comes back", 12 * time.Second, learned{www: {a1, a2}}, used, learned{www: {a1, a2}}, nil, 20 * time.Second},
		{"and leaves", 30 * time.Second, learned{www: {a2}}, used, learned{www: {a2}}, learned{www: {a1}}, time.Hour +
			30*time.Second},
		{"is kept no longer", time.Hour + 30*time.Second, learned{www: {a2}}, used, learned{www: {a2}}, nil, 0},
		{"no rule has the name", 2 * time.Hour, learned{www: {a2}}, nil, nil, nil, 0},
		{"nothing of old is kept", 2 * time.Hour, nil, used, nil, nil, 0},
	}
	for _, s := range steps {
		got, kept, next := b.snapshot(reading{status: s.status, used: s.used}, t0.Add(s.after))
		if diff := cmp.Diff(s.learned, got, same); diff != "" {
			t.Errorf("%s: learned (-want +got)\n%s", s.name, diff)
		}
		if diff := cmp.Diff(s.kept, kept, same); diff != "" {
			t.Errorf("%s: kept (-want +got)\n%s", s.name, diff)
		}
		want := t0.Add(s.next)
		if s.next == 0 {
			want = time.Time{}
		}
		if !next.Equal(want) {
			t.Errorf("%s: next change %v, want %v", s.name, next, want)
		}
	}
}

// TestLeaseTableRestart checks that after a restart the addresses in the switch stay until plugins have reconnected.
func TestLeaseTableRestart(t *testing.T) {
	b := newLeaseTable(time.Hour)
	used := map[enforce.Pattern]bool{www: true}
	b.remember(learned{www: {addr("192.0.2.1")}}, learned{www: {addr("192.0.2.2")}}, t0)
	got, kept, next := b.snapshot(reading{used: used}, t0)
	if len(got[www]) != 1 || len(kept[www]) != 1 || !next.Equal(t0.Add(restartLease)) {
		t.Errorf("learned %v, kept %v, next %v", got, kept, next)
	}
	if got, kept, _ = b.snapshot(reading{used: used}, next); len(got[www]) != 0 || len(kept[www]) != 2 {
		t.Errorf("then learned %v, kept %v", got, kept)
	}
}

// TestLeaseTableBounds checks that the number of kept addresses is bounded, and that the newest ones are kept.
func TestLeaseTableBounds(t *testing.T) {
	b := newLeaseTable(time.Hour)
	used := map[enforce.Pattern]bool{wild: true}
	a := addr("2001:db8::1")
	for i := range 2 * maxKept {
		b.keep(wild, a, t0.Add(time.Duration(i)*time.Millisecond))
		a = a.Next()
	}
	_, kept, _ := b.snapshot(reading{used: used}, t0.Add(time.Minute))
	if n := len(kept[wild]); n > maxKept || n < maxKept/2 {
		t.Errorf("%d are kept, of at most %d", n, maxKept)
	}
	if _, kept, evicted := b.count(); kept+evicted != 2*maxKept {
		t.Errorf("%d are kept, and %d said to have gone before their time", kept, evicted)
	}
	if _, _, evicted := b.count(); evicted != 0 {
		t.Errorf("%d are counted twice", evicted)
	}
	if b.kept[wild][a.Prev()].IsZero() {
		t.Error("the newest is not kept")
	}
	off := newLeaseTable(0)
	off.snapshot(reading{status: learned{wild: {a}}, used: used}, t0)
	if _, kept, _ := off.snapshot(reading{used: used}, t0); len(kept) != 0 {
		t.Errorf("turned off, kept %v", kept)
	}
}
