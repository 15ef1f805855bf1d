package mec_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

func (g *rig) createUntil(app, words string, life time.Duration) error {
	r := rule(g.t, app, words)
	r.ExpiresAt = time.Now().Add(life).UTC().Truncate(time.Microsecond)
	_, err := g.Create(g.t.Context(), actor, r, nil)
	return err
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, mec.Options{})
		wantField(t, g.createUntil("app1", "r n.example.com 192.0.2.1", 0), "expiresAt")
		for words, life := range map[string]time.Duration{"a a.example.com 192.0.2.1": 10 * time.Second,
			"b b.example.com 192.0.2.1": 3 * time.Hour, "c c.example.com 192.0.2.1": 10 * time.Second} {
			if err := g.createUntil("app1", words, life); err != nil {
				t.Fatal(err)
			}
		}
		// c is extended, then its expiry is removed.
		for _, end := range []time.Time{time.Now().Add(time.Hour), {}} {
			_, err := g.Update(t.Context(), actor, "app1", "c",
				func(r mec.Rule) (mec.Rule, error) { r.ExpiresAt = end; return r, nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		after := g.newest()
		time.Sleep(10*time.Second - time.Millisecond)
		g.wantAnswer("a.example.com.", rr.TypeA, "30 192.0.2.1")
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		g.wantAnswer("a.example.com.", rr.TypeA, "refused")
		_, err := g.Rule("app1", "a")
		wantIs(t, err, store.ErrNotFound)
		if got := collect(t, g.Watch("", after), 1); got[0] != "6 EXPIRED app1/a ACTIVE" {
			t.Errorf("event %q", got[0])
		}
		g.wantAnswer("b.example.com.", rr.TypeA, "30 192.0.2.1")
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		g.wantAnswer("b.example.com.", rr.TypeA, "refused")
		g.wantAnswer("c.example.com.", rr.TypeA, "30 192.0.2.1")
		g.stop()
	})
}

// TestExpiryMeanwhile checks that a rule which expires while another is being removed does not wait for maxExpiryWait.
func TestExpiryMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &breakable{}
		g := openOn(t, t.TempDir()+"/db", mec.Options{}, true, disk)
		for words, life := range map[string]time.Duration{"a a.example.com 192.0.2.1": 10 * time.Second,
			"b b.example.com 192.0.2.1": 11 * time.Second} {
			if err := g.createUntil("app1", words, life); err != nil {
				t.Fatal(err)
			}
		}
		disk.slow.Store(int64(2 * time.Second))
		time.Sleep(15 * time.Second)
		synctest.Wait()
		g.wantAnswer("a.example.com.", rr.TypeA, "refused")
		g.wantAnswer("b.example.com.", rr.TypeA, "refused")
		g.stop()
	})
}

func TestExpiryAcrossRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, mec.Options{})
		if err := g.createUntil("app1", "a a.example.com 192.0.2.1", time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := g.createUntil("app1", "b b.example.com 192.0.2.1", time.Hour); err != nil {
			t.Fatal(err)
		}
		g.stop()
		time.Sleep(2 * time.Minute)
		g = open(t, g.path, mec.Options{}, false) // Open alone removes it
		g.wantAnswer("a.example.com.", rr.TypeA, "refused")
		g.wantAnswer("b.example.com.", rr.TypeA, "30 192.0.2.1")
		g.delete("app1", "b")
		if left := g.rows(); left != "" {
			t.Errorf("left:\n%s", left)
		}
		g.stop()
	})
}
