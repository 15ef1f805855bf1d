package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/store"
)

// RunStage is the part of Run that is about store.Stager.
func RunStage(t *testing.T, open Opener) {
	t.Run("OnTopOfEachOther", func(t *testing.T) { testStage(t, open) })
	t.Run("ShowsNothing", func(t *testing.T) { testStageShowsNothing(t, open) })
}

// testStage has Stages of many sizes run on top of each other, with Updates and refused ones among them. Each sees all that
// came before; Views see a Stage when it is done, and the next open finds everything.
func testStage(t *testing.T, open Opener) {
	dir := t.TempDir()
	s, ok := open(t, dir).(store.Stager)
	if !ok {
		return
	}
	var want []string
	check := func(r store.Reader) {
		t.Helper()
		if diff := cmp.Diff(want, content(r, store.Sets)); diff != "" {
			t.Fatalf("after %d steps (-want +got):\n%s", len(want), diff)
		}
	}
	write := func(i int, w store.Writer) {
		check(w)
		put(t, w, store.Sets, fmt.Sprintf("%04d", i), "v")
		put(t, w, store.Journal, fmt.Sprintf("%04d", i), fmt.Sprintf("%0*d", i%7*1000, i))
	}
	for i := range 400 {
		switch {
		case i%31 == 5:
			update(t, s, func(w store.Writer) { write(i, w) })
		case i%17 == 3:
			_, err := s.Stage(func(w store.Writer) error { write(i, w); return errCaller })
			if err != errCaller {
				t.Fatalf("Stage of a function that fails = %v, want its error", err)
			}
			continue
		default:
			staged := stage(t, s, func(w store.Writer) { write(i, w) })
			if i%13 == 0 {
				if err := staged.Err(); err != nil {
					t.Fatal(err)
				}
				want = append(want, fmt.Sprintf("%04d=v", i))
				view(t, s, check)
				continue
			}
		}
		want = append(want, fmt.Sprintf("%04d=v", i))
	}
	if err := s.Close(); err != nil {
		t.Fatalf("Close beside a Stage: %v", err)
	}
	view(t, openIn(t, open, dir), check)
}

// testStageShowsNothing: a View that was opened before a Stage is done stays as it is, and a Stage that writes nothing is
// done at once.
func testStageShowsNothing(t *testing.T, open Opener) {
	s, ok := openNew(t, open).(store.Stager)
	if !ok {
		return
	}
	view(t, s, func(r store.Reader) {
		first := stage(t, s, func(w store.Writer) { put(t, w, store.Sets, "k", "first") })
		second := stage(t, s, func(w store.Writer) {
			if got := w.Get(store.Sets, []byte("k")); string(got) != "first" {
				t.Errorf("the second Stage sees %q, want what the first wrote", got)
			}
			put(t, w, store.Sets, "k", "second")
		})
		for _, staged := range []*store.Staged{first, second, stage(t, s, func(store.Writer) {})} {
			if err := staged.Err(); err != nil {
				t.Error(err)
			}
		}
		if got := content(r, store.Sets); len(got) > 0 {
			t.Errorf("a View from before sees %q", got)
		}
	})
	wantContent(t, s, store.Sets, "k=second")
}

func stage(t *testing.T, s store.Stager, fn func(store.Writer)) *store.Staged {
	t.Helper()
	staged, err := s.Stage(func(w store.Writer) error { fn(w); return nil })
	if err != nil {
		t.Fatalf("Stage: %v", err)
	}
	return staged
}
