package publish_test

import (
	"testing"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
)

// TestAliasIsNotServed checks that an ALIAS is stored and not served, and that the sets derived from it are served and
// not counted.
func TestAliasIsNotServed(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	flat := set(t, z.ID, "example.org.", "A", 60, "192.0.2.1")
	flat.Hidden, flat.Managed = true, true
	err := commit(t, p, func(tx *publish.Tx) error {
		if _, err := tx.CreateSet(set(t, z.ID, "example.org.", "ALIAS", 300, "target.test.")); err != nil {
			return err
		}
		_, err := tx.CreateSet(flat)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	now := current(t, p, z.ID)
	if now.Sets != z.Sets+1 || now.Records != z.Records+1 {
		t.Errorf("%d sets with %d records, want one more than %d with %d", now.Sets, now.Records, z.Sets, z.Records)
	}
	if served(p, "example.org.", "example.org.", rr.TypeALIAS) != "" ||
		served(p, "example.org.", "example.org.", rr.TypeA) == "" {
		t.Error("the ALIAS is served, or its address is not")
	}
	serial := now.Serial
	if err := commit(t, p, func(tx *publish.Tx) error { // a new TTL of the ALIAS alone changes nothing on the wire
		_, err := tx.UpdateSet(set(t, z.ID, "example.org.", "ALIAS", 200, "target.test."))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if now := current(t, p, z.ID); now.Serial != serial {
		t.Errorf("serial stepped from %d to %d", serial, now.Serial)
	}
}
