package transfer_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

func newPublisher(t *testing.T, opts publish.Options) *publish.Publisher {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := publish.Open(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- pub.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; st.Close() })
	return pub
}

func commit(t *testing.T, p *publish.Publisher, fn func(*publish.Tx) error) {
	t.Helper()
	if err := p.Commit(t.Context(), store.Actor{}, fn); err != nil {
		t.Fatal(err)
	}
}

func recordSet(t *testing.T, name, typ string, ttl uint32, data ...string) zone.RecordSet {
	t.Helper()
	s := zone.RecordSet{Name: dnsname.MustParse(name), TTL: &ttl}
	var err error
	if s.Type, err = rr.ParseType(typ); err != nil {
		t.Fatal(err)
	}
	for _, d := range data {
		wire, err := rr.ParseData(s.Type, d)
		if err != nil {
			t.Fatal(err)
		}
		s.Data = append(s.Data, wire)
	}
	return s
}

func newZone(t *testing.T, p *publish.Publisher, name string) (z zone.Zone) {
	t.Helper()
	commit(t, p, func(tx *publish.Tx) (err error) {
		z, err = tx.CreateZone(zone.Zone{Name: dnsname.MustParse(name), Kind: zone.Primary, TTL: 300},
			recordSet(t, name, "SOA", 300, "ns."+name+" host."+name+" 1 3600 600 86400 60"),
			recordSet(t, name, "NS", 300, "ns.test."))
		return err
	})
	return z
}

// content is a zone as single records, as a secondary has it.
type content map[string]bool

func (c content) apply(t *testing.T, d transfer.Difference) {
	t.Helper()
	for _, s := range d.Removed {
		for _, line := range lines(s) {
			if !c[line] {
				t.Fatalf("a difference removes %s, which is not there", line)
			}
			delete(c, line)
		}
	}
	for _, s := range d.Added {
		for _, line := range lines(s) {
			if c[line] {
				t.Fatalf("a difference adds %s, which is there", line)
			}
			c[line] = true
		}
	}
}

func lines(s rr.Set) (out []string) {
	for _, d := range s.Data {
		out = append(out, fmt.Sprintf("%s %d %s %s", s.Name, s.TTL, s.Type, rr.DataText(s.Type, d)))
	}
	return out
}

