package publish_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

func changes(t *testing.T, p *publish.Publisher, id uuid.UUID) (out []store.Change) {
	t.Helper()
	err := p.View(func(v store.View) error {
		return v.Changes(id, 0, func(c store.Change) (bool, error) {
			out = append(out, c)
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestJournal(t *testing.T) {
	p := open(t, publish.Options{JournalLimit: 5})
	z := newZone(t, p, "example.org.")
	for i := range 9 {
		err := commit(t, p, func(tx *publish.Tx) error {
			tx.Note("step %d", i)
			s := set(t, z.ID, "www.example.org.", "A", 60, fmt.Sprintf("192.0.2.%d", i))
			if i == 0 {
				_, err := tx.CreateSet(s)
				return err
			}
			_, err := tx.UpdateSet(s)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := changes(t, p, z.ID)
	if len(got) != 5 {
		t.Fatalf("%d changes kept, want 5", len(got))
	}
	for i, c := range got {
		if want := fmt.Sprintf("step %d", 8-i); c.Note != want || c.Actor != actor || c.Time.IsZero() {
			t.Errorf("change %d: %+v, want %q by %v", i, c, want, actor)
		}
		if i > 0 && (got[i-1].From != c.To || got[i-1].Commit != c.Commit+1) {
			t.Errorf("serials do not join: %d then %d", c.To, got[i-1].From)
		}
		if len(c.Sets) != 2 || c.Sets[0].Before.Data[0] == c.Sets[0].After.Data[0] || c.Sets[1].After.Type != rr.TypeSOA {
			t.Errorf("change %d: sets %+v, want the A before and after, and the SOA", i, c.Sets)
		}
	}
}

func TestReplace(t *testing.T) {
	p := open(t, publish.Options{JournalSets: 50})
	z := newZone(t, p, "example.org.")
	replace := func(n int) {
		t.Helper()
		sets := apexSets(t, "example.org.")
		for i := range n {
			sets = append(sets, set(t, z.ID, fmt.Sprintf("h%d.example.org.", i), "A", n, fmt.Sprintf("192.0.2.%d", i%250)))
		}
		if err := p.CommitAlone(t.Context(), actor,
			func(tx *publish.Tx) error { return tx.ReplaceSets(z.ID, sets) }); err != nil {
			t.Fatal(err)
		}
	}
	replace(20)
	first := changes(t, p, z.ID)[0]
	if first.Whole || len(first.Sets) != 21 { // 20 new sets and the SOA
		t.Errorf("change: whole %v, %d sets, want 21", first.Whole, len(first.Sets))
	}
	stays := idOf(t, p, z.ID, "h2.example.org.")
	serial := current(t, p, z.ID).Serial
	replace(20)
	if now := current(t, p, z.ID).Serial; now != serial {
		t.Errorf("the same content again moved the serial from %d to %d", serial, now)
	}
	replace(500)
	if c := changes(t, p, z.ID)[0]; !c.Whole || len(c.Sets) != 0 {
		t.Errorf("a large change keeps %d sets, whole %v", len(c.Sets), c.Whole)
	}
	if served(p, "example.org.", "h499.example.org.", rr.TypeA) == "" {
		t.Error("not served")
	}
	replace(3)
	now := current(t, p, z.ID)
	if served(p, "example.org.", "h3.example.org.", rr.TypeA) != "" || now.Sets != 5 || now.Records != 5 {
		t.Errorf("after shrinking: %d sets, %d records", now.Sets, now.Records)
	}
	if got := idOf(t, p, z.ID, "h2.example.org."); got != stays {
		t.Errorf("a set that was not replaced changed its id from %s to %s", stays, got)
	}
	err := p.CommitAlone(t.Context(), actor, func(tx *publish.Tx) error {
		return tx.ReplaceSets(z.ID, []zone.RecordSet{set(t, z.ID, "www.example.org.", "A", 0, "192.0.2.1")})
	})
	if err == nil || current(t, p, z.ID).Serial != now.Serial {
		t.Errorf("content without SOA: %v", err)
	}
}

func idOf(t *testing.T, p *publish.Publisher, z uuid.UUID, name string) (id uuid.UUID) {
	t.Helper()
	err := p.View(func(v store.View) error {
		s, err := v.RecordSet(z, dnsname.MustParse(name), rr.TypeA)
		id = s.ID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestModel makes random edits. It compares store and snapshot with a plain map after each edit, and again after a
// restart.
func TestModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	p, stop := start(t, path, publish.Options{JournalLimit: 20})
	z := newZone(t, p, "example.org.")
	rnd := rand.New(rand.NewPCG(3, 4))
	model := map[string]string{}
	name := func(i int) string { return fmt.Sprintf("n%d.e%d.example.org.", i, i%3) }
	for range 300 {
		next := map[string]string{}
		for k, v := range model {
			next[k] = v
		}
		err := commit(t, p, func(tx *publish.Tx) error {
			for range 1 + rnd.IntN(4) {
				k := name(rnd.IntN(12))
				v := fmt.Sprintf("192.0.2.%d", rnd.IntN(250))
				var err error
				switch _, have := next[k]; {
				case have && rnd.IntN(2) == 0:
					err = tx.DeleteSet(z.ID, dnsname.MustParse(k), rr.TypeA)
					delete(next, k)
				case have:
					_, err = tx.UpdateSet(set(t, z.ID, k, "A", 60, v))
					next[k] = v
				default:
					_, err = tx.CreateSet(set(t, z.ID, k, "A", 60, v))
					next[k] = v
				}
				if err != nil {
					return err
				}
			}
			if rnd.IntN(4) == 0 {
				return fmt.Errorf("dropped")
			}
			return nil
		})
		if err == nil {
			model = next
		}
		compare(t, p, z.ID, model, name)
	}
	stop()
	p, _ = start(t, path, publish.Options{})
	compare(t, p, z.ID, model, name)
}

func compare(t *testing.T, p *publish.Publisher, id uuid.UUID, model map[string]string, name func(int) string) {
	t.Helper()
	for i := range 12 {
		want := ""
		if v, ok := model[name(i)]; ok {
			d, _ := rr.ParseData(rr.TypeA, v)
			want = d
		}
		got := served(p, "example.org.", name(i), rr.TypeA)
		if got != "" {
			got = got[12:]
		}
		if got != want {
			t.Fatalf("%s is served as %x, want %x", name(i), got, want)
		}
	}
	z := current(t, p, id)
	stored := 0
	err := p.View(func(v store.View) error {
		return v.RecordSets(id, func(s zone.RecordSet) (bool, error) {
			stored++
			byID, err := v.RecordSetByID(s.ID)
			if err != nil || byID.Name != s.Name {
				return false, fmt.Errorf("by id: %s, %v", byID.Name, err)
			}
			return true, nil
		})
	})
	if err != nil || stored != len(model)+2 || z.Sets != stored {
		t.Fatalf("%d sets stored, %d counted, want %d: %v", stored, z.Sets, len(model)+2, err)
	}
	if s := p.Snapshot().ZoneOf(z.Name); s.Serial() != z.Serial {
		t.Fatalf("served serial %d, stored %d", s.Serial(), z.Serial)
	}
}

// TestJournalKeepsNoLargeChange checks that a journal entry keeps at most the bytes of a few batches: ten thousand sets
// of 64 KiB would not fit in memory.
func TestJournalKeepsNoLargeChange(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	text := strings.Repeat("\xff"+strings.Repeat("x", 255), 240)
	for _, sets := range []int{10, 80} {
		err := commit(t, p, func(tx *publish.Tx) error {
			for i := range sets {
				name := dnsname.MustParse(fmt.Sprintf("n%d-%d.example.org.", sets, i))
				if _, err := tx.CreateSet(zone.RecordSet{Zone: z.ID, Name: name, Type: rr.TypeTXT,
					Data: []string{text}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if c := changes(t, p, z.ID)[0]; c.Whole != (sets == 80) {
			t.Errorf("%d sets of 60 KiB: whole %v, %d sets kept", sets, c.Whole, len(c.Sets))
		}
	}
}

// TestJournalCut checks that a journal grows to a hundredth over its limit before it is cut, also over a restart.
func TestJournalCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	p, stop := start(t, path, publish.Options{JournalLimit: 200})
	z := newZone(t, p, "example.org.")
	kept := func(n int) {
		t.Helper()
		if got := len(changes(t, p, z.ID)); got != n {
			t.Errorf("%d changes kept, want %d", got, n)
		}
	}
	for i := 1; i <= 204; i++ { // 205 with the creation of the zone
		if i == 100 {
			stop()
			p, _ = start(t, path, publish.Options{JournalLimit: 200})
		}
		if err := commit(t, p, func(tx *publish.Tx) error {
			_, err := tx.CreateSet(set(t, z.ID, fmt.Sprintf("n%d.example.org.", i), "A", 0, "192.0.2.1"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		switch i {
		case 201:
			kept(202)
		case 202:
			kept(200)
		case 204:
			kept(202)
		}
	}
}
