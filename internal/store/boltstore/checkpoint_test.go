package boltstore

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestFlushEarly: a round begins to bring its pages to the disk at half of what is left of it, again and again, and the next one
// anew.
func TestFlushEarly(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	defer s.Close()
	s.maxRound = 1600
	var began []int
	for range 2 {
		for s.round, s.early = 0, 0; s.round < s.maxRound; s.round += 100 {
			before := s.early
			s.flushEarly()
			s.flushing.Wait()
			if s.early != before {
				began = append(began, s.round)
			}
		}
	}
	round := []int{800, 1200, 1400, 1500}
	if want := slices.Concat(round, round); !slices.Equal(began, want) {
		t.Errorf("flushes began at %v, want %v", began, want)
	}

	s.round, s.early = 800, 0
	s.flushes.Store(true) // one is still running
	if s.flushEarly(); s.early != 0 {
		t.Error("a second flush beside the first")
	}
	s.flushes.Store(false)
	s.round = 0
}
