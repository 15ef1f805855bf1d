package publish_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

func TestOverlay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	p, stop := start(t, path, publish.Options{})
	var z zone.Zone
	put := func(name, typ, data string) error {
		return commit(t, p, func(tx *publish.Tx) (err error) {
			if z, err = tx.Overlay(dnsname.Root); err != nil {
				return err
			}
			_, err = tx.CreateSet(set(t, z.ID, name, typ, 30, data))
			return err
		})
	}
	if err := put("app.example.com.", "A", "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	first := current(t, p, z.ID)
	if first.Kind != zone.Overlay || first.Serial == 0 || first.Sets != 1 {
		t.Errorf("overlay %+v", first)
	}
	if err := put("app.example.com.", "AAAA", "2001:db8::1"); err != nil {
		t.Fatal(err)
	}
	if now := current(t, p, z.ID); now.ID != first.ID || now.Serial <= first.Serial {
		t.Errorf("a change of zone %s at serial %d gave zone %s serial %d", first.ID, first.Serial, now.ID, now.Serial)
	}
	for _, bad := range [][2]string{{"NS", "ns.example.org."}, {"DNAME", "example.org."}} {
		var placement *zone.PlacementError
		if err := put("x.example.com.", bad[0], bad[1]); !errors.As(err, &placement) {
			t.Errorf("%s in an overlay: %v", bad[0], err)
		}
	}
	check := func() {
		t.Helper()
		if served(p, ".", "app.example.com.", rr.TypeA) == "" || !p.Snapshot().ZoneOf(dnsname.Root).IsOverlay() {
			t.Error("the overlay is not served")
		}
	}
	check()
	stop()
	p, _ = start(t, path, publish.Options{})
	check()
}

func TestOverlayAndZoneOfOneName(t *testing.T) {
	p := open(t, publish.Options{})
	newZone(t, p, "example.org.")
	err := commit(t, p, func(tx *publish.Tx) error {
		_, err := tx.Overlay(dnsname.MustParse("example.org."))
		return err
	})
	if !errors.Is(err, store.ErrExists) {
		t.Errorf("an overlay with the name of a zone: %v", err)
	}
}
