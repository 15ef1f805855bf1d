package publish_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// heldStore is a store whose disk takes as long as the test likes.
type heldStore struct {
	store.Store
	disk chan error // how each Stage goes; nil: at once
	air  *store.Staged
	sent atomic.Int64 // Stages on their way to the disk, since the beginning
	full error
}

// Update implements store.Store.
func (h *heldStore) Update(fn func(store.Writer) error) error {
	if h.full != nil {
		return h.full
	}
	return h.Store.Update(fn)
}

// Stage implements store.Stager.
func (h *heldStore) Stage(fn func(store.Writer) error) (*store.Staged, error) {
	if err := h.Update(fn); err != nil {
		return nil, err
	}
	if h.air != nil {
		if err := h.air.Err(); err != nil {
			return nil, err
		}
	}
	h.air = store.NewStaged(true)
	h.sent.Add(1)
	go func(s *store.Staged, disk chan error) {
		if disk == nil {
			s.End(nil)
			return
		}
		s.End(<-disk)
	}(h.air, h.disk)
	return h.air, nil
}

// caller is a Commit that somebody waits for.
type caller struct {
	err  error
	told bool
}

func (c *caller) commit(p *publish.Publisher, fn func(*publish.Tx) error) {
	go func() {
		c.err = p.Commit(context.Background(), actor, fn)
		c.told = true
	}()
	synctest.Wait()
}

// TestStaged: edits run while the group before is on its way to the disk, and see it; but nobody is told, and nothing is
// served, before it is there. What becomes of one group becomes of those who saw it.
func TestStaged(t *testing.T) {
	errDisk := errors.Join(errors.New("no disk"), store.ErrUnavailable)
	tests := []struct {
		name  string
		disk  error
		want  error  // of the change
		told  error  // of an edit that changed nothing, because the change before it was there
		after string // what is served
	}{
		{"durable", nil, nil, nil, "\xc0\x00\x02\x02"},
		{"lost", errDisk, store.ErrUnavailable, store.ErrUnavailable, "\xc0\x00\x02\x01"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, p, z := openHeld(t)
				h.disk = make(chan error)
				www := set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.2")
				update := func(tx *publish.Tx) error { _, err := tx.UpdateSet(www); return err }
				var change, same, refused caller
				change.commit(p, update)
				same.commit(p, update)
				refused.commit(p, func(tx *publish.Tx) error { _, err := tx.CreateSet(www); return err })
				if change.told || same.told || refused.told {
					t.Error("somebody was told before the change was durable")
				}
				if got := served(p, "example.org.", "www.example.org.", rr.TypeA); !strings.HasSuffix(got, "\xc0\x00\x02\x01") {
					t.Errorf("served before it was durable: %q", got)
				}
				h.disk <- tt.disk
				synctest.Wait()
				if !errors.Is(change.err, tt.want) || !errors.Is(same.err, tt.told) || !change.told || !same.told {
					t.Errorf("Commit = %v and of the same again %v, want %v and %v", change.err, same.err, tt.want, tt.told)
				}
				if refusal := store.ErrExists; tt.disk == nil && !errors.Is(refused.err, refusal) {
					t.Errorf("Commit of what exists = %v, want %v", refused.err, refusal)
				}
				if tt.disk != nil && !errors.Is(refused.err, store.ErrUnavailable) {
					t.Errorf("Commit of what existed in what was lost = %v, want ErrUnavailable", refused.err)
				}
				if got := served(p, "example.org.", "www.example.org.", rr.TypeA); !strings.HasSuffix(got, tt.after) {
					t.Errorf("served = %q, want %q", got, tt.after)
				}
			})
		})
	}
}

// TestRefusedBeforeItRan: the store does not even begin. The caller is told, and the next one is served again.
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
		if !refused.told || !errors.Is(refused.err, store.ErrUnavailable) || !taken.told || taken.err != nil {
			t.Errorf("Commit = %+v on a full disk and %+v after it, want ErrUnavailable and nil", refused, taken)
		}
	})
}

// TestGroupWaits: when three callers shared the last step, one who comes back first waits for another, but not for long.
func TestGroupWaits(t *testing.T) {
	for _, comes := range []bool{true, false} {
		t.Run(fmt.Sprint(comes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, p, z := openHeld(t)
				h.disk = make(chan error)
				add := func(i int) func(*publish.Tx) error {
					s := set(t, z.ID, fmt.Sprintf("host%d.example.org.", i), "A", 0, "192.0.2.1")
					return func(tx *publish.Tx) error { _, err := tx.CreateSet(s); return err }
				}
				const took = 10 * time.Millisecond
				ready := make(chan struct{})
				var callers [5]caller
				callers[0].commit(p, func(tx *publish.Tx) error { <-ready; return add(0)(tx) })
				callers[1].commit(p, add(1))
				callers[2].commit(p, add(2))
				close(ready)
				time.Sleep(took)
				h.disk <- nil
				synctest.Wait()
				sent := h.sent.Load()
				callers[3].commit(p, add(3))
				if h.sent.Load() != sent {
					t.Error("the first to come back is on its way to the disk, alone")
				}
				if comes {
					callers[4].commit(p, add(4))
				} else {
					callers[4].told = true
					time.Sleep(took / 2)
					synctest.Wait()
				}
				if h.sent.Load() != sent+1 {
					t.Errorf("%d steps when more than half are there, or half a step has passed, want 1", h.sent.Load()-sent)
				}
				h.disk <- nil
				synctest.Wait()
				for i, c := range callers {
					if c.err != nil || !c.told {
						t.Errorf("caller %d: %v, told %v", i, c.err, c.told)
					}
				}
			})
		})
	}
}

// openHeld is a publisher with a zone and an address in it.
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
	// Two edits in a group: a caller who was alone is waited for by the committer itself.
	ready := make(chan struct{})
	var both [2]caller
	both[0].commit(p, func(tx *publish.Tx) error { <-ready; _, err := tx.CreateSet(www); return err })
	both[1].commit(p, func(tx *publish.Tx) error { return nil })
	close(ready)
	synctest.Wait()
	if both[0].err != nil || both[1].err != nil || !both[0].told {
		t.Fatal(both[0], both[1])
	}
	return h, p, z
}
