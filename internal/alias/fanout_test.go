package alias_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// followers creates a zone of n aliases with one target.
func (r *testEnv) followers(n int, apex, target string) {
	r.t.Helper()
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("a%d.%s 300 ALIAS %s", i, apex, target)
	}
	r.zone(apex, lines...)
	r.wait(0)
}

// flattenedBy returns the number of flattened record sets that each commit since the last call changed.
func (r *testEnv) flattenedBy() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.flattened
	r.flattened = nil
	return out
}

// all checks the addresses of the aliases that followers created.
func (r *testEnv) all(n int, apex, rows string) {
	r.t.Helper()
	wrong := 0
	for i := range n {
		if r.rows(fmt.Sprintf("a%d.%s", i, apex)) != rows {
			wrong++
		}
	}
	if wrong > 0 {
		r.t.Errorf("%d of %d ALIAS do not have %s", wrong, n, rows)
	}
}

// One tenant makes very many aliases follow one name. An edit flattens at most a hundred of them. The others are
// flattened in commits of a hundred, even when all are in one zone, and wherever the target is.
func TestFanOutIsBounded(t *testing.T) {
	for _, n := range []int{100, 250} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, "zone far.test.\nfar.test. 60 A 203.0.113.1")
				r.zone("example.net.", "www.example.net. 60 A 203.0.113.1", "*.wild.example.net. 60 A 203.0.113.1",
					"c.example.net. 60 CNAME www.example.net.")
				r.followers(n, "at.example.", "www.example.net.")
				r.followers(n, "via.example.", "c.example.net.")
				r.followers(n, "below.example.", "x.y.wild.example.net.")
				r.followers(n, "far.example.", "far.test.")
				steps := []struct {
					what, apex string
					do         func() error
				}{
					{"the target changes", "at.example.", func() error { return r.put("www.example.net. 60 A 203.0.113.2") }},
					{"a name on the path changes", "via.example.", func() error {
						return r.put("c.example.net. 60 CNAME at.example.net.", "at.example.net. 60 A 203.0.113.2")
					}},
					{"a wildcard changes", "below.example.", func() error { return r.put("*.wild.example.net. 60 A 203.0.113.2") }},
					{"a name elsewhere changes", "far.example.", func() error {
						r.do(r.net.MustServer(resolver, ""), "set far.test. 60 A 203.0.113.2")
						return nil
					}},
				}
				r.flattenedBy()
				for _, s := range steps {
					r.must(s.do())
					r.wait(2 * time.Minute)
					r.all(n, s.apex, "A 60 203.0.113.2")
				}
				if most := slices.Max(r.flattenedBy()); most > 100 {
					t.Errorf("a commit flattened %d ALIAS", most)
				}
			})
		})
	}
}

// A hundred aliases follow a name in the same commit.
func TestHundredFollowInOneCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "")
		r.zone("example.net.", "www.example.net. 60 A 203.0.113.1")
		r.followers(100, "example.org.", "www.example.net.")
		r.flattenedBy()
		r.must(r.put("www.example.net. 60 A 203.0.113.2"))
		if got := r.flattenedBy(); !slices.Equal(got, []int{100}) {
			t.Errorf("the commits flattened %v ALIAS, want 100 in one", got)
		}
	})
}

// The work that an edit left to later commits is done after a crash.
func TestFanOutSurvivesCrash(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "")
		r.zone("example.net.", "www.example.net. 60 A 203.0.113.1")
		r.followers(250, "example.org.", "www.example.net.")
		first := true
		r.store.beforeCommit(func() { r.store.setBroken(!first); first = false })
		r.must(r.put("www.example.net. 60 A 203.0.113.2"))
		r.wait(0)
		r.stop()
		again := open(t, r.path, r.net, alias.Options{}, follow.Options{Rand: func() float64 { return 0 }})
		again.wait(time.Second)
		again.all(250, "example.org.", "A 60 203.0.113.2")
		left := 0
		again.must(again.pub.View(func(v store.View) error {
			return v.EachObject(store.KindAliasDue, func(string, []byte) (bool, error) { left++; return true, nil })
		}))
		if left > 0 {
			t.Errorf("%d names are still due", left)
		}
	})
}

