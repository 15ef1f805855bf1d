package publish_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/store/storetest"
	"github.com/nameplane/nameplane/internal/zone"
)

// history returns the length of a zone's journal. It checks that the row of the zone has the same numbers.
func history(t *testing.T, p *publish.Publisher, id uuid.UUID) (rows, bytes int) {
	t.Helper()
	z := current(t, p, id)
	err := p.View(func(v store.View) error {
		rows, bytes = v.CountChanges(id)
		return nil
	})
	if err != nil || rows != z.Changes || bytes != z.ChangeBytes {
		t.Errorf("the row of the zone counts %d changes of %d bytes, the journal has %d of %d: %v", z.Changes,
			z.ChangeBytes, rows, bytes, err)
	}
	return rows, bytes
}

// putText sets the records of 30 names. Each has 60 KiB and begins with a letter.
func putText(t *testing.T, p *publish.Publisher, z zone.Zone, letter string) {
	t.Helper()
	data := []string{"\x01" + letter + strings.Repeat("\xff"+strings.Repeat("x", 255), 240)}
	err := commit(t, p, func(tx *publish.Tx) error {
		for i := range 30 {
			name := dnsname.MustParse(fmt.Sprintf("n%d.example.org.", i))
			s := zone.RecordSet{Zone: z.ID, Name: name, Type: rr.TypeTXT, Data: data}
			_, err := tx.UpdateSet(s)
			if errors.Is(err, store.ErrNotFound) {
				_, err = tx.CreateSet(s)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestJournalBytes makes changes of 3.6 MB each. The journal must keep only the newest of them, without a gap.
func TestJournalBytes(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	for i := range 25 {
		putText(t, p, z, string(rune('a'+i)))
	}
	if rows, bytes := history(t, p, z.ID); rows < 15 || rows > 24 || bytes > 65<<20 {
		t.Errorf("the journal keeps %d changes of %d bytes", rows, bytes)
	}
	serial := current(t, p, z.ID).Serial
	for _, c := range changes(t, p, z.ID) {
		if c.To != serial {
			t.Errorf("a change to serial %d follows one from %d", c.To, serial)
		}
		serial = c.From
	}
}

// longHistory returns a store with a zone whose journal has very many rows. An older version wrote the row of the zone.
func longHistory(t *testing.T, path string, rows int) (*storetest.Counted, zone.Zone) {
	t.Helper()
	p, stop := start(t, path, publish.Options{})
	z := newZone(t, p, "example.org.")
	stop()
	st := openStore(t, path)
	err := st.Update(func(w store.Writer) error {
		for i := range rows {
			if err := w.Put(store.Journal, store.JournalKey(z.ID, uint64(1<<20+i)), make([]byte, 1000)); err != nil {
				return err
			}
		}
		row := w.Get(store.Zones, z.ID[:])
		return w.Put(store.Zones, z.ID[:], row[:len(row)-3]) // one change, and two bytes for its size
	})
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Count(st), z
}

// TestEditReadsNoHistory checks that an edit does not read the journal of its zone, also after the import of another
// zone failed. Only the first edit of a zone that an older version wrote counts the keys.
func TestEditReadsNoHistory(t *testing.T) {
	st, z := longHistory(t, filepath.Join(t.TempDir(), "db"), 5000)
	p, _ := run(t, st, publish.Options{})
	edit := func(name string) (read int) {
		t.Helper()
		_, _ = st.Rows()
		if err := commit(t, p, func(tx *publish.Tx) error {
			_, err := tx.CreateSet(set(t, z.ID, name, "A", 0, "192.0.2.1"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		_, read = st.Rows()
		return read
	}
	edit("a.example.org.")
	bad := errors.New("a bad file")
	if err := p.CommitAlone(t.Context(), actor, func(*publish.Tx) error { return bad }); !errors.Is(err, bad) {
		t.Fatal(err)
	}
	if read := edit("b.example.org."); read > 100 {
		t.Errorf("an edit read %d rows", read)
	}
	if rows, _ := history(t, p, z.ID); rows != 5003 {
		t.Errorf("%d changes", rows)
	}
}

// TestDeleteLongHistory deletes a zone with a long journal. No commit may delete all of it, and it must be gone in the
// end, also when the server stops in between.
func TestDeleteLongHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	st, z := longHistory(t, path, 5000)
	left := func() (n int) {
		t.Helper()
		err := st.View(func(r store.Reader) error { n, _ = store.NewView(r).CountChanges(z.ID); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	p, stop := run(t, st, publish.Options{})
	atCommit := 0
	err := commit(t, p, func(tx *publish.Tx) error {
		err := tx.DeleteZone(z.ID)
		atCommit, _ = tx.CountChanges(z.ID)
		return err
	})
	if err != nil || atCommit < 3000 {
		t.Fatalf("the commit left %d changes: %v", atCommit, err)
	}
	stop()
	again, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st = storetest.Count(again)
	p, _ = run(t, st, publish.Options{})
	newZone(t, p, "example.net.")
	for range 1000 {
		if left() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	err = p.View(func(v store.View) error {
		return v.EachObject(store.KindLeftJournal, func(id string, _ []byte) (bool, error) { return true, errors.New(id) })
	})
	if n := left(); n != 0 || err != nil {
		t.Errorf("%d changes are left, and a row for %v", n, err)
	}
}
