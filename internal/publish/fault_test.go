package publish_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// TestFaultInEdit: when an edit reads a page that the disk no longer has, Commit returns the error of the store. It
// does not panic in its caller, as it does for a mistake of the edit.
func TestFaultInEdit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	p, _ := runOn(t, openStore(t, path), publish.Options{})
	z := newZone(t, p, "example.org.")
	err := commit(t, p, func(tx *publish.Tx) error {
		if err := os.Truncate(path, 2*4096); err != nil {
			return err
		}
		_, err := tx.Zone(z.ID)
		return err
	})
	if d := (*store.DamagedError)(nil); !errors.As(err, &d) {
		t.Errorf("Commit = %v, want a DamagedError", err)
	}
}