// A change of a sibling of the target flattens none of the many aliases.
func TestUnrelatedChangeFlattensNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "")
		r.zone("example.net.", "example.net. 60 A 203.0.113.1", "b.example.net. 60 A 203.0.113.1")
		r.followers(250, "example.org.", "example.net.")
		commits := r.store.commits()
		r.must(r.put("b.example.net. 60 A 203.0.113.2"))
		r.must(r.put("new.b.example.net. 60 A 203.0.113.2"))
		r.zone("other.example.")
		r.wait(time.Second)
		if n := r.store.commits() - commits; n != 3 {
			t.Errorf("three changes beside the target took %d commits", n)
		}
	})
}

// When the zone of the targets is deleted, its followers are flattened in bounded steps.
func TestFanOutOfDeletedZone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "")
		net := r.zone("example.net.", "www.example.net. 60 A 203.0.113.1")
		r.followers(250, "example.org.", "www.example.net.")
		r.must(r.commit(func(tx *publish.Tx) error { return tx.DeleteZone(net.ID) }))
		r.wait(time.Minute)
		for _, owner := range []string{"a0.example.org.", "a249.example.org."} {
			if got := r.status(owner); !strings.HasPrefix(got, "STALE") {
				t.Errorf("%s is %s", owner, got)
			}
		}
	})
}

// A project has at most as many aliases as its quota allows, whichever edit creates them. Replacing one does not count.
func TestAliasQuota(t *testing.T) {
	bubble(t, func(t *testing.T) {
		net := simnet.New(1)
		quota := publish.Options{Quotas: publish.DefaultQuotas()}
		quota.Quotas.Aliases = 3
		r := openWith(t, t.TempDir()+"/db", net, quota, alias.Options{}, follow.Options{})
		make := func(apex, project string, lines ...string) (z zone.Zone, err error) {
			sets := []zone.RecordSet{r.set(apex+" 0 SOA ns."+apex+" host."+apex+" 1 3600 600 86400 60", true),
				r.set(apex+" 0 NS ns."+apex, true)}
			for _, l := range lines {
				sets = append(sets, r.set(l, false))
			}
			return z, r.commit(func(tx *publish.Tx) (err error) {
				z, err = tx.CreateZone(zone.Zone{Name: name(apex), Kind: zone.Primary, TTL: 60, Project: project}, sets...)
				return err
			})
		}
		refused := func(what string, err error) {
			t.Helper()
			if over := (*publish.QuotaError)(nil); !errors.As(err, &over) || over.Resource != "aliases" || over.Most != 3 {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := make("a.test.", "p1", "1.a.test. 60 ALIAS x.test.", "2.a.test. 60 ALIAS x.test.")
		r.must(err)
		b, err := make("b.test.", "p2", "1.b.test. 60 ALIAS x.test.", "2.b.test. 60 ALIAS x.test.")
		r.must(err)
		r.must(r.put("3.a.test. 60 ALIAS x.test."))
		refused("a fourth", r.put("4.a.test. 60 ALIAS x.test."))
		_, err = make("c.test.", "p1", "c.test. 60 ALIAS x.test.")
		refused("one in a new zone", err)
		refused("a zone of another project", r.commit(func(tx *publish.Tx) error {
			b.Project = "p1"
			_, err := tx.UpdateZone(b)
			return err
		}))
		r.must(r.commit(func(tx *publish.Tx) error {
			if err := r.putIn(tx, "0.a.test. 60 ALIAS x.test."); err != nil {
				return err
			}
			return dropIn(tx, "3.a.test.", "ALIAS")
		}))
		r.must(r.put("0.a.test. 60 ALIAS y.test.", "3.b.test. 60 ALIAS x.test."))
		r.must(r.drop("0.a.test.", "ALIAS"))
		r.stop()
		r = openWith(t, r.path, net, quota, alias.Options{}, follow.Options{})
		r.must(r.put("5.a.test. 60 ALIAS x.test."))
		refused("a fourth after a restart", r.put("6.a.test. 60 ALIAS x.test."))
	})
}
