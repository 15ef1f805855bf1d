package publish_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestFaultInEdit checks an edit that reads a page that the file no longer has. Commit must return the error of the
// store, and must not panic in its caller as it does for a bug in the edit.
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

// spoil overwrites part of a text in the file of an open store.
func spoil(t *testing.T, path, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for at := 0; ; n++ {
		i := bytes.Index(b[at:], []byte(text))
		if i < 0 {
			break
		}
		at += i + 1
		if _, err := f.WriteAt([]byte("!"), int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if n == 0 {
		t.Fatalf("the store does not have %q", text)
	}
}

// TestDamagedRow damages a record set on the disk while a publisher runs. An edit that reads the row must fail alone. A
// change that must load the whole zone again must leave the zone served as it was.
func TestDamagedRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	p, _ := runOn(t, openStore(t, path), publish.Options{})
	z := newZone(t, p, "example.org.")
	www := set(t, z.ID, "www.example.org.", "TXT", 0, `"text to damage"`)
	if err := commit(t, p, func(tx *publish.Tx) error { _, err := tx.CreateSet(www); return err }); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, "text to damage")
	damaged := new(store.DamagedError)

	held, release := make(chan bool), make(chan bool)
	done := make(chan error, 2)
	go func() {
		done <- p.Commit(t.Context(), actor, func(*publish.Tx) error { close(held); <-release; return nil })
	}()
	<-held
	go func() { // most of the time in the same group as the edit that reads the damaged row
		done <- p.Commit(t.Context(), actor, func(tx *publish.Tx) error {
			_, err := tx.CreateSet(set(t, z.ID, "new.example.org.", "A", 0, "192.0.2.1"))
			return err
		})
	}()
	meet := make(chan error, 1)
	go func() {
		meet <- p.Commit(t.Context(), actor, func(tx *publish.Tx) error {
			_, err := tx.RecordSet(z.ID, www.Name, www.Type)
			return err
		})
	}()
	close(release)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Errorf("edits beside the one that read the row: %v", err)
	}
	if err := <-meet; !errors.As(err, &damaged) {
		t.Errorf("the edit that read the row: %v, want a DamagedError", err)
	}

	var outcome []bool
	var left zone.Zone
	err := commit(t, p, func(tx *publish.Tx) error {
		zone, err := tx.Zone(z.ID)
		if err != nil {
			return err
		}
		tx.OnDone(func(committed bool) { outcome = append(outcome, committed) })
		if err := tx.After(z.ID, &left); err != nil {
			return err
		}
		zone.TTL += 100
		_, err = tx.UpdateZone(zone)
		return err
	})
	if !errors.As(err, &damaged) {
		t.Errorf("a change of the zone's TTL: %v, want a DamagedError", err)
	}
	stored, err := publish.Read(p, func(v store.View) (zone.Zone, error) { return v.Zone(z.ID) })
	if err != nil || stored.TTL != z.TTL+100 {
		t.Fatalf("the stored TTL is %d (%v), want %d", stored.TTL, err, z.TTL+100)
	}
	if !slices.Equal(outcome, []bool{true}) || left.Serial != stored.Serial {
		t.Errorf("the change is stored, but OnDone reported %v and After serial %d, want true and %d", outcome,
			left.Serial, stored.Serial)
	}
	if served(p, "example.org.", "www.example.org.", rr.TypeTXT) == "" ||
		served(p, "example.org.", "new.example.org.", rr.TypeA) == "" {
		t.Error("names of the zone are no longer served")
	}
}
