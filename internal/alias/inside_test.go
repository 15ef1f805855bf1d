package alias_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// A target in our own zones is followed in the same commit, across zones, without queries.
func TestTargetInOurZones(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "")
		r.zone("example.net.", "www.example.net. 60 A 203.0.113.1", "cdn.example.net. 40 CNAME www.example.net.")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.", "b.example.org. 30 ALIAS example.org.")
		r.want("example.org.", "ACTIVE", "A 40 203.0.113.1")
		r.want("b.example.org.", "ACTIVE", "A 30 203.0.113.1")
		commits, org, net := r.store.commits(), r.serial("example.org."), r.serial("example.net.")
		r.must(r.put("www.example.net. 60 A 203.0.113.2", "www.example.net. 90 AAAA 2001:db8::2"))
		r.want("example.org.", "ACTIVE", "A 40 203.0.113.2, AAAA 40 2001:db8::2")
		r.want("b.example.org.", "ACTIVE", "A 30 203.0.113.2, AAAA 30 2001:db8::2")
		if n := r.store.commits() - commits; n != 1 || r.serial("example.org.") != org+1 ||
			r.serial("example.net.") != net+1 {
			t.Errorf("%d commits, serials %d -> %d and %d -> %d, want one step each", n, org, r.serial("example.org."), net,
				r.serial("example.net."))
		}
		r.must(r.drop("www.example.net.", "AAAA"))
		r.want("example.org.", "ACTIVE", "A 40 203.0.113.2")
		r.must(r.drop("www.example.net.", "A"))
		r.want("example.org.", "STALE nxdomain", "A 40 203.0.113.2")
		r.must(r.put("www.example.net. 60 TXT there"))
		r.want("example.org.", "ERROR nodata", "")
		r.must(r.put("cdn.example.net. 40 CNAME new.example.net.", "new.example.net. 60 A 203.0.113.3"))
		r.want("b.example.org.", "ACTIVE", "A 30 203.0.113.3")
		r.wait(time.Hour)
		if n := len(r.net.History()); n > 0 {
			t.Errorf("%d queries for names of our own", n)
		}
	})
}

// Every change that affects a name in our zones is followed, not only changes of its own record sets.
func TestInsideChanges(t *testing.T) {
	const found, wild = "A 60 203.0.113.1", "A 50 203.0.113.9"
	tests := []struct {
		name         string
		zone         []string // records of example.net
		edit         func(r *testEnv) error
		before, rows string
		status       string
	}{
		{"a wildcard comes", nil, func(r *testEnv) error { return r.put("*.example.net. 50 A 203.0.113.9") }, "", wild,
			"ACTIVE"},
		{"a wildcard goes", []string{"*.example.net. 50 A 203.0.113.9"},
			func(r *testEnv) error { return r.drop("*.example.net.", "A") }, wild, wild, "STALE nxdomain"},
		{"a wildcard is covered", []string{"*.example.net. 50 A 203.0.113.9"},
			func(r *testEnv) error { return r.put("x.b.example.net. 60 TXT x") }, wild, wild, "STALE nxdomain"},
		{"a wildcard is covered by the name", []string{"*.example.net. 50 A 203.0.113.9"},
			func(r *testEnv) error { return r.put("a.b.example.net. 60 A 203.0.113.1") }, wild, found, "ACTIVE"},
		{"a wildcard is no longer covered", []string{"*.example.net. 50 A 203.0.113.9", "x.b.example.net. 60 TXT x"},
			func(r *testEnv) error { return r.drop("x.b.example.net.", "TXT") }, "", wild, "ACTIVE"},
		{"a name below comes", nil, func(r *testEnv) error { return r.put("x.a.b.example.net. 60 TXT x") }, "", "",
			"ERROR CREATE nodata"},
		{"a DNAME comes", []string{"a.other.example.net. 60 A 203.0.113.1"},
			func(r *testEnv) error { return r.put("b.example.net. 70 DNAME other.example.net.") }, "", found, "ACTIVE"},
		{"a DNAME goes", []string{"a.other.example.net. 60 A 203.0.113.1", "b.example.net. 70 DNAME other.example.net."},
			func(r *testEnv) error { return r.drop("b.example.net.", "DNAME") }, found, found, "STALE nxdomain"},
		{"a zone comes", []string{"*.example.net. 50 A 203.0.113.9"}, func(r *testEnv) error {
			r.zone("b.example.net.", "a.b.example.net. 60 A 203.0.113.1")
			return nil
		}, wild, found, "ACTIVE"},
		{"the zone goes", []string{"a.b.example.net. 60 A 203.0.113.1"}, func(r *testEnv) error {
			return r.commit(func(tx *publish.Tx) error {
				z, err := tx.ZoneByName(name("example.net."))
				if err != nil {
					return err
				}
				return tx.DeleteZone(z.ID)
			})
		}, found, "A 20 203.0.113.200", "ACTIVE"}, // from the resolver
		{"it is delegated", []string{"a.b.example.net. 60 A 203.0.113.1"},
			func(r *testEnv) error { return r.put("b.example.net. 60 NS ns.example.com.") }, found, "A 20 203.0.113.200",
			"ACTIVE"},
		{"an overlay has it", []string{"a.b.example.net. 60 A 203.0.113.1"}, func(r *testEnv) error {
			return r.commit(func(tx *publish.Tx) error {
				z, err := tx.Overlay(name("a.b.example.net."))
				if err != nil {
					return err
				}
				s := r.set("a.b.example.net. 50 A 203.0.113.9", false)
				s.Zone = z.ID
				_, err = tx.CreateSet(s)
				return err
			})
		}, found, wild, "ACTIVE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, "zone example.net.\na.b.example.net. 20 A 203.0.113.200")
				r.zone("example.net.", tt.zone...)
				r.zone("example.org.", "example.org. 300 ALIAS a.b.example.net.")
				if got := r.rows("example.org."); got != tt.before {
					t.Errorf("before: %q, want %q", got, tt.before)
				}
				r.must(tt.edit(r))
				r.wait(0)
				r.want("example.org.", tt.status, tt.rows)
			})
		})
	}
}

