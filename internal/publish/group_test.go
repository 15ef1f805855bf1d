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

// heldStore is a store whose Update blocks until the test sends its outcome.
type heldStore struct {
	store.Store
	disk chan error // the outcome of each Update; nil means success at once
	full error      // when set, Update fails before it calls its function
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

// caller is a Commit in a goroutine of its own.
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

// TestGroup checks that edits that wait while another one runs share its group. No Commit may return and nothing may be
// served before the group is durable. When the Update fails, all of them fail.
func TestGroup(t *testing.T) {
	tests := []struct {
		name    string
		disk    error
		want    error  // result of the change, and of a later edit that found nothing to change
		refused error  // result of an edit that the change conflicts with
		after   string // last byte of the served address
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
				h.disk <- tt.disk // once, because the edits share an Update
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

// TestStoreRefusesToBegin checks an Update that fails before it calls its function. Commit must return the error, and
// the next Commit must succeed.
func TestStoreRefusesToBegin(t *testing.T) {
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

// openHeld returns a publisher with a zone that has one address. It must run in a bubble: it waits until the committer
// has searched for journals of deleted zones, because that work is an Update of its own.
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
	synctest.Wait()
	return h, p, z
}
