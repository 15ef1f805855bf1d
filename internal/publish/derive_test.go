package publish_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// mirror derives, from every TXT set in example.org, a set of the same name in example.net.
func mirror(tx *publish.Tx, changed []publish.Changed) error {
	to, err := tx.ZoneByName(dnsname.MustParse("example.net."))
	if err != nil {
		return nil
	}
	for _, c := range changed {
		for _, s := range c.Sets {
			if c.Zone.Name != dnsname.MustParse("example.org.") {
				continue
			}
			if s.After == nil || s.After.Type != rr.TypeTXT {
				continue
			}
			if strings.Contains(s.After.Data[0], "refuse") {
				return errors.New("not derivable")
			}
			name, err := to.Name.Child(s.After.Name.Label())
			if err != nil {
				return err
			}
			if _, err := tx.CreateSet(zone.RecordSet{Zone: to.ID, Name: name, Type: rr.TypeTXT,
				Data: s.After.Data}); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestDerive(t *testing.T) {
	p := open(t, publish.Options{Derive: mirror})
	org, net := newZone(t, p, "example.org."), newZone(t, p, "example.net.")
	if err := commit(t, p, func(tx *publish.Tx) error {
		_, err := tx.CreateSet(set(t, org.ID, "a.example.org.", "TXT", 60, "one"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if served(p, "example.net.", "a.example.net.", rr.TypeTXT) == "" {
		t.Error("what was derived is not served")
	}
	if now := current(t, p, net.ID); now.Serial <= net.Serial {
		t.Errorf("the zone of what was derived has serial %d as before", now.Serial)
	}
	serial := current(t, p, org.ID).Serial
	if err := commit(t, p, func(tx *publish.Tx) error {
		_, err := tx.CreateSet(set(t, org.ID, "b.example.org.", "TXT", 60, "refuse"))
		return err
	}); err == nil || served(p, "example.org.", "b.example.org.", rr.TypeTXT) != "" ||
		current(t, p, org.ID).Serial != serial {
		t.Errorf("an edit whose derivation fails: %v", err)
	}
}

func TestDeriveEnds(t *testing.T) {
	calls := 0
	p := open(t, publish.Options{Derive: func(tx *publish.Tx, changed []publish.Changed) error {
		for _, s := range changed[0].Sets {
			if s.After != nil && s.After.Type == rr.TypeTXT {
				calls++
				next := *s.After
				next.Data = []string{"\x01" + string(rune('a'+calls%20))}
				_, err := tx.UpdateSet(next)
				return err
			}
		}
		return nil
	}})
	z := newZone(t, p, "example.org.")
	if err := commit(t, p, func(tx *publish.Tx) error {
		_, err := tx.CreateSet(set(t, z.ID, "a.example.org.", "TXT", 60, "x"))
		return err
	}); err == nil || served(p, "example.org.", "a.example.org.", rr.TypeTXT) != "" {
		t.Errorf("a derivation that never ends: %v", err)
	}
}

func TestDeriveSeesZones(t *testing.T) {
	var seen []publish.Changed
	p := open(t, publish.Options{Derive: func(_ *publish.Tx, changed []publish.Changed) error {
		seen = append(seen, changed...)
		return nil
	}})
	z := newZone(t, p, "example.org.")
	if len(seen) != 1 || len(seen[0].Sets) < 2 {
		t.Fatalf("seen of a new zone with two sets: %+v", seen)
	}
	seen = nil
	if err := p.CommitAlone(t.Context(), actor, func(tx *publish.Tx) error {
		return tx.ReplaceSets(z.ID, append(apexSets(t, "example.org."), set(t, z.ID, "x.example.org.", "A", 60, "192.0.2.1")))
	}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || !seen[0].Whole {
		t.Errorf("seen of a replacement: %+v", seen)
	}
	seen = nil
	if err := commit(t, p, func(tx *publish.Tx) error { return tx.DeleteZone(z.ID) }); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || !seen[0].Deleted {
		t.Errorf("seen of a deletion: %+v", seen)
	}
}
