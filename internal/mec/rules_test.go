package mec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

func TestRuleLife(t *testing.T) {
	g := start(t, mec.Options{})
	if rules, err := g.Rules("app1"); err != nil || rules == nil || len(rules) != 0 {
		t.Fatalf("Rules of an unknown application = %v, %v, want none", rules, err)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "refused")
	made := g.create("app1", "r1 WWW.example.com 192.0.2.1")
	if made.State != mec.Active || made.TTL != nil || made.Version != 1 || made.Created.IsZero() {
		t.Errorf("created %+v", made)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "30 192.0.2.1")
	g.wantAnswer("www.example.com.", rr.TypeAAAA, "nodata")
	g.wantAnswer("other.example.com.", rr.TypeA, "refused")

	g.create("app1", "r2 www.example.com 2001:db8::1 ttl=4294967295")
	g.wantAnswer("www.example.com.", rr.TypeAAAA, "2147483647 2001:db8::1")
	if r, err := g.Rule("app1", "r2"); err != nil || *r.TTL != 4294967295 {
		t.Errorf("ttl kept as %v, %v", r.TTL, err)
	}
	if err := g.setState("app1", "r1", mec.Inactive); err != nil {
		t.Fatal(err)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "nodata")
	g.wantAnswer("www.example.com.", rr.TypeAAAA, "2147483647 2001:db8::1")
	g.delete("app1", "r2")
	g.wantAnswer("www.example.com.", rr.TypeAAAA, "refused")
	g.delete("app1", "r1")
	_, err := g.Delete(t.Context(), actor, "app1", "r1", nil)
	wantIs(t, err, store.ErrNotFound)
	if a, ok := g.app("app1"); ok {
		t.Errorf("the application without rules is listed: %+v", a)
	}
	if n := g.rows(); n != "" {
		t.Errorf("rows that nobody needs are left:\n%s", n)
	}
}

// rows lists the rows of rules and zones in the store, without the feed and counters.
func (g *rig) rows() string {
	var b strings.Builder
	g.pub.View(func(v store.View) error {
		for _, kind := range []store.Kind{store.KindMECApp, store.KindMECRule, store.KindMECClaims, store.KindMECExpiry,
			store.KindMECTask,
			store.KindMECRunning, store.KindMECConfig, store.KindMECAppName, store.KindMECSubscription, store.KindMECRecord,
			store.KindMECZone} {
			v.EachObject(kind, func(id string, value []byte) (bool, error) {
				fmt.Fprintf(&b, "%s %q %s\n", kind, id, value)
				return true, nil
			})
		}
		return v.Zones(func(z zone.Zone) (bool, error) {
			fmt.Fprintf(&b, "zone %s\n", z.Name)
			return true, nil
		})
	})
	return b.String()
}

func TestWildcardRule(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "r1 *.app.example 192.0.2.1")
	g.create("app1", "r2 own.app.example 192.0.2.2")
	g.wantAnswer("a.b.app.example.", rr.TypeA, "30 192.0.2.1")
	g.wantAnswer("own.app.example.", rr.TypeA, "30 192.0.2.2")
	g.wantAnswer("app.example.", rr.TypeA, "refused")
}