// The zone of a target is created here, and deleted again.
func TestTargetMovesIn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(0)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
		z := r.zone("example.net.", "cdn.example.net. 100 A 203.0.113.50")
		r.want("example.org.", "ACTIVE", "A 100 203.0.113.50")
		r.wait(0)
		r.net.Forget()
		r.wait(time.Hour)
		if n := r.asked("cdn.example.net."); n > 0 {
			t.Errorf("%d queries for a name of our own", n)
		}
		r.must(r.commit(func(tx *publish.Tx) error { return tx.DeleteZone(z.ID) }))
		r.wait(time.Second)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
	})
}

// Outside CNAMEs that lead to a name in our zones are followed in our zones from there.
func TestBackInside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, `
			zone example.net.
			zone example.com.
			shop.example.net. 80 CNAME www.example.com.
			www.example.com. 100 A 203.0.113.1
		`)
		r.zone("example.com.", "www.example.com. 100 A 203.0.113.1")
		r.zone("example.org.", "example.org. 300 ALIAS shop.example.net.")
		r.wait(time.Second)
		r.want("example.org.", "ACTIVE", "A 80 203.0.113.1")
		r.must(r.put("www.example.com. 100 A 203.0.113.2"))
		r.want("example.org.", "ACTIVE", "A 80 203.0.113.2")
	})
}

// An ALIAS and address records cannot share a name, whichever comes first. A refused edit changes nothing.
func TestNoAliasBesideAddresses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		r.zone("example.org.", "a.example.org. 60 A 203.0.113.9", "b.example.org. 60 ALIAS cdn.example.net.",
			"c.example.org. 60 CNAME a.example.org.", "p.example.org. 60 ALIAS none.example.net.")
		r.wait(0)
		for _, line := range []string{"a.example.org. 60 ALIAS cdn.example.net.", "p.example.org. 60 A 203.0.113.9",
			"p.example.org. 60 AAAA 2001:db8::9",
			"b.example.org. 60 CNAME x.example.org.", "c.example.org. 60 ALIAS cdn.example.net."} {
			err := r.put(line)
			if placement := (*zone.PlacementError)(nil); !errors.As(err, &placement) {
				t.Errorf("%s: %v, want it refused", line, err)
			}
		}
		r.want("b.example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 60 2001:db8::1")
		r.wait(0)
		if _, ok := r.State(r.key("a.example.org.")); ok {
			t.Error("an ALIAS that was refused is known")
		}
		r.must(r.put("b.example.org. 60 TXT beside")) // other types may share the name
		r.must(r.drop("b.example.org.", "ALIAS"))
		r.must(r.put("b.example.org. 60 A 203.0.113.9"))
		if got := r.rows("b.example.org."); got != "A 60* 203.0.113.9" {
			t.Errorf("rows = %q", got)
		}
	})
}

// An answer that arrives after its ALIAS was deleted writes nothing.
func TestDeletedDuringLookup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"latency 1s")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(500 * time.Millisecond)
		r.want("example.org.", "PENDING CREATE", "")
		r.must(r.drop("example.org.", "ALIAS"))
		serial := r.serial("example.org.")
		r.wait(time.Minute)
		r.want("example.org.", "none", "")
		if r.serial("example.org.") != serial {
			t.Error("the serial stepped for what is gone")
		}
	})
}

