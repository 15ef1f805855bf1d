package boltstore

import (
	"os"
	"path/filepath"
	"testing"
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
				if err := tt.disk.datasync(f); err != nil {
					t.Fatalf("sync %d: %v", i, err)
				}
			}
			if got := tt.disk.holdsThread(); got != tt.holds {
				t.Errorf("holdsThread() = %v, want %v", got, tt.holds)
			}
			if err := tt.disk.datasync(end); err == nil {
				t.Error("a pipe was synced, want an error")
			}
			if err := tt.disk.datasync(f); err != nil {
				t.Errorf("after an error: %v", err)
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
	if err := disk.datasync(f); err != nil {
		t.Fatal(err)
	}
	disk.fd = -1 // the kernel refuses to tell it
	for range 2 {
		if err := disk.datasync(f); err != nil {
			t.Errorf("datasync = %v, want a thread to do it", err)
		}
	}
	if !disk.holdsThread() {
		t.Error("it is tried again and again")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := disk.datasync(f); err == nil {
		t.Error("a closed file was synced, want an error")
	}
}
