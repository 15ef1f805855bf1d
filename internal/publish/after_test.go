package publish_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestAfter checks that After stores the zone as the edit left it.
func TestAfter(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	www := set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.1")
	for _, create := range []bool{true, false} {
		var left zone.Zone
		if err := p.Commit(context.Background(), actor, func(tx *publish.Tx) (err error) {
			if err = tx.After(z.ID, &left); err == nil && create {
				_, err = tx.CreateSet(www)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		var want zone.Zone
		if err := p.View(func(v store.View) (err error) { want, err = v.Zone(z.ID); return err }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, left, cmpopts.EquateComparable(dnsname.Name{})); diff != "" {
			t.Errorf("the zone with a set created %v (-stored +left):\n%s", create, diff)
		}
		if left.Serial == z.Serial {
			t.Errorf("the serial is still %d", z.Serial)
		}
	}
}
