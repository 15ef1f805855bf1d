package transfer_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestKeyring checks that a key is valid from the commit that creates it to the one that deletes it, within its scope.
func TestKeyring(t *testing.T) {
	p := newPublisher(t, publish.Options{})
	one, two := zone.Zone{ID: uuid.New(), Pool: uuid.New()}, zone.Zone{ID: uuid.New(), Pool: uuid.New()}
	b := transfer.NewKeyring(p)
	put := func(id, name, algorithm, scope string, resource uuid.UUID) {
		t.Helper()
		commit(t, p, func(tx *publish.Tx) error {
			return tx.PutObject(store.KindTSIGKey, id, map[string]any{"name": name, "algorithm": algorithm, "secret": "c2VjcmV0",
				"scope": scope, "resource_id": resource})
		})
	}
	found := func(name string, want bool) transfer.Key {
		t.Helper()
		k, ok, err := b.Find(dnsname.MustParse(name))
		if err != nil || ok != want {
			t.Fatalf("%s is found: %v (%v)", name, ok, err)
		}
		return k
	}
	found("k1.", false)
	put("1", "k1", "hmac-sha256", "ZONE", one.ID)
	if k := found("K1.", true); k.Algorithm.String() != "hmac-sha256." || !k.For(one) || k.For(two) {
		t.Errorf("key %+v", k)
	}
	put("2", "k2.", "hmac-sha512", "POOL", two.Pool)
	if k := found("k2.", true); k.For(one) || !k.For(two) {
		t.Errorf("key %+v", k)
	}
	put("4", "nobody.", "hmac-sha256", "ZONE", uuid.Nil)
	if k := found("nobody.", true); k.For(zone.Zone{ID: one.ID}) { // a zone without a pool
		t.Errorf("key %+v is for a zone that it was not made for", k)
	}
	put("3", "weak.", "hmac-md5", "POOL", two.Pool)
	found("weak.", false)
	commit(t, p, func(tx *publish.Tx) error { return tx.DeleteObject(store.KindTSIGKey, "1") })
	found("k1.", false)
	found("k2.", true)
}
