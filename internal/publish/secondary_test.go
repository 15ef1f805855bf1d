package publish_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestSecondaryKeepsMastersSerial checks that a secondary zone has the serial of its master, whatever the time or the
// order.
func TestSecondaryKeepsMastersSerial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	p, stop := start(t, path, publish.Options{})
	apex := dnsname.MustParse("second.test.")
	var z zone.Zone
	if err := commit(t, p, func(tx *publish.Tx) (err error) {
		z, err = tx.CreateZone(zone.Zone{Name: apex, Kind: zone.Secondary, Masters: []string{"192.0.2.1"}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	content := func(serial string) []zone.RecordSet {
		return []zone.RecordSet{set(t, z.ID, "second.test.", "SOA", 60, "ns.test. host.test. "+serial+" 60 60 600 60"),
			set(t, z.ID, "second.test.", "NS", 60, "ns.test."), set(t, z.ID, "www.second.test.", "A", 60, "192.0.2.1")}
	}
	if err := p.CommitAlone(t.Context(), store.Actor{},
		func(tx *publish.Tx) error { return tx.ReplaceSets(z.ID, content("77")) }); err != nil {
		t.Fatal(err)
	}
	if got := p.Snapshot().ZoneOf(apex).Serial(); got != 77 || current(t, p, z.ID).Serial != 77 {
		t.Errorf("serial %d", got)
	}
	if err := commit(t, p, func(tx *publish.Tx) error {
		if _, err := tx.UpdateSet(content("5")[0]); err != nil { // a master may start again with a smaller serial
			return err
		}
		_, err := tx.UpdateSet(set(t, z.ID, "www.second.test.", "A", 60, "192.0.2.2"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := p.Snapshot().ZoneOf(apex).Serial(); got != 5 ||
		served(p, "second.test.", "www.second.test.", rr.TypeA) == "" {
		t.Errorf("serial %d", got)
	}
	if err := commit(t, p, func(tx *publish.Tx) error { return tx.DeleteSet(z.ID, apex, rr.TypeNS) }); err == nil {
		t.Error("a copy without NS was accepted")
	}
	testExpiry(t, p, stop, path, z)
}

// testExpiry checks that an expired copy is not served, also after a restart, until its state is no longer expired.
func testExpiry(t *testing.T, p *publish.Publisher, stop func(), path string, z zone.Zone) {
	t.Helper()
	say := func(expired bool) {
		t.Helper()
		if err := commit(t, p, func(tx *publish.Tx) error {
			return tx.SetSecondary(z.ID, publish.Secondary{Checked: time.Unix(1e9, 0), Expired: expired})
		}); err != nil {
			t.Fatal(err)
		}
	}
	isServed := func(want bool) {
		t.Helper()
		n := p.Snapshot().ZoneOf(z.Name)
		if n == nil {
			t.Fatal("the zone is gone, and its parent would answer")
		}
		if _, ok := n.Negative(); ok != want {
			t.Errorf("served %v, want %v", ok, want)
		}
	}
	isServed(true)
	say(true)
	isServed(false)
	stop()
	p, _ = start(t, path, publish.Options{})
	isServed(false)
	say(false)
	isServed(true)
	if err := commit(t, p, func(tx *publish.Tx) error { return tx.DeleteZone(z.ID) }); err != nil {
		t.Fatal(err)
	}
	_ = p.View(func(v store.View) error {
		if s, err := publish.SecondaryOf(v, z.ID); err != nil || !s.Checked.IsZero() {
			t.Errorf("after the zone was deleted: %v, %v", s, err)
		}
		return nil
	})
}