func contentOf(t *testing.T, p *publish.Publisher, id zone.Zone) (zone.Zone, content) {
	t.Helper()
	out := content{}
	var z zone.Zone
	err := p.View(func(v store.View) (err error) {
		if z, err = v.Zone(id.ID); err != nil {
			return err
		}
		return v.Served(z, func(s rr.Set) error {
			for _, l := range lines(s) {
				out[l] = true
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return z, out
}

func since(
	t *testing.T, p *publish.Publisher, z zone.Zone, serial uint32, limit int,
) (d []transfer.Difference, ok bool) {
	t.Helper()
	if err := p.View(func(v store.View) error { d, ok = transfer.Since(v, z, serial, limit); return nil }); err != nil {
		t.Fatal(err)
	}
	return d, ok
}

// TestSince makes random edits, and updates a copy of every earlier state with the differences alone.
func TestSince(t *testing.T) {
	p := newPublisher(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	r := rand.New(rand.NewPCG(3, 4))
	type state struct {
		serial  uint32
		content content
	}
	var states []state
	for range 60 {
		now, c := contentOf(t, p, z)
		states = append(states, state{now.Serial, c})
		commit(t, p, func(tx *publish.Tx) error {
			for range 1 + r.IntN(4) {
				if err := randomEdit(t, tx, r, z); err != nil {
					return err
				}
			}
			return nil
		})
	}
	now, want := contentOf(t, p, z)
	for _, s := range states {
		diffs, ok := since(t, p, now, s.serial, 1<<20)
		if !ok {
			t.Fatalf("no differences from serial %d to %d", s.serial, now.Serial)
		}
		got := maps.Clone(s.content)
		for _, d := range diffs {
			if d.Removed[0].Type != rr.TypeSOA || d.Added[0].Type != rr.TypeSOA {
				t.Fatal("a difference does not begin with the SOA")
			}
			got.apply(t, d)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("from serial %d (-want +got)\n%s", s.serial, diff)
		}
	}
}

// TestSinceFoldsGroups commits three edits as one group. A secondary gets one difference for them, and none from a
// serial that was never served.
func TestSinceFoldsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPublisher(t, publish.Options{})
		z := newZone(t, p, "example.org.")
		before, got := contentOf(t, p, z)
		ready := make(chan struct{})
		var between uint32
		for i, set := range []zone.RecordSet{recordSet(t, "a.example.org.", "A", 60, "192.0.2.1"),
			recordSet(t, "b.example.org.", "A", 60, "192.0.2.2"), recordSet(t, "a.example.org.", "A", 60, "192.0.2.3")} {
			set.Zone = z.ID
			go func() {
				if err := p.Commit(context.Background(), store.Actor{}, func(tx *publish.Tx) (err error) {
					if i == 0 {
						<-ready // the others wait in the queue by then
						_, err = tx.CreateSet(set)
						return err
					}
					now, err := tx.Zone(z.ID)
					between = now.Serial
					if err == nil && i == 1 {
						_, err = tx.CreateSet(set)
					} else if err == nil {
						_, err = tx.UpdateSet(set)
					}
					return err
				}); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		close(ready)
		synctest.Wait()
		now, want := contentOf(t, p, z)
		diffs, ok := since(t, p, now, before.Serial, 1<<20)
		if !ok || len(diffs) != 1 {
			t.Fatalf("Since the serial before the group: %d differences, %v, want 1", len(diffs), ok)
		}
		got.apply(t, diffs[0])
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after the difference (-want +got)\n%s", diff)
		}
		if diffs, ok := since(t, p, now, between, 1<<20); ok || between == before.Serial || between == now.Serial {
			t.Errorf("Since %d, in the middle of the group: %v, %v", between, diffs, ok)
		}
	})
}

func randomEdit(t *testing.T, tx *publish.Tx, r *rand.Rand, z zone.Zone) error {
	name := fmt.Sprintf("h%d.example.org.", r.IntN(6))
	var data []string
	for i := range 1 + r.IntN(3) {
		data = append(data, fmt.Sprintf("192.0.2.%d", 10*i+r.IntN(4)))
	}
	s := recordSet(t, name, "A", uint32(60*(1+r.IntN(2))), data...)
	s.Zone = z.ID
	if r.IntN(8) == 0 {
		s = recordSet(t, name, "ALIAS", 60, fmt.Sprintf("t%d.test.", r.IntN(9)))
		s.Zone, s.Name = z.ID, dnsname.MustParse("alias.example.org.")
	}
	_, err := tx.RecordSet(z.ID, s.Name, s.Type)
	switch {
	case err != nil:
		_, err = tx.CreateSet(s)
	case r.IntN(3) == 0:
		err = tx.DeleteSet(z.ID, s.Name, s.Type)
	default:
		_, err = tx.UpdateSet(s)
	}
	return err
}

func TestSinceReturnsFalse(t *testing.T) {
	p := newPublisher(t, publish.Options{JournalLimit: 3, JournalSets: 5})
	z := newZone(t, p, "example.org.")
	add := func(from, n int) (before uint32) {
		now, _ := contentOf(t, p, z)
		commit(t, p, func(tx *publish.Tx) error {
			for i := from; i < from+n; i++ {
				s := recordSet(t, fmt.Sprintf("n%d.example.org.", i), "A", 60, "192.0.2.1")
				s.Zone = z.ID
				if _, err := tx.CreateSet(s); err != nil {
					return err
				}
			}
			return nil
		})
		return now.Serial
	}
	first := add(0, 1)
	second := add(1, 1)
	now, _ := contentOf(t, p, z)
	if d, ok := since(t, p, now, now.Serial, 100); !ok || len(d) != 0 {
		t.Errorf("from the serial it has: %v, %v", d, ok)
	}
	if d, ok := since(t, p, now, second, 1000); !ok || len(d) != 1 {
		t.Errorf("from one commit ago: %v, %v", d, ok)
	}
	for name, serial := range map[string]uint32{"another serial": now.Serial + 7, "an old one": first - 1, "zero": 0} {
		if d, ok := since(t, p, now, serial, 1<<20); ok {
			t.Errorf("from %s: %v", name, d)
		}
	}
	if d, ok := since(t, p, now, first, 50); ok {
		t.Errorf("more than the limit: %v", d)
	}
	large := add(10, 20) // more sets than a journal entry keeps
	now, _ = contentOf(t, p, z)
	if d, ok := since(t, p, now, large, 1<<20); ok {
		t.Errorf("across an entry without sets: %v", d)
	}
	retimed := now.Serial
	commit(t, p, func(tx *publish.Tx) error {
		z := now
		z.TTL++
		_, err := tx.UpdateZone(z)
		return err
	})
	now, _ = contentOf(t, p, z)
	if d, ok := since(t, p, now, retimed, 1<<20); ok || now.Serial == retimed {
		t.Errorf("across a change of the zone's TTL: %v", d)
	}
	for i := range 4 {
		add(100+i, 1)
	}
	now, _ = contentOf(t, p, z)
	if d, ok := since(t, p, now, first, 1<<20); ok {
		t.Errorf("beyond the journal: %v", d)
	}
}
