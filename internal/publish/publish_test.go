package publish_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

var actor = store.Actor{Who: "test", Project: "p", API: "test"}

// start opens a publisher on path and runs it until the test ends or stop is called.
func start(t *testing.T, path string, opts publish.Options) (p *publish.Publisher, stop func()) {
	t.Helper()
	st, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, st, opts)
}

// run starts a publisher on a store. stop also closes the store.
func run(t *testing.T, st store.Store, opts publish.Options) (p *publish.Publisher, stop func()) {
	t.Helper()
	p, err := publish.Open(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			<-ended
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return p, stop
}

func open(t *testing.T, opts publish.Options) *publish.Publisher {
	t.Helper()
	p, _ := start(t, filepath.Join(t.TempDir(), "db"), opts)
	return p
}

func set(t *testing.T, z uuid.UUID, name, typ string, ttl int, data ...string) zone.RecordSet {
	t.Helper()
	tt, err := rr.ParseType(typ)
	if err != nil {
		t.Fatal(err)
	}
	s := zone.RecordSet{Zone: z, Name: dnsname.MustParse(name), Type: tt}
	if ttl > 0 {
		v := uint32(ttl)
		s.TTL = &v
	}
	for _, d := range data {
		b, err := rr.ParseData(tt, d)
		if err != nil {
			t.Fatal(err)
		}
		s.Data = append(s.Data, b)
	}
	return s
}

func commit(t *testing.T, p *publish.Publisher, fn func(*publish.Tx) error) error {
	t.Helper()
	return p.Commit(t.Context(), actor, fn)
}

// newZone creates a zone with SOA and NS.
func newZone(t *testing.T, p *publish.Publisher, name string) zone.Zone {
	t.Helper()
	var z zone.Zone
	err := commit(t, p, func(tx *publish.Tx) (err error) {
		z, err = tx.CreateZone(zone.Zone{Name: dnsname.MustParse(name), Kind: zone.Primary, TTL: 300, Project: "p"},
			apexSets(t, name)...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func apexSets(t *testing.T, name string) []zone.RecordSet {
	return []zone.RecordSet{
		set(t, uuid.Nil, name, "SOA", 0, "ns."+name+" host."+name+" 1 3600 600 86400 60"),
		set(t, uuid.Nil, name, "NS", 0, "ns."+name),
	}
}

// served returns the wire form of a set in the snapshot, or "".
func served(p *publish.Publisher, zoneName, name string, typ rr.Type) string {
	n := dnsname.MustParse(name)
	z := p.Snapshot().ZoneOf(dnsname.MustParse(zoneName))
	if z == nil {
		return ""
	}
	node := z.Find([]byte(n.In(z.Apex())))
	if !node.Found() {
		return ""
	}
	s, _ := node.Find(typ)
	return s.Wire
}

func current(t *testing.T, p *publish.Publisher, id uuid.UUID) (z zone.Zone) {
	t.Helper()
	if err := p.View(func(v store.View) (err error) { z, err = v.Zone(id); return err }); err != nil {
		t.Fatal(err)
	}
	return z
}

func TestCommitServes(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	before := time.Now().Unix()
	if z.Serial == 0 || int64(z.Serial) < before-5 {
		t.Errorf("serial of a new zone is %d, want about %d", z.Serial, before)
	}
	serial := z.Serial
	for i := range 3 { // within one second, in which the serial must grow nevertheless
		err := commit(t, p, func(tx *publish.Tx) error {
			_, err := tx.CreateSet(set(t, z.ID, fmt.Sprintf("h%d.example.org.", i), "A", 60, "192.0.2.1"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if served(p, "example.org.", fmt.Sprintf("h%d.example.org.", i), rr.TypeA) == "" {
			t.Fatal("acknowledged but not served")
		}
		next := current(t, p, z.ID).Serial
		if int32(next-serial) <= 0 {
			t.Errorf("serial went from %d to %d", serial, next)
		}
		serial = next
		if got := p.Snapshot().ZoneOf(z.Name).Serial(); got != serial {
			t.Errorf("served serial %d, stored %d", got, serial)
		}
	}
	if got := current(t, p, z.ID); got.Sets != 5 || got.Records != 5 {
		t.Errorf("counts: %d sets, %d records, want 5 and 5", got.Sets, got.Records)
	}
}

func TestNoChangeNoSerial(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	a := set(t, z.ID, "www.example.org.", "A", 60, "192.0.2.1", "192.0.2.2")
	if err := commit(t, p, func(tx *publish.Tx) error { _, err := tx.CreateSet(a); return err }); err != nil {
		t.Fatal(err)
	}
	was := current(t, p, z.ID)
	a.Data[0], a.Data[1] = a.Data[1], a.Data[0] // the same set in another order
	var got zone.RecordSet
	if err := commit(t, p, func(tx *publish.Tx) (err error) { got, err = tx.UpdateSet(a); return err }); err != nil {
		t.Fatal(err)
	}
	if now := current(t, p, z.ID); now.Serial != was.Serial || got.Version != 1 || !got.Updated.IsZero() {
		t.Errorf("a no-op moved the serial from %d to %d, version %d", was.Serial, now.Serial, got.Version)
	}
	text := "only words"
	a.Description = &text
	if err := commit(t, p, func(tx *publish.Tx) (err error) { got, err = tx.UpdateSet(a); return err }); err != nil {
		t.Fatal(err)
	}
	if now := current(t, p, z.ID); now.Serial != was.Serial || got.Version != 2 {
		t.Errorf("a description moved the serial from %d to %d, or not the version: %d", was.Serial, now.Serial, got.Version)
	}
	// A set that is created and deleted in one edit changes nothing.
	err := commit(t, p, func(tx *publish.Tx) error {
		s, err := tx.CreateSet(set(t, z.ID, "x.example.org.", "A", 0, "192.0.2.1"))
		if err != nil {
			return err
		}
		return tx.DeleteSet(z.ID, s.Name, s.Type)
	})
	if now := current(t, p, z.ID); err != nil || now.Serial != was.Serial || now.Sets != was.Sets {
		t.Errorf("a round trip: %v, serial %d to %d, sets %d to %d", err, was.Serial, now.Serial, was.Sets, now.Sets)
	}
}

func TestAllOrNothing(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	was := current(t, p, z.ID)
	tests := []struct {
		name string
		fn   func(tx *publish.Tx) error
		want string
	}{
		{"cname beside a", func(tx *publish.Tx) error {
			if _, err := tx.CreateSet(set(t, z.ID, "a.example.org.", "A", 0, "192.0.2.1")); err != nil {
				return err
			}
			_, err := tx.CreateSet(set(t, z.ID, "a.example.org.", "CNAME", 0, "b.example.org."))
			return err
		}, "CNAME cannot coexist"},
		{"cname at the apex", func(tx *publish.Tx) error {
			_, err := tx.CreateSet(set(t, z.ID, "example.org.", "CNAME", 0, "b.example.org."))
			return err
		}, "apex"},
		{"outside", func(tx *publish.Tx) error {
			_, err := tx.CreateSet(set(t, z.ID, "example.net.", "A", 0, "192.0.2.1"))
			return err
		}, "not in zone"},
		{"label boundary", func(tx *publish.Tx) error {
			_, err := tx.CreateSet(set(t, z.ID, `attacker\.example.org.`, "A", 0, "192.0.2.1"))
			return err
		}, "not in zone"},
		{"no soa", func(tx *publish.Tx) error { return tx.DeleteSet(z.ID, z.Name, rr.TypeSOA) }, "no SOA"},
		{"no ns", func(tx *publish.Tx) error { return tx.DeleteSet(z.ID, z.Name, rr.TypeNS) }, "no NS"},
		{"own error", func(tx *publish.Tx) error {
			if _, err := tx.CreateSet(set(t, z.ID, "b.example.org.", "A", 0, "192.0.2.1")); err != nil {
				return err
			}
			if err := tx.PutObject("x", "y", 1); err != nil {
				return err
			}
			return errors.New("changed my mind")
		}, "changed my mind"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := commit(t, p, tt.fn)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Commit = %v, want %q", err, tt.want)
			}
			if now := current(t, p, z.ID); now.Serial != was.Serial || now.Sets != was.Sets {
				t.Errorf("a refused edit changed the zone: %+v", now)
			}
			if served(p, "example.org.", "a.example.org.", rr.TypeA)+
				served(p, "example.org.", "b.example.org.", rr.TypeA) != "" {
				t.Error("a refused edit is served")
			}
		})
	}
	var x int
	if err := p.View(func(v store.View) error { return v.Object("x", "y", &x) }); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("object of a refused edit: %v", err)
	}
}

// TestTurnCNAMEIntoA checks that the rules apply to the state that a batch leaves, not to the states between its steps.
func TestTurnCNAMEIntoA(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	name := dnsname.MustParse("www.example.org.")
	if err := commit(t, p, func(tx *publish.Tx) error {
		_, err := tx.CreateSet(set(t, z.ID, "www.example.org.", "CNAME", 0, "b.example.org."))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := commit(t, p, func(tx *publish.Tx) error {
		if _, err := tx.CreateSet(set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.1")); err != nil {
			return err
		}
		return tx.DeleteSet(z.ID, name, rr.TypeCNAME)
	}); err != nil {
		t.Fatal(err)
	}
	if served(p, "example.org.", "www.example.org.", rr.TypeA) == "" ||
		served(p, "example.org.", "www.example.org.", rr.TypeCNAME) != "" {
		t.Error("the batch is not what is served")
	}
}

// TestFailedEditsLeaveOthers runs many edits at once, of which a third fails or panics. The others must succeed.
func TestFailedEditsLeaveOthers(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	var wg sync.WaitGroup
	for i := range 120 {
		wg.Go(func() {
			defer func() {
				if v := recover(); (v != nil) != (i%6 == 5) {
					t.Errorf("edit %d: panic %v", i, v)
				}
			}()
			name := fmt.Sprintf("h%d.example.org.", i)
			err := commit(t, p, func(tx *publish.Tx) error {
				if _, err := tx.CreateSet(set(t, z.ID, name, "A", 0, "192.0.2.1")); err != nil {
					return err
				}
				switch i % 6 {
				case 2:
					return errors.New("no")
				case 5:
					panic("no")
				}
				return nil
			})
			if (err != nil) != (i%6 == 2) {
				t.Errorf("edit %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range 120 {
		want := i%6 != 2 && i%6 != 5
		if got := served(p, "example.org.", fmt.Sprintf("h%d.example.org.", i), rr.TypeA) != ""; got != want {
			t.Errorf("h%d served: %v, want %v", i, got, want)
		}
	}
	if got := current(t, p, z.ID).Sets; got != 2+80 {
		t.Errorf("%d sets, want 82", got)
	}
	rows := 0
	err := p.View(func(v store.View) error {
		return v.RecordSets(z.ID, func(zone.RecordSet) (bool, error) { rows++; return true, nil })
	})
	if err != nil || rows != 82 {
		t.Errorf("%d rows stored, want 82: %v", rows, err)
	}
}

func TestCanceledBeforeItRan(t *testing.T) {
	p := open(t, publish.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.Commit(ctx, actor, func(*publish.Tx) error { t.Error("ran"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Commit = %v, want context.Canceled", err)
	}
}

func TestClosed(t *testing.T) {
	p, stop := start(t, filepath.Join(t.TempDir(), "db"), publish.Options{})
	stop()
	if err := commit(t, p, func(*publish.Tx) error { return nil }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Commit after the end = %v, want ErrUnavailable", err)
	}
}

func TestZoneTTLChangesAnswers(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	if err := commit(t, p, func(tx *publish.Tx) error {
		_, err := tx.CreateSet(set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.1"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	z = current(t, p, z.ID)
	z.TTL = 7
	if err := commit(t, p, func(tx *publish.Tx) error { _, err := tx.UpdateZone(z); return err }); err != nil {
		t.Fatal(err)
	}
	if got := served(p, "example.org.", "www.example.org.", rr.TypeA)[6:10]; got != "\x00\x00\x00\x07" {
		t.Errorf("served TTL %x, want 7", got)
	}
	if now := current(t, p, z.ID); now.Serial == z.Serial {
		t.Error("the TTLs changed and the serial did not")
	}
}

func TestDeleteZone(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	if err := commit(t, p, func(tx *publish.Tx) error { return tx.DeleteZone(z.ID) }); err != nil {
		t.Fatal(err)
	}
	if p.Snapshot().Len() != 0 {
		t.Error("a deleted zone is served")
	}
	err := p.View(func(v store.View) error {
		if n, _ := v.CountChanges(z.ID); n != 0 {
			t.Error("a deleted zone has a history")
		}
		return v.RecordSetsByAge(map[uuid.UUID]zone.Zone{z.ID: z}, nil, false, 0, func(s zone.RecordSet) (bool, error) {
			t.Errorf("left behind: %s %s", s.Name, s.Type)
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if again := newZone(t, p, "example.org."); again.ID == z.ID {
		t.Error("a new zone has the id of the old one")
	}
}
