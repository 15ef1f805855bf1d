package publish_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestReplaceInJournal checks that the journal has each set of a replacement, although ReplaceSorted reuses its
// variable.
func TestReplaceInJournal(t *testing.T) {
	p := open(t, publish.Options{JournalSets: 50})
	z := newZone(t, p, "example.org.")
	sets := apexSets(t, "example.org.")
	want := map[dnsname.Name]string{}
	for i := range 20 {
		s := set(t, z.ID, fmt.Sprintf("h%d.example.org.", i), "A", 60, fmt.Sprintf("192.0.2.%d", i))
		sets = append(sets, s)
		want[s.Name] = s.Data[0]
	}
	if err := p.CommitAlone(t.Context(), actor,
		func(tx *publish.Tx) error { return tx.ReplaceSets(z.ID, sets) }); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes(t, p, z.ID)[0].Sets {
		if c.After.Type == rr.TypeSOA {
			continue
		}
		if c.Before != nil || len(c.After.Data) != 1 || want[c.After.Name] != c.After.Data[0] {
			t.Errorf("the journal has %v and %v of %s", c.Before, c.After.Data, c.After.Name)
		}
		delete(want, c.After.Name)
	}
	if len(want) > 0 {
		t.Errorf("the journal lacks %d sets", len(want))
	}
}

// TestReplaceRefused checks that sets that a zone cannot have are refused at any position, and that nothing is written.
func TestReplaceRefused(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	before := current(t, p, z.ID)
	apex := apexSets(t, "example.org.")
	www := set(t, z.ID, "www.example.org.", "A", 60, "192.0.2.1")
	tests := []struct {
		name string
		sets []zone.RecordSet
	}{
		{"nothing", nil},
		{"no apex", []zone.RecordSet{www}},
		{"apex without NS", append([]zone.RecordSet{www}, apex[:1]...)},
		{"CNAME beside A in the middle", append([]zone.RecordSet{
			set(t, z.ID, "a.example.org.", "A", 60, "192.0.2.1"),
			set(t, z.ID, "a.example.org.", "CNAME", 60, "b.test."), www}, apex...)},
		{"CNAME beside A at the end", append([]zone.RecordSet{www, set(t, z.ID, "www.example.org.", "CNAME", 60, "b.test.")},
			apex...)},
		{"outside", append([]zone.RecordSet{set(t, z.ID, "www.example.net.", "A", 60, "192.0.2.1")}, apex...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := p.CommitAlone(t.Context(), actor,
				func(tx *publish.Tx) error { return tx.ReplaceSets(z.ID, tt.sets) }); err == nil {
				t.Error("the replacement was accepted")
			}
			if now := current(t, p, z.ID); now.Serial != before.Serial || now.Sets != before.Sets {
				t.Errorf("serial %d and %d sets, want %d and %d", now.Serial, now.Sets, before.Serial, before.Sets)
			}
			if served(p, "example.org.", "www.example.org.", rr.TypeA) != "" {
				t.Error("part of it is served")
			}
		})
	}
}

// TestReplaceLarge replaces zones of several thousand names. The existing sets are read in parts, between which new
// sets are written.
func TestReplaceLarge(t *testing.T) {
	p := open(t, publish.Options{})
	z := newZone(t, p, "example.org.")
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 6 {
		sets, want := apexSets(t, "example.org."), map[string]string{}
		for i := range 5000 {
			if rnd.IntN(3) > 0 && i > 800*round {
				s := set(t, z.ID, fmt.Sprintf("h%04d.example.org.", i), "A", 60, fmt.Sprintf("192.0.2.%d", rnd.IntN(2)))
				sets, want[s.Name.String()] = append(sets, s), s.Data[0]
			}
		}
		if err := p.CommitAlone(t.Context(), actor,
			func(tx *publish.Tx) error { return tx.ReplaceSets(z.ID, sets) }); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		err := p.View(func(v store.View) error {
			z, err := v.Zone(z.ID)
			if z.Sets != len(sets) {
				t.Errorf("round %d: the zone counts %d sets of %d", round, z.Sets, len(sets))
			}
			return errors.Join(err, v.RecordSets(z.ID, func(s zone.RecordSet) (bool, error) {
				if s.Type == rr.TypeA {
					got[s.Name.String()] = s.Data[0]
				}
				return true, nil
			}))
		})
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("round %d: %d sets of %d, %v", round, len(got), len(want), err)
		}
	}
}
