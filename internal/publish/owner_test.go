package publish_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// zonesOf returns the names of a project's zones at or below a name, and checks that CountZones agrees.
func zonesOf(t *testing.T, p *publish.Publisher, project, below string) (names []string) {
	t.Helper()
	err := p.View(func(v store.View) error {
		all := 0
		err := v.ZonesOf(project, dnsname.Root, func(zone.Zone) (bool, error) { all++; return true, nil })
		if n, cerr := v.CountZones(project); cerr != nil || n != all {
			t.Errorf("project %s has %d zones and counts %d, %v", project, all, n, cerr)
		}
		if err != nil {
			return err
		}
		return v.ZonesOf(project, dnsname.MustParse(below), func(z zone.Zone) (bool, error) {
			names = append(names, z.Name.String())
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestZonesOfProject checks the lists of zones by project. They must follow every change of an owner, must be undone
// with an edit that fails, and must be written for a store of an older version that had no lists.
func TestZonesOfProject(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	p, stop := start(t, path, publish.Options{})
	a, b := newZone(t, p, "a.example."), newZone(t, p, "b.example.")
	newZone(t, p, "c.b.example.")
	newZone(t, p, "example.")
	move := func(z zone.Zone, to string, then error) error {
		return commit(t, p, func(tx *publish.Tx) error {
			z.Project = to
			if _, err := tx.UpdateZone(z); err != nil {
				return err
			}
			return then
		})
	}
	if err := move(a, "p2", fmt.Errorf("no")); err == nil {
		t.Fatal("the edit did not fail")
	}
	if err := move(b, "p2", nil); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		if got := zonesOf(t, p, "p2", "."); !slices.Equal(got, []string{"b.example."}) {
			t.Errorf("%s: p2 has %q", what, got)
		}
		if got := zonesOf(t, p, a.Project, "b.example."); !slices.Equal(got, []string{"c.b.example."}) {
			t.Errorf("%s: the first project has %q below b.example", what, got)
		}
		if got := zonesOf(t, p, a.Project, "."); !slices.Equal(got, []string{"example.", "a.example.", "c.b.example."}) {
			t.Errorf("%s: the first project has %q", what, got)
		}
	}
	check("after the edits")
	stop()
	forgetOwners(t, path)
	p, _ = start(t, path, publish.Options{})
	check("after the start of a store without lists")
	if err := commit(t, p, func(tx *publish.Tx) error { return tx.DeleteZone(b.ID) }); err != nil {
		t.Fatal(err)
	}
	if got := zonesOf(t, p, "p2", "."); len(got) != 0 {
		t.Errorf("p2 has %q after its zone was deleted", got)
	}
}

// fullOnce is a store whose first Update fails because the disk is full.
type fullOnce struct {
	store.Store
	full bool
}

func (s *fullOnce) Update(fn func(store.Writer) error) error {
	if s.full {
		s.full = false
		return store.ErrUnavailable
	}
	return s.Store.Update(fn)
}

// TestZonesOfProjectWithoutLists opens an older store whose lists cannot be written because the disk is full. Its zones
// must still be listed and counted, also after later changes.
func TestZonesOfProjectWithoutLists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	p, stop := start(t, path, publish.Options{})
	a := newZone(t, p, "a.example.")
	newZone(t, p, "b.example.")
	stop()
	forgetOwners(t, path)
	st, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, stop = run(t, &fullOnce{st, true}, publish.Options{})
	want := func(names ...string) {
		t.Helper()
		if got := zonesOf(t, p, a.Project, "."); !slices.Equal(got, names) {
			t.Errorf("the project has %q, want %q", got, names)
		}
	}
	want("a.example.", "b.example.")
	newZone(t, p, "c.example.")
	if err := commit(t, p, func(tx *publish.Tx) error { return tx.DeleteZone(a.ID) }); err != nil {
		t.Fatal(err)
	}
	want("b.example.", "c.example.")
	stop()
	p, _ = start(t, path, publish.Options{})
	want("b.example.", "c.example.")
}

// forgetOwners removes the lists of zones by project, as an older version leaves a store.
func forgetOwners(t *testing.T, path string) {
	t.Helper()
	st, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	err = st.Update(func(w store.Writer) error {
		var keys [][]byte
		for _, prefix := range []store.Kind{store.KindZoneOf, store.KindZoneCount} {
			w.Scan(store.Objects, []byte(prefix), nil, func(key, _ []byte) bool {
				keys = append(keys, slices.Clone(key))
				return true
			})
		}
		for _, k := range keys {
			if err := w.Delete(store.Objects, k); err != nil {
				return err
			}
		}
		return w.Delete(store.Meta, []byte("owners"))
	})
	if err != nil {
		t.Fatal(err)
	}
}