// After a change of target, the old addresses are served until the new ones are known. They are never mixed.
func TestRetarget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"new.example.net. 60 A 203.0.113.9\nfault servfail new.example.net. AAAA\nlatency 1s")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(2 * time.Second)
		const old = "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1"
		r.must(r.put("example.org. 300 ALIAS none.example.net."))
		r.want("example.org.", "PENDING UPDATE", old)
		r.wait(2 * time.Second)
		r.want("example.org.", "ERROR UPDATE nxdomain", old)
		r.must(r.put("example.org. 300 ALIAS new.example.net."))
		r.want("example.org.", "PENDING UPDATE", old)
		r.wait(2 * time.Second)
		r.want("example.org.", "ACTIVE servfail", "A 60 203.0.113.9")
		r.must(r.put("example.org. 300 ALIAS cdn.example.net."))
		r.wait(3 * time.Second)
		r.want("example.org.", "ACTIVE", old)
		r.net.Forget()
		r.wait(time.Hour)
		if n := r.asked("new.example.net.") + r.asked("none.example.net."); n > 0 {
			t.Errorf("%d queries for former targets", n)
		}
	})
}

// One change of a target with 10,000 aliases in 8 zones takes commits of 100 aliases, zone by zone.
func TestCoalesced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "zone example.net.\ncdn.example.net. 60 A 203.0.113.1\nat 70s set cdn.example.net. 60 A 203.0.113.2")
		for i := range 8 {
			var lines []string
			for j := range 1250 {
				lines = append(lines, fmt.Sprintf("a%d.z%d.test. 300 ALIAS cdn.example.net.", j, i))
			}
			r.zone(fmt.Sprintf("z%d.test.", i), lines...)
		}
		r.wait(60 * time.Second)
		r.want("a1249.z7.test.", "ACTIVE", "A 60 203.0.113.1")
		commits := r.store.commits()
		serials := map[string]uint32{}
		for i := range 8 {
			apex := fmt.Sprintf("z%d.test.", i)
			serials[apex] = r.serial(apex)
		}
		r.wait(60 * time.Second)
		r.want("a0.z0.test.", "ACTIVE", "A 60 203.0.113.2")
		r.want("a1249.z7.test.", "ACTIVE", "A 60 203.0.113.2")
		if n := r.store.commits() - commits; n != 100 {
			t.Errorf("%d commits", n)
		}
		for apex, serial := range serials {
			if n := r.changesSince(apex, serial); n < 13 || n > 14 {
				t.Errorf("%d changes of %s, want 13 or 14", n, apex)
			}
		}
	})
}

// changesSince counts the changes in the history of a zone after a serial.
func (r *testEnv) changesSince(apex string, serial uint32) (n int) {
	r.t.Helper()
	r.must(r.pub.View(func(v store.View) error {
		z, err := v.ZoneByName(name(apex))
		if err != nil {
			return err
		}
		return v.Changes(z.ID, 0, func(c store.Change) (bool, error) {
			if c.To > serial {
				n++
			}
			return true, nil
		})
	}))
	return n
}

// An edit that fails after its aliases were flattened leaves nothing behind, and the previous target is still followed.
func TestFailedEdit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "")
		z := r.zone("example.net.", "www.example.net. 60 A 203.0.113.1", "alt.example.net. 60 A 203.0.113.7")
		r.zone("example.org.", "example.org. 300 ALIAS www.example.net.")
		err := r.commit(func(tx *publish.Tx) error {
			s := r.set("example.org. 300 ALIAS alt.example.net.", false)
			s.Zone = r.key("example.org.").Zone
			if _, err := tx.UpdateSet(s); err != nil {
				return err
			}
			bad := r.set("www.example.net. 60 CNAME alt.example.net.", false)
			bad.Zone = z.ID
			_, err := tx.CreateSet(bad)
			return err
		})
		if err == nil {
			t.Fatal("a CNAME beside an A was taken")
		}
		r.wait(0)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1")
		if st, _ := r.State(r.key("example.org.")); st.Target != "www.example.net." {
			t.Errorf("the ALIAS is said to lead to %s", st.Target)
		}
		r.must(r.put("www.example.net. 60 A 203.0.113.2"))
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.2")
		r.must(r.put("alt.example.net. 60 A 203.0.113.8"))
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.2")
	})
}

// Results of lookups are not lost while the store refuses writes.
func TestStoreComesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"at 10s set cdn.example.net. 60 A 203.0.113.9")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(time.Second)
		r.store.setBroken(true)
		r.wait(90 * time.Second)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
		r.store.setBroken(false)
		r.wait(10 * time.Second)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.9, AAAA 120 2001:db8::1")
	})
}