func TestUpdate(t *testing.T) {
	g := start(t, mec.Options{})
	made := g.create("app1", "r1 www.example.com 192.0.2.1 ttl=60")
	commits, events := g.commits("."), g.newest()

	same, err := g.Update(t.Context(), actor, "app1", "r1", func(r mec.Rule) (mec.Rule, error) { return r, nil })
	if err != nil {
		t.Fatal(err)
	}
	if same.Version != 1 || same.ETag() != made.ETag() || !same.Updated.IsZero() {
		t.Errorf("an update to the same made %+v of %+v", same, made)
	}
	if g.commits(".") != commits || g.newest() != events {
		t.Error("an update to the same made a commit or an event")
	}
	stale := errors.New("stale")
	_, err = g.Update(t.Context(), actor, "app1", "r1", func(r mec.Rule) (mec.Rule, error) {
		r.State = mec.Inactive
		return r, stale
	})
	wantIs(t, err, stale)
	g.wantAnswer("www.example.com.", rr.TypeA, "60 192.0.2.1")

	next, err := g.Update(t.Context(), actor, "app1", "r1", func(r mec.Rule) (mec.Rule, error) {
		return rule(t, "intruder", "other new.example.com 192.0.2.9"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if next.App != "app1" || next.ID != "r1" || next.Version != 2 || next.State != mec.Active || next.Updated.IsZero() ||
		!next.Created.Equal(made.Created) {
		t.Errorf("updated to %+v", next)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "refused")
	g.wantAnswer("new.example.com.", rr.TypeA, "30 192.0.2.9")
	_, err = g.Update(t.Context(), actor, "app1", "r9", nil)
	wantIs(t, err, store.ErrNotFound)
}

// commits counts the changes in the history of a zone.
func (g *rig) commits(name string) (n int) {
	g.t.Helper()
	err := g.pub.View(func(v store.View) error {
		z, err := v.ZoneByName(dnsname.MustParse(name))
		n, _ = v.CountChanges(z.ID)
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

func (g *rig) newest() uint64 {
	g.t.Helper()
	n, err := g.Newest()
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

func TestCreateTwice(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "r1 www.example.com 192.0.2.1")
	wantIs(t, g.tryCreate("app1", "r1 www.example.com 192.0.2.1"), store.ErrExists)
	g.create("app2", "r1 other.example.com 192.0.2.1") // ids are unique only within an application
	refused := errors.New("same domain")
	_, err := g.Create(t.Context(), actor, rule(t, "app1", "r2 www.example.com 192.0.2.1"), func(have []mec.Rule) error {
		if len(have) == 1 && have[0].ID == "r1" {
			return refused
		}
		return nil
	})
	wantIs(t, err, refused)
}

func TestTwoApplications(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "r1 www.example.com 192.0.2.1 ttl=60")
	g.create("app2", "r1 www.example.com 192.0.2.1 ttl=20")
	g.wantAnswer("www.example.com.", rr.TypeA, "20 192.0.2.1")

	err := g.tryCreate("app3", "r1 www.example.com 192.0.2.3")
	c := wantConflict(t, err)
	if text := err.Error(); strings.Contains(text, "app1") || strings.Contains(text, "r1") ||
		!strings.Contains(text, "another application") {
		t.Errorf("the conflict shows another application to an application: %s", text)
	}
	if !strings.Contains(c.Detail(), "app1") {
		t.Errorf("the conflict does not name the owner to the platform: %s", c.Detail())
	}
	if a, ok := g.app("app3"); ok {
		t.Errorf("the refused rule left an application: %+v", a)
	}
	// The reverse: the first is updated while the second stays.
	_, err = g.Update(t.Context(), actor, "app1", "r1", func(r mec.Rule) (mec.Rule, error) {
		return rule(t, "", "r1 www.example.com 192.0.2.7"), nil
	})
	wantConflict(t, err)

	g.create("app3", "r2 www.example.com 192.0.2.3 INACTIVE")
	wantConflict(t, g.setState("app3", "r2", mec.Active))
	g.delete("app1", "r1")
	g.wantAnswer("www.example.com.", rr.TypeA, "20 192.0.2.1")
	wantConflict(t, g.setState("app3", "r2", mec.Active))
	if err := g.setState("app2", "r1", mec.Inactive); err != nil {
		t.Fatal(err)
	}
	if err := g.setState("app3", "r2", mec.Active); err != nil {
		t.Fatalf("handover: %v", err)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "30 192.0.2.3")
	wantConflict(t, g.setState("app2", "r1", mec.Active))
}

func TestConflictWithin(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "r1 www.example.com 192.0.2.1")
	err := g.tryCreate("app1", "r2 www.example.com 192.0.2.2")
	wantConflict(t, err)
	if !strings.Contains(err.Error(), "r1") {
		t.Errorf("the error does not name the application's own rule: %v", err)
	}
}

func TestLoadBalance(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "r1 www.example.com 192.0.2.1 lb ttl=60")
	g.create("app2", "r1 www.example.com 192.0.2.2 lb ttl=90")
	g.wantAnswer("www.example.com.", rr.TypeA, "60 192.0.2.1 192.0.2.2")
	wantConflict(t, g.tryCreate("app3", "r1 www.example.com 192.0.2.2"))
	wantConflict(t, g.tryCreate("app3", "r1 www.example.com 192.0.2.3"))
	g.create("app3", "r1 www.example.com 192.0.2.2 lb")
	g.delete("app2", "r1")
	g.wantAnswer("www.example.com.", rr.TypeA, "30 192.0.2.1 192.0.2.2")
	g.delete("app3", "r1")
	g.wantAnswer("www.example.com.", rr.TypeA, "60 192.0.2.1")
	_, err := g.Update(t.Context(), actor, "app1", "r1",
		func(r mec.Rule) (mec.Rule, error) { r.LoadBalance = false; return r, nil })
	if err != nil {
		t.Errorf("the only claim cannot end its balancing: %v", err)
	}
	wantConflict(t, g.tryCreate("app2", "r1 www.example.com 192.0.2.2 lb"))
}

func TestSetStates(t *testing.T) {
	g := start(t, mec.Options{})
	for i := range 10 {
		g.create("app1", fmt.Sprintf("r%d n%d.example.com 192.0.2.%d", i, i, i+1))
	}
	g.create("app2", "r n0.example.com 192.0.2.1")
	before := g.commits(".")
	rules, err := g.SetStates(t.Context(), actor, "app1", mec.Inactive, nil)
	if err != nil || len(rules) != 10 || rules[3].State != mec.Inactive || rules[3].Version != 2 {
		t.Fatalf("SetStates = %v, %v", rules, err)
	}
	if got := g.commits("."); got != before+1 {
		t.Errorf("deactivating ten rules was %d commits, want 1", got-before)
	}
	g.wantAnswer("n0.example.com.", rr.TypeA, "30 192.0.2.1")
	g.wantAnswer("n1.example.com.", rr.TypeA, "refused")
	// One name is taken, so no rule becomes active.
	g.create("app3", "r n5.example.com 192.0.2.99")
	_, err = g.SetStates(t.Context(), actor, "app1", mec.Active, nil)
	wantConflict(t, err)
	g.wantAnswer("n1.example.com.", rr.TypeA, "refused")
	g.delete("app3", "r")
	if _, err = g.SetStates(t.Context(), actor, "app1", mec.Active, nil); err != nil {
		t.Fatal(err)
	}
	g.wantAnswer("n5.example.com.", rr.TypeA, "30 192.0.2.6")
}

func TestReplace(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "a a.example.com 192.0.2.1")
	g.create("app1", "b b.example.com 192.0.2.2 INACTIVE")
	g.create("app1", "c c.example.com 192.0.2.3")
	g.create("app2", "x x.example.com 192.0.2.9")

	// a and c swap their names, b keeps its state; the name of x is taken.
	list := func(words ...string) (rules []mec.Rule) {
		for _, w := range words {
			rules = append(rules, rule(t, "", w))
		}
		return rules
	}
	_, err := g.Replace(t.Context(), actor, "app1", list("a c.example.com 192.0.2.1", "x x.example.com 192.0.2.1"), nil)
	wantConflict(t, err)
	g.wantAnswer("a.example.com.", rr.TypeA, "30 192.0.2.1")
	_, err = g.Replace(t.Context(), actor, "app1", list("a a.example.com 192.0.2.1", "a x.example.com 192.0.2.1"), nil)
	wantField(t, err, "appDNSRule[1].dnsRuleId")
	got, err := g.Replace(t.Context(), actor, "app1",
		list("a c.example.com 192.0.2.1", "c a.example.com 192.0.2.3", "b b.example.com 192.0.2.4"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got[2].State != mec.Inactive || got[0].Version != 2 {
		t.Errorf("replaced by %+v", got)
	}
	g.wantAnswer("a.example.com.", rr.TypeA, "30 192.0.2.3")
	g.wantAnswer("c.example.com.", rr.TypeA, "30 192.0.2.1")
	g.wantAnswer("b.example.com.", rr.TypeA, "refused")
	if _, err := g.Replace(t.Context(), actor, "app1", list("d d.example.com 192.0.2.4"), nil); err != nil {
		t.Fatal(err)
	}
	g.wantAnswer("a.example.com.", rr.TypeA, "refused")
	g.wantAnswer("d.example.com.", rr.TypeA, "30 192.0.2.4")
	g.wantAnswer("x.example.com.", rr.TypeA, "30 192.0.2.9")
}

func TestLimits(t *testing.T) {
	g := start(t, mec.Options{})
	want := func(err error, what string) {
		t.Helper()
		var l *mec.LimitError
		if !errors.As(err, &l) || !strings.Contains(l.What, what) {
			t.Errorf("error %v, want the limit of %s", err, what)
		}
	}
	replace := func(id string, n int) error {
		var rules []mec.Rule
		for i := range n {
			rules = append(rules, rule(t, "", fmt.Sprintf("%s%d a.example.com 192.0.2.1", id, i)))
		}
		_, err := g.Replace(t.Context(), actor, "app1", rules, nil)
		return err
	}
	want(replace("a", 1001), "rules")
	for _, id := range []string{"a", "b"} { // the limit applies to the result
		if err := replace(id, 1000); err != nil {
			t.Fatal(err)
		}
	}
	want(g.tryCreate("app1", "c c.example.com 192.0.2.1"), "rules")
	want(g.PutRecords(t.Context(), actor, []mec.Record{record(t, ". a.example.com A 30 192.0.2.1")}), "claims")
	err := g.pub.Commit(t.Context(), actor,
		func(tx *publish.Tx) error { return tx.PutObject(store.KindMECState, "apps", 99_999) })
	if err != nil {
		t.Fatal(err)
	}
	g.create("app2", "b b.example.com 192.0.2.1")
	want(g.tryCreate("app3", "c c.example.com 192.0.2.1"), "applications")
	g.delete("app2", "b")
	g.create("app3", "b b.example.com 192.0.2.1")
	apps, err := g.Apps("app1", 10)
	if diff := cmp.Diff([]mec.App{{ID: "app3", Rules: 1}}, apps); err != nil || diff != "" {
		t.Errorf("Apps: %v (-want +got):\n%s", err, diff)
	}
	if apps, _ := g.Apps("", 1); len(apps) != 1 || apps[0].ID != "app1" || apps[0].Rules != 1000 {
		t.Errorf("Apps = %v", apps)
	}
}

func TestOrdinaryZoneWins(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "r www.example.org 192.0.2.1")
	root := dnsname.MustParse("example.org.")
	soa, _ := rr.ParseData(rr.TypeSOA, "ns.example.org. admin.example.org. 1 3600 600 86400 300")
	ns, _ := rr.ParseData(rr.TypeNS, "ns.example.net.")
	err := g.pub.Commit(t.Context(), actor, func(tx *publish.Tx) error {
		_, err := tx.CreateZone(zone.Zone{Name: root, Kind: zone.Primary, TTL: 60},
			zone.RecordSet{Name: root, Type: rr.TypeSOA, Data: []string{soa}},
			zone.RecordSet{Name: root, Type: rr.TypeNS, Data: []string{ns}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	g.wantAnswer("www.example.org.", rr.TypeA, "nxdomain")
	// An overlay with that name is refused.
	err = g.PutRecords(t.Context(), actor, []mec.Record{record(t, "example.org www.example.org A 30 192.0.2.1")})
	wantIs(t, err, store.ErrExists)
}

func TestTerminate(t *testing.T) {
	g := start(t, mec.Options{Deliver: noDelivery})
	g.create("app1", "r1 www.example.com 192.0.2.1")
	g.create("app1", "r2 w2.example.com 192.0.2.1 INACTIVE")
	g.create("app2", "r1 www.example.com 192.0.2.1")
	if _, err := g.Subscribe(t.Context(), actor, "app1", "http://192.0.2.5/cb"); err != nil {
		t.Fatal(err)
	}
	n, err := g.Terminate(t.Context(), actor, "app1")
	if err != nil || n != (mec.Removed{Rules: 2, Subscriptions: 1}) {
		t.Errorf("Terminate = %+v, %v", n, err)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "30 192.0.2.1")
	if n, err := g.Terminate(t.Context(), actor, "app1"); err != nil || n != (mec.Removed{}) {
		t.Errorf("the second Terminate = %+v, %v", n, err)
	}
	if _, err := g.Terminate(t.Context(), actor, "app2"); err != nil {
		t.Fatal(err)
	}
	if left := g.rows(); left != "" {
		t.Errorf("left after the last application:\n%s", left)
	}
}

func TestRestart(t *testing.T) {
	g := start(t, mec.Options{})
	made := g.create("app1", "r1 bücher.example 192.0.2.1 ttl=60 lb")
	g.create("app2", "r1 bücher.example 192.0.2.2 lb")
	g.create("app3", "r1 off.example 192.0.2.2 INACTIVE")
	g = g.again(mec.Options{})
	g.wantAnswer("xn--bcher-kva.example.", rr.TypeA, "30 192.0.2.1 192.0.2.2")
	g.wantAnswer("off.example.", rr.TypeA, "refused")
	r, err := g.Rule("app1", "r1")
	if err != nil || r.ETag() != made.ETag() || r.Domain != "bücher.example" || r.Version != 1 {
		t.Errorf("after a restart the rule is %+v, %v", r, err)
	}
	g.delete("app2", "r1")
	g.wantAnswer("xn--bcher-kva.example.", rr.TypeA, "60 192.0.2.1")
}
