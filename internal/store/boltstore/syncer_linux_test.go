package boltstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/internal/store"
)

func TestSyncer(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	end, other, err := os.Pipe() // nothing can sync it
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	defer other.Close()
	var probe syncer
	refused := !probe.open()
	probe.close()
	tests := []struct {
		name  string
		disk  *syncer
		holds bool
	}{
		{"asynchronous", &syncer{}, refused},
		{"with a thread", &syncer{plain: true}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer tt.disk.close()
			for i := range int64(20) {
				if _, err := f.WriteAt([]byte{1}, i*4096); err != nil {
					t.Fatal(err)
				}
				if err := tt.disk.datasync(f, false); err != nil {
					t.Fatalf("sync %d: %v", i, err)
				}
			}
			if got := tt.disk.holdsThread(); got != tt.holds {
				t.Errorf("holdsThread() = %v, want %v", got, tt.holds)
			}
			if err := tt.disk.datasync(end, false); err == nil {
				t.Error("a pipe was synced, want an error")
			}
			if err := tt.disk.datasync(f, false); err != nil {
				t.Errorf("after an error: %v", err)
			}
			if err := tt.disk.datasync(f, true); err != nil {
				t.Errorf("with a thread: %v", err)
			}
		})
	}
}

// TestSyncerCannotSubmit: what the kernel does not take is done all the same.
func TestSyncerCannotSubmit(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	disk := &syncer{}
	defer disk.close()
	if err := disk.datasync(f, false); err != nil {
		t.Fatal(err)
	}
	disk.fd = -1 // the kernel refuses to tell it
	for range 2 {
		if err := disk.datasync(f, false); err != nil {
			t.Errorf("datasync = %v, want a thread to do it", err)
		}
	}
	if !disk.holdsThread() {
		t.Error("it is tried again and again")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := disk.datasync(f, false); err == nil {
		t.Error("a closed file was synced, want an error")
	}
}

func TestHoldsThread(t *testing.T) {
	var probe syncer
	refused := !probe.open()
	probe.close()
	for _, hold := range []bool{false, true} {
		s := open(t, filepath.Join(t.TempDir(), "store.db"))
		s.hold = hold
		for _, size := range []int{1, 2 * manyOctets} {
			mustUpdate(t, s, func(w store.Writer) error { return w.Put(store.Objects, []byte("k"), make([]byte, size)) })
		}
		if got, want := s.HoldsThread(), hold || refused; got != want {
			t.Errorf("HoldsThread() = %v, want %v", got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
