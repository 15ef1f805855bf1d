package boltstore

import (
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, dir string) store.Store {
		return open(t, filepath.Join(dir, "store.db"))
	})
}

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	s.walSize = testWAL
	return s
}

// testWAL is the size of logs in tests: they copy them a lot.
const testWAL = walEntries + 2*walEntryHead + maxEntry + 200_000