// When a whole zone is replaced, its aliases are created, kept and deleted accordingly.
func TestReplacedZone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		z := r.zone("example.org.", "a.example.org. 300 ALIAS cdn.example.net.", "b.example.org. 300 ALIAS cdn.example.net.")
		r.zone("example.com.", "example.com. 300 ALIAS t.example.org.")
		r.wait(0)
		const flat = "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1"
		replace := func(lines ...string) {
			t.Helper()
			sets := []zone.RecordSet{r.set("example.org. 0 NS ns.example.org.", true),
				r.set("example.org. 0 SOA ns.example.org. host.example.org. 1 3600 600 86400 60", true)}
			for _, l := range lines {
				sets = append(sets, r.set(l, false))
			}
			r.must(r.pub.CommitAlone(t.Context(), actor, func(tx *publish.Tx) error {
				return tx.ReplaceSorted(z.ID, len(sets), slices.Values(sets))
			}))
		}
		replace("a.example.org. 300 ALIAS cdn.example.net.", "b.example.org. 60 A 203.0.113.1, 203.0.113.2",
			"c.example.org. 300 ALIAS cdn.example.net.", "t.example.org. 60 A 203.0.113.5")
		r.want("a.example.org.", "ACTIVE", flat)
		r.want("c.example.org.", "ACTIVE", flat)
		r.want("example.com.", "ACTIVE", "A 60 203.0.113.5")
		r.wait(0)
		if got := r.rows("b.example.org."); got != "A 60* 203.0.113.1 203.0.113.2" {
			t.Errorf("what was an ALIAS and is addresses now: %q", got)
		}
		if got := r.status("b.example.org."); got != "none" {
			t.Errorf("b is %s", got)
		}
		replace("x.example.org. 60 A 203.0.113.1")
		r.wait(0)
		for _, owner := range []string{"a.example.org.", "c.example.org."} {
			r.want(owner, "none", "")
		}
	})
}

// Without a resolver, an outside target is an error with a hint, until a resolver is configured.
func TestNoResolver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		tracker := r.tracker
		r.SetTracker(nil)
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(0)
		r.want("example.org.", "ERROR CREATE no-resolver", "")
		r.SetTracker(tracker)
		r.wait(time.Second)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
	})
}

// Flattened rows that a user deletes are created again.
func TestRowsComeAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		z := r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(0)
		r.must(r.commit(func(tx *publish.Tx) error { return tx.DeleteSet(z.ID, z.Name, rr.TypeA) }))
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
		if st, _ := r.State(alias.Key{Zone: z.ID, Name: z.Name}); st.Status != "ACTIVE" {
			t.Errorf("status %s", st.Status)
		}
	})
}

// In a secondary zone the ALIAS type belongs to the primary, and is not flattened.
func TestSecondaryZone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		apex := "example.org."
		r.must(r.commit(func(tx *publish.Tx) error {
			_, err := tx.CreateZone(zone.Zone{Name: name(apex), Kind: zone.Secondary, TTL: 60},
				r.set(apex+" 0 SOA ns."+apex+" host."+apex+" 1 3600 600 86400 60", true), r.set(apex+" 0 NS ns."+apex, true),
				r.set(apex+" 60 ALIAS cdn.example.net.", false), r.set("www.example.org. 60 A 203.0.113.7", false))
			return err
		}))
		r.zone("example.com.", "example.com. 60 ALIAS example.org.", "www.example.com. 60 ALIAS www.example.org.")
		r.wait(time.Second)
		r.want(apex, "none", "")
		r.want("example.com.", "ERROR CREATE nodata", "")
		r.want("www.example.com.", "ACTIVE", "A 60 203.0.113.7")
		if n := len(r.net.History()); n > 0 {
			t.Errorf("%d queries", n)
		}
	})
}

// Any user can create a zone of any name on this server. It must not capture names that other projects follow. A zone
// of the same project is used as soon as it is created or moved into the project.
func TestZonesOfOtherProjects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		mine := r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.",
			"www.example.org. 300 ALIAS cdn.example.net.")
		const outside = "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1"
		r.wait(0)
		r.want("example.org.", "ACTIVE", outside)
		other := zone.Zone{Name: name("example.net."), Kind: zone.Primary, TTL: 3600, Project: "another"}
		r.must(r.commit(func(tx *publish.Tx) (err error) {
			other, err = tx.CreateZone(other,
				r.set("example.net. 0 SOA ns.example.net. host.example.net. 1 3600 600 86400 60", true),
				r.set("example.net. 0 NS ns.example.net.", true), r.set("cdn.example.net. 100 A 203.0.113.66", false))
			return err
		}))
		r.want("example.org.", "ACTIVE", outside)
		r.wait(time.Hour)
		r.want("example.org.", "ACTIVE", outside)
		give := func(project string) {
			r.must(r.commit(func(tx *publish.Tx) error {
				other.Project = project
				_, err := tx.UpdateZone(other)
				return err
			}))
		}
		give(mine.Project)
		r.want("example.org.", "ACTIVE", "A 100 203.0.113.66")
		give("another")
		r.wait(time.Minute)
		r.want("example.org.", "ACTIVE", outside)
	})
}
