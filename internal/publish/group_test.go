package publish_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// heldStore is a store whose disk takes as long as the test likes.
type heldStore struct {
	store.Store
	disk chan error // the outcome of each Update; nil: success at once
	full error      // when set, the store does not even begin
}

// Update implements store.Store.
func (h *heldStore) Update(fn func(store.Writer) error) error {
	if h.full != nil {
		return h.full
	}
	return h.Store.Update(func(w store.Writer) error {
		if err := fn(w); err != nil || h.disk == nil {
			return err
		}
		return <-h.disk
	})
}

// caller is a Commit that runs beside the test.
type caller struct {
	err  error
	done bool
}

func (c *caller) commit(p *publish.Publisher, fn func(*publish.Tx) error) {
	go func() {
		c.err = p.Commit(context.Background(), actor, fn)
		c.done = true
	}()
	synctest.Wait()
}

// TestGroup: edits that wait while another runs share its step. No Commit returns and nothing is served before the step
// is durable; when it fails, it fails for all of them.
func TestGroup(t *testing.T) {
	tests := []struct {
		name    string
		disk    error
		want    error  // of the change, and of an edit after it that found nothing to change
		refused error  // of an edit that the change stood in the way of
		after   string // end of the address that is served
	}{
		{"durable", nil, nil, store.ErrExists, "\xc0\x00\x02\x02"},
		{"lost", store.ErrUnavailable, store.ErrUnavailable, store.ErrUnavailable, "\xc0\x00\x02\x01"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, p, z := openHeld(t)
				h.disk = make(chan error)
				www := set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.2")
				update := func(tx *publish.Tx) error { _, err := tx.UpdateSet(www); return err }
				ready := make(chan struct{})
				var change, same, refused caller
				change.commit(p, func(tx *publish.Tx) error { <-ready; return update(tx) })
				same.commit(p, update)
				refused.commit(p, func(tx *publish.Tx) error { _, err := tx.CreateSet(www); return err })
				close(ready)
				synctest.Wait()
				if change.done || same.done || refused.done {
					t.Error("a Commit returned before the group was durable")
				}
				if got := served(p, "example.org.", "www.example.org.", rr.TypeA); !strings.HasSuffix(got, "\xc0\x00\x02\x01") {
					t.Errorf("served before it was durable: %q", got)
				}
				h.disk <- tt.disk // once: they share a step
				synctest.Wait()
				if !errors.Is(change.err, tt.want) || !errors.Is(same.err, tt.want) || !change.done || !same.done {
					t.Errorf("Commit = %v and of the same again %v, want %v", change.err, same.err, tt.want)
				}
				if !errors.Is(refused.err, tt.refused) {
					t.Errorf("Commit of what exists = %v, want %v", refused.err, tt.refused)
				}
				if got := served(p, "example.org.", "www.example.org.", rr.TypeA); !strings.HasSuffix(got, tt.after) {
					t.Errorf("served = %q, want %q", got, tt.after)
				}
			})
		})
	}
}

// TestRefusedBeforeItRan: the store does not even begin. Commit returns its error, and the next Commit succeeds again.
func TestRefusedBeforeItRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p, z := openHeld(t)
		www := set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.2")
		update := func(tx *publish.Tx) error { _, err := tx.UpdateSet(www); return err }
		h.full = store.ErrUnavailable
		var refused, taken caller
		refused.commit(p, update)
		h.full = nil
		taken.commit(p, update)
		if !refused.done || !errors.Is(refused.err, store.ErrUnavailable) || !taken.done || taken.err != nil {
			t.Errorf("Commit = %+v on a full disk and %+v after it, want ErrUnavailable and nil", refused, taken)
		}
	})
}

// openHeld returns a publisher with a zone and an address in it.
func openHeld(t *testing.T) (*heldStore, *publish.Publisher, zone.Zone) {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &heldStore{Store: st}
	p, err := publish.Open(h, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	z := newZone(t, p, "example.org.")
	www := set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.1")
	if err := commit(t, p, func(tx *publish.Tx) error { _, err := tx.CreateSet(www); return err }); err != nil {
		t.Fatal(err)
	}
	return h, p, z
}
