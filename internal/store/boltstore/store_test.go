package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
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
	return s
}

// TestViewsDuringCommits reads while a writer commits. A View must see whole Updates, and all Updates that were
// acknowledged before it began.
func TestViewsDuringCommits(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	var acked atomic.Int64
	var readers sync.WaitGroup
	stop := make(chan struct{})
	number := func(b []byte) int64 {
		n, _ := strconv.ParseInt(string(b), 10, 64)
		return n
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := acked.Load()
				err := s.View(func(r store.Reader) error {
					a, b := number(r.Get(store.Sets, []byte("k"))), number(r.Get(store.Zones, []byte("k")))
					if a != b || a < least {
						return fmt.Errorf("a View saw %d and %d after %d was acknowledged", a, b, least)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := int64(1); n <= 150; n++ {
		mustUpdate(t, s, func(w store.Writer) error {
			v := strconv.AppendInt(nil, n, 10)
			return errors.Join(w.Put(store.Sets, []byte("k"), v), w.Put(store.Zones, []byte("k"), v))
		})
		acked.Store(n)
	}
	close(stop)
	readers.Wait()
}
