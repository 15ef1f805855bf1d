package publish_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// wantQuota fails the test unless err is a QuotaError for the resource.
func wantQuota(t *testing.T, what string, err error, resource string) {
	t.Helper()
	q, ok := errors.AsType[*publish.QuotaError](err)
	if !ok || q.Resource != resource || q.N <= q.Most {
		t.Errorf("%s = %v, want a QuotaError of %s", what, err, resource)
	}
}

// create creates a zone of a project.
func create(t *testing.T, p *publish.Publisher, project, name string, kind zone.Kind) (z zone.Zone, err error) {
	t.Helper()
	err = commit(t, p, func(tx *publish.Tx) (err error) {
		z, err = tx.CreateZone(zone.Zone{Name: dnsname.MustParse(name), Project: project, Kind: kind, TTL: 60},
			apexSets(t, name)...)
		return err
	})
	return z, err
}

func TestQuotas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	p, stop := start(t, path, publish.Options{Quotas: publish.Quotas{Zones: 2, ZoneRecordsets: 4, ZoneRecords: 6,
		RecordsetRecords: 3, APIExportSize: -1}})
	z, err := create(t, p, "p", "a.test.", zone.Primary)
	if err != nil {
		t.Fatal(err)
	}
	put := func(s zone.RecordSet) error {
		return commit(t, p, func(tx *publish.Tx) error { _, err := tx.CreateSet(s); return err })
	}
	if err := put(set(t, z.ID, "w.a.test.", "A", 0, "192.0.2.1", "192.0.2.2")); err != nil {
		t.Fatal(err)
	}
	wantQuota(t, "a set of 4", put(set(t, z.ID, "x.a.test.", "A", 0, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")),
		"recordset_records")
	wantQuota(t, "3 records more", put(set(t, z.ID, "x.a.test.", "A", 0, "192.0.2.1", "192.0.2.2", "192.0.2.3")),
		"zone_records")
	if err := put(set(t, z.ID, "x.a.test.", "A", 0, "192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	wantQuota(t, "a fifth set", put(set(t, z.ID, "y.a.test.", "A", 0, "192.0.2.1")), "zone_recordsets")
	wantQuota(t, "80 kB", commit(t, p, func(tx *publish.Tx) error {
		for _, name := range []string{"w.a.test.", "x.a.test."} {
			if _, err := tx.UpdateSet(zone.RecordSet{Zone: z.ID, Name: dnsname.MustParse(name), Type: rr.TypeA,
				Data: []string{strings.Repeat("x", 40_000)}}); err != nil {
				return err
			}
		}
		return nil
	}), "bytes of a zone")

	var many []zone.RecordSet
	for i := range 5 {
		many = append(many, set(t, z.ID, fmt.Sprintf("h%d.a.test.", i), "A", 0, "192.0.2.1"))
	}
	wantQuota(t, "a replacement", p.CommitAlone(t.Context(), actor, func(tx *publish.Tx) error {
		return tx.ReplaceSets(z.ID, append(apexSets(t, "a.test."), many...))
	}), "zone_recordsets")
	if err := p.CommitAlone(t.Context(), actor, func(tx *publish.Tx) error { // as an administrator
		tx.LiftQuotas()
		return tx.ReplaceSets(z.ID, append(apexSets(t, "a.test."), many...))
	}); err != nil {
		t.Error(err)
	}
	// A zone that exceeds its quota can be changed, and can shrink.
	change := set(t, z.ID, "h0.a.test.", "A", 0, "192.0.2.9")
	if err := commit(t, p, func(tx *publish.Tx) error { _, err := tx.UpdateSet(change); return err }); err != nil {
		t.Errorf("a change of a zone beyond its quota: %v", err)
	}
	if err := commit(t, p, func(tx *publish.Tx) error {
		return tx.DeleteSet(z.ID, change.Name, change.Type)
	}); err != nil {
		t.Errorf("a deletion in a zone beyond its quota: %v", err)
	}
	wantQuota(t, "growth of a zone beyond its quota", put(set(t, z.ID, "y.a.test.", "A", 0, "192.0.2.1")),
		"zone_recordsets")

	stop() // a restart, to check that the counts are in the store
	p, _ = start(t, path, publish.Options{Quotas: publish.Quotas{Zones: -1, ZoneRecordsets: -1, ZoneRecords: 0,
		RecordsetRecords: 20, APIExportSize: -1}})
	wantQuota(t, "after a restart", put(set(t, z.ID, "y.a.test.", "A", 0, "192.0.2.1")), "zone_records")
}

// TestRecordSetQuota checks that a set which is larger than its quota can get another TTL, by a change or by deletion
// and creation in one edit.
func TestRecordSetQuota(t *testing.T) {
	q := publish.Quotas{Zones: 1, ZoneRecordsets: -1, ZoneRecords: -1, RecordsetRecords: 3, APIExportSize: -1}
	p := open(t, publish.Options{Quotas: q})
	z, err := create(t, p, "p", "a.test.", zone.Primary)
	if err != nil {
		t.Fatal(err)
	}
	large := set(t, z.ID, "w.a.test.", "A", 60, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")
	wantQuota(t, "a set of 4", commit(t, p, func(tx *publish.Tx) error { _, err := tx.CreateSet(large); return err }),
		"recordset_records")
	if err := commit(t, p, func(tx *publish.Tx) error {
		tx.LiftRecordQuotas()
		_, err := tx.CreateSet(large)
		return err
	}); err != nil {
		t.Errorf("a set of an administrator: %v", err)
	}
	wantQuota(t, "a second zone of an administrator", commit(t, p, func(tx *publish.Tx) error {
		tx.LiftRecordQuotas()
		_, err := tx.CreateZone(zone.Zone{Name: dnsname.MustParse("b.test."), Project: "p", Kind: zone.Primary, TTL: 60},
			apexSets(t, "b.test.")...)
		return err
	}), "zones")
	again := func(s zone.RecordSet) error {
		return commit(t, p, func(tx *publish.Tx) error {
			if err := tx.DeleteSet(z.ID, s.Name, s.Type); err != nil {
				return err
			}
			_, err := tx.CreateSet(s)
			return err
		})
	}
	large.TTL = new(uint32(300))
	if err := commit(t, p, func(tx *publish.Tx) error { _, err := tx.UpdateSet(large); return err }); err != nil {
		t.Errorf("another TTL: %v", err)
	}
	large.TTL = new(uint32(600))
	if err := again(large); err != nil {
		t.Errorf("another TTL by deletion and creation: %v", err)
	}
	wantQuota(t, "one record more", again(set(t, z.ID, "w.a.test.", "A", 60, "192.0.2.1", "192.0.2.2", "192.0.2.3",
		"192.0.2.4", "192.0.2.5")), "recordset_records")
}

// TestZonesQuota counts zones that are created, deleted and transferred, in one edit or several, and when a group
// fails.
func TestZonesQuota(t *testing.T) {
	q := publish.Quotas{Zones: 2, ZoneRecordsets: -1, ZoneRecords: -1, RecordsetRecords: -1, APIExportSize: -1}
	p := open(t, publish.Options{Quotas: q})
	a, _ := create(t, p, "p", "a.test.", zone.Primary)
	b, err := create(t, p, "p", "b.test.", zone.Secondary)
	if err != nil {
		t.Fatal(err)
	}
	_, err = create(t, p, "p", "c.test.", zone.Primary)
	wantQuota(t, "a third zone", err, "zones")
	if _, err := create(t, p, "q", "c.test.", zone.Primary); err != nil {
		t.Errorf("another project's first zone: %v", err)
	}
	if err := commit(t, p, func(tx *publish.Tx) error {
		_, err := tx.Overlay(dnsname.MustParse("o.test."))
		return err
	}); err != nil {
		t.Errorf("an overlay: %v", err)
	}
	give := func(z zone.Zone, to string) error {
		return commit(t, p, func(tx *publish.Tx) error { z.Project = to; _, err := tx.UpdateZone(z); return err })
	}
	if err := give(a, "q"); err != nil {
		t.Errorf("transfer to a project with one zone: %v", err)
	}
	wantQuota(t, "give to a project with two zones", give(b, "q"), "zones")
	if err := commit(t, p, func(tx *publish.Tx) error { // replaces a zone that the same edit deletes
		if err := tx.DeleteZone(b.ID); err != nil {
			return err
		}
		for _, name := range []string{"d.test.", "e.test."} {
			if _, err := tx.CreateZone(zone.Zone{Name: dnsname.MustParse(name), Project: "p", Kind: zone.Primary, TTL: 60},
				apexSets(t, name)...); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	_, err = create(t, p, "p", "f.test.", zone.Primary)
	wantQuota(t, "a third zone after others came and went", err, "zones")
	if err := commit(t, p, func(tx *publish.Tx) error {
		return tx.PutObject(store.KindQuota, "p", map[string]int{"zones": 3})
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := create(t, p, "p", "f.test.", zone.Primary); err != nil {
		t.Errorf("with a quota of its own: %v", err)
	}
}

// TestQuotaOfNewOwner checks that a transferred zone must fit the quotas of its new owner.
func TestQuotaOfNewOwner(t *testing.T) {
	p := open(t, publish.Options{Quotas: publish.Quotas{Zones: -1, ZoneRecordsets: 2, ZoneRecords: -1,
		RecordsetRecords: -1, APIExportSize: -1}})
	if err := commit(t, p, func(tx *publish.Tx) error {
		return tx.PutObject(store.KindQuota, "large", map[string]int{"zone_recordsets": -1})
	}); err != nil {
		t.Fatal(err)
	}
	z, err := create(t, p, "large", "a.test.", zone.Primary)
	if err != nil {
		t.Fatal(err)
	}
	if err := commit(t, p, func(tx *publish.Tx) error {
		_, err := tx.CreateSet(set(t, z.ID, "w.a.test.", "A", 0, "192.0.2.1"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	wantQuota(t, "giving it away", commit(t, p, func(tx *publish.Tx) error {
		z.Project = "p"
		_, err := tx.UpdateZone(z)
		return err
	}), "zone_recordsets")
}

// TestFullMemory checks that zones can shrink and change, but cannot grow, when the memory is full.
func TestFullMemory(t *testing.T) {
	full := false
	p := open(t, publish.Options{Full: func() bool { return full }})
	z, err := create(t, p, "p", "a.test.", zone.Primary)
	if err != nil {
		t.Fatal(err)
	}
	w := set(t, z.ID, "w.a.test.", "A", 0, "192.0.2.1")
	if err := commit(t, p, func(tx *publish.Tx) error { _, err := tx.CreateSet(w); return err }); err != nil {
		t.Fatal(err)
	}
	full = true
	if _, err := create(t, p, "p", "b.test.", zone.Primary); !errors.Is(err, publish.ErrMemory) {
		t.Errorf("a new zone = %v", err)
	}
	w.Data = []string{"\xc0\x00\x02\x09"}
	if err := commit(t, p, func(tx *publish.Tx) error { _, err := tx.UpdateSet(w); return err }); err != nil {
		t.Errorf("a change of the same size = %v", err)
	}
	if err := commit(t, p, func(tx *publish.Tx) error { return tx.DeleteSet(z.ID, w.Name, w.Type) }); err != nil {
		t.Errorf("a deletion = %v", err)
	}
}
