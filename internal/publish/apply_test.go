package publish_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// moment is the state of a publisher after one group.
type moment struct {
	rows     [sha256.Size]byte
	snapshot *zone.Snapshot
}

// watchedStore records the rows and the snapshot after each Update.
type watchedStore struct {
	store.Store
	t         *testing.T
	publisher *publish.Publisher // nil before the publisher is open
	moments   []moment
}

// Update implements store.Store.
func (s *watchedStore) Update(fn func(store.Writer) error) error {
	s.served()
	err := s.Store.Update(fn)
	if err == nil && s.publisher != nil {
		s.moments = append(s.moments, moment{rows: rowsOf(s.t, s.Store)})
	}
	return err
}

// served records what the publisher serves after the last Update. Update calls it when the next one begins.
func (s *watchedStore) served() {
	if n := len(s.moments); n > 0 {
		s.moments[n-1].snapshot = s.publisher.Snapshot()
	}
}

// rowsOf returns a checksum of all rows of all tables.
func rowsOf(t *testing.T, st store.Store) (sum [sha256.Size]byte) {
	t.Helper()
	h := sha256.New()
	err := st.View(func(r store.Reader) error {
		for _, table := range store.Tables {
			r.Scan(table, nil, nil, func(key, value []byte) bool {
				fmt.Fprintf(h, "%s %x=%x\n", table, key, value)
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	h.Sum(sum[:0])
	return sum
}

// answersOf returns everything that a snapshot serves.
func answersOf(s *zone.Snapshot) (out []string) {
	for z := range s.All() {
		out = append(out, fmt.Sprintf("%s %s serial %d, %d names, overlay %v, cuts %v", z.Apex(), z.ID(), z.Serial(),
			z.Names(), z.IsOverlay(), z.HasCuts()))
		z.Walk(func(labels string, r zone.Records) bool {
			out = append(out, fmt.Sprintf("%s %q %v", z.Apex(), labels, r))
			return true
		})
	}
	slices.Sort(out)
	return out
}

// editor makes random edits.
type editor struct {
	t   *testing.T
	rnd *rand.Rand
	tx  *publish.Tx
}

var errDropped = errors.New("changed my mind")

func (e *editor) edit(tx *publish.Tx) error {
	e.tx = tx
	for range 1 + e.rnd.IntN(3) {
		if err := e.step(); err != nil {
			return err // often store.ErrExists or store.ErrNotFound
		}
	}
	if e.rnd.IntN(8) == 0 {
		return errDropped
	}
	return nil
}

func (e *editor) step() error {
	name := fmt.Sprintf("z%d.test.", e.rnd.IntN(6))
	z, err := e.tx.ZoneByName(dnsname.MustParse(name))
	switch n := e.rnd.IntN(100); {
	case n < 5:
		return e.tx.PutObject(store.KindQuota, name, e.rnd.IntN(9))
	case n < 7:
		return e.tx.DeleteObject(store.KindQuota, name)
	case errors.Is(err, store.ErrNotFound):
		kind := []zone.Kind{zone.Primary, zone.Primary, zone.Secondary}[e.rnd.IntN(3)]
		_, err := e.tx.CreateZone(zone.Zone{Name: dnsname.MustParse(name), Kind: kind, TTL: 300}, apexSets(e.t, name)...)
		return err
	case err != nil:
		return err
	case n == 7:
		return e.tx.DeleteZone(z.ID)
	case n < 10:
		z.TTL = uint32(300 + e.rnd.IntN(3))
		_, err := e.tx.UpdateZone(z)
		return err
	case n < 13 && z.Kind == zone.Secondary:
		return e.tx.SetSecondary(z.ID, publish.Secondary{Expired: e.rnd.IntN(2) == 0})
	}
	return e.changeSet(z)
}

func (e *editor) changeSet(z zone.Zone) error {
	owner := fmt.Sprintf("n%d.%s", e.rnd.IntN(12), z.Name)
	if e.rnd.IntN(4) == 0 {
		owner = "below." + owner
	}
	s := set(e.t, z.ID, owner, "A", e.rnd.IntN(2)*60, fmt.Sprintf("192.0.2.%d", e.rnd.IntN(9)))
	switch e.rnd.IntN(6) {
	case 0:
		s = set(e.t, z.ID, owner, "CNAME", 0, fmt.Sprintf("n%d.test.", e.rnd.IntN(9)))
	case 1:
		s = set(e.t, z.ID, owner, "NS", 0, fmt.Sprintf("ns%d.test.", e.rnd.IntN(9)))
	case 2:
		s = set(e.t, z.ID, owner, "ALIAS", 0, fmt.Sprintf("n%d.test.", e.rnd.IntN(9)))
	}
	_, err := e.tx.RecordSet(z.ID, s.Name, s.Type)
	switch {
	case errors.Is(err, store.ErrNotFound):
		_, err = e.tx.CreateSet(s)
	case err == nil && e.rnd.IntN(3) == 0:
		err = e.tx.DeleteSet(z.ID, s.Name, s.Type)
	case err == nil:
		_, err = e.tx.UpdateSet(s)
	}
	return err
}

// replace replaces the content of a zone with random sets.
func (e *editor) replace(tx *publish.Tx) error {
	name := fmt.Sprintf("z%d.test.", e.rnd.IntN(6))
	z, err := tx.ZoneByName(dnsname.MustParse(name))
	if err != nil {
		return err
	}
	sets := apexSets(e.t, name)
	for i := range e.rnd.IntN(20) {
		sets = append(sets, set(e.t, z.ID, fmt.Sprintf("n%d.%s", i, name), "A", 0, fmt.Sprintf("192.0.2.%d", e.rnd.IntN(9))))
	}
	return tx.ReplaceSets(z.ID, sets)
}

// randomEdits makes edits from many callers at once, so that groups form by chance. It returns how many edits were
// kept.
func randomEdits(t *testing.T, p *publish.Publisher, edits, callers int) (kept int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			e := &editor{t: t, rnd: rand.New(rand.NewPCG(uint64(c), 14))}
			for range edits / callers {
				var err error
				if e.rnd.IntN(400) == 0 {
					err = p.CommitAlone(context.Background(), actor, e.replace)
				} else {
					err = p.Commit(context.Background(), actor, e.edit)
				}
				if err == nil {
					mu.Lock()
					kept++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return kept
}

// copyOf opens a publisher on a copy of a store.
func copyOf(t *testing.T, st store.Store, opts publish.Options) (*publish.Publisher, store.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.Backup(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	return runOn(t, openStore(t, path), opts)
}

func openStore(t *testing.T, path string) *boltstore.Store {
	t.Helper()
	st, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// runOn runs a publisher on a store until the test ends.
func runOn(t *testing.T, st store.Store, opts publish.Options) (*publish.Publisher, store.Store) {
	t.Helper()
	p, err := publish.Open(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, st
}

// TestApply makes 10,000 random edits, of which some fail, in groups that form by chance. BeforeDurable refuses some of
// the groups. The accepted groups are then applied to a copy of the empty store: after each of them, rows and answers
// must be the same as in the original.
func TestApply(t *testing.T) {
	var groups [][]byte
	calls := 0
	opts := publish.Options{JournalLimit: 20, JournalSets: 15}
	recording := opts
	recording.BeforeDurable = func(g *publish.Group) error {
		if calls++; calls%40 == 0 {
			return errDropped
		}
		b, err := g.MarshalBinary()
		groups = append(groups, b)
		return err
	}
	watched := &watchedStore{Store: openStore(t, filepath.Join(t.TempDir(), "db")), t: t}
	p, _ := runOn(t, watched, recording)
	copied := opts
	var last uint64
	copied.Committed = func(changes []store.Change) {
		for _, c := range changes {
			if c.Group <= last && last > 0 {
				t.Errorf("a change of group %d after group %d", c.Group, last)
			}
		}
		last = changes[0].Group
	}
	replica, st := copyOf(t, watched, copied)
	watched.publisher = p
	kept := randomEdits(t, p, 10_000, 64)
	watched.served()
	t.Logf("%d of 10000 edits kept, in %d groups", kept, len(groups))
	if len(groups) != len(watched.moments) || kept < 2000 || len(groups) < 100 || len(groups) > kept/2 {
		t.Fatalf("%d groups and %d steps of the store for %d edits", len(groups), len(watched.moments), kept)
	}
	for i, b := range groups {
		if err := replica.Apply(t.Context(), b); err != nil {
			t.Fatalf("Apply of group %d: %v", i, err)
		}
		want := watched.moments[i]
		if diff := cmp.Diff(answersOf(want.snapshot), answersOf(replica.Snapshot())); diff != "" {
			t.Fatalf("answers after group %d (-want +got):\n%s", i, diff)
		}
		if rowsOf(t, st) != want.rows {
			t.Fatalf("rows differ after group %d", i)
		}
	}
}

// TestApplyRefuses checks that a group that does not follow the last one, or is malformed, changes nothing.
func TestApplyRefuses(t *testing.T) {
	var groups [][]byte
	original := openStore(t, filepath.Join(t.TempDir(), "db"))
	p, _ := runOn(t, original, publish.Options{BeforeDurable: func(g *publish.Group) error {
		b, err := g.MarshalBinary()
		groups = append(groups, b)
		return err
	}})
	replica, st := copyOf(t, original, publish.Options{})
	newZone(t, p, "example.org.")
	newZone(t, p, "example.net.")
	if err := commit(t, p, func(tx *publish.Tx) error { return tx.PutObject(store.KindQuota, "q", 1) }); err != nil {
		t.Fatal(err)
	}
	refused := func(b []byte, want string) {
		t.Helper()
		before := rowsOf(t, st)
		if err := replica.Apply(t.Context(), b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Apply = %v, want %q", err, want)
		}
		if rowsOf(t, st) != before {
			t.Error("a group that was refused changed the store")
		}
	}
	refused(groups[1], "group 2 cannot be applied: the next one is 1")
	refused(nil, "not a group")
	refused(append([]byte{9}, groups[0][1:]...), "not a group")
	for n := 0; n < len(groups[0]); n += 7 {
		refused(groups[0][:n], "not a group")
	}
	for _, b := range groups {
		if err := replica.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	refused(groups[2], "group 3 cannot be applied: the next one is 4")
	if got := served(replica, "example.net.", "example.net.", rr.TypeNS); got == "" {
		t.Error("a zone that was applied is not served")
	}
	if v := replica.ObjectVersion(store.KindQuota); v != 1 {
		t.Errorf("version of the objects that were applied = %d, want 1", v)
	}
	newZone(t, replica, "example.com.") // the replica also takes edits of its own
}
