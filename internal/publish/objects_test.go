package publish_test

import (
	"errors"
	"testing"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

func TestObjectVersion(t *testing.T) {
	p := open(t, publish.Options{})
	version := func() [2]uint64 { return [2]uint64{p.ObjectVersion("key"), p.ObjectVersion("other")} }
	put := func(kind store.Kind, fail error) {
		t.Helper()
		err := commit(t, p, func(tx *publish.Tx) error {
			if err := tx.PutObject(kind, "1", 1); err != nil {
				return err
			}
			if err := tx.PutObject(kind, "2", 1); err != nil {
				return err
			}
			return fail
		})
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
	}
	put("key", nil)
	if got := version(); got != [2]uint64{1, 0} {
		t.Errorf("after one commit %v", got)
	}
	put("other", nil)
	put("key", errors.New("no"))
	if got := version(); got != [2]uint64{1, 1} {
		t.Errorf("after one of another kind, and one that failed, %v", got)
	}
	if err := commit(t, p, func(tx *publish.Tx) error { return tx.DeleteObject("key", "1") }); err != nil {
		t.Fatal(err)
	}
	if got := version(); got != [2]uint64{2, 1} {
		t.Errorf("after a delete %v", got)
	}
}
