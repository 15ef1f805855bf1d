package mec_test

import (
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/store"
)

func (g *rig) wantUsed(want bool, zones ...string) {
	g.t.Helper()
	for _, z := range zones {
		got, err := publish.Read(g.pub, func(v store.View) (bool, error) { return mec.UsesNames(v, dnsname.MustParse(z)) })
		if err != nil || got != want {
			g.t.Errorf("UsesNames(%s) = %v, %v, want %v", z, got, err, want)
		}
	}
}

// TestUsesNames checks that names of the platform are in use, also while their rule is inactive.
func TestUsesNames(t *testing.T) {
	g := start(t, mec.Options{})
	g.wantUsed(false, "example.com.", "com.")
	g.create("app1", "lobby lobby.game.example.com 192.0.2.1")
	g.create("app1", "off off.example.net 192.0.2.1 INACTIVE")
	g.create("app2", "rooms *.rooms.example.org 192.0.2.1")
	if err := g.PutRecords(t.Context(), actor,
		[]mec.Record{record(t, "example.edu. www.example.edu. A 30 192.0.2.1")}); err != nil {
		t.Fatal(err)
	}
	used := []string{"lobby.game.example.com.", "game.example.com.", "example.com.", "off.example.net.", "example.net.",
		"rooms.example.org.", "one.rooms.example.org.", "a.one.rooms.example.org.", "example.org.", "www.example.edu.",
		"example.edu."}
	free := []string{"a.lobby.game.example.com.", "xample.com.", "ff.example.net.", "a.example.net.",
		"xrooms.example.org.", "a.example.edu."}
	g.wantUsed(true, used...)
	g.wantUsed(false, free...)

	// The rule changes its name, changes its state and is deleted.
	if err := g.setState("app1", "lobby", mec.Inactive); err != nil {
		t.Fatal(err)
	}
	g.wantUsed(true, used...)
	_, err := g.Update(t.Context(), actor, "app1", "lobby", func(mec.Rule) (mec.Rule, error) {
		return rule(t, "app1", "lobby lobby.example.info 192.0.2.1"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	g.wantUsed(false, "example.com.", "lobby.game.example.com.")
	g.wantUsed(true, "example.info.")
	if err := g.DeleteRecord(t.Context(), actor, dnsname.MustParse("example.edu."), dnsname.MustParse("www.example.edu."),
		rr.TypeA); err != nil {
		t.Fatal(err)
	}
	g.delete("app1", "lobby")
	if _, err := g.Terminate(t.Context(), actor, "app2"); err != nil {
		t.Fatal(err)
	}
	g.wantUsed(false, "example.info.", "example.edu.", "example.org.", "one.rooms.example.org.")
	g.wantUsed(true, "example.net.")
}

// TestGrantedNamesAreUsed checks that all names in a granted domain are in use, also those without a rule.
func TestGrantedNamesAreUsed(t *testing.T) {
	g := start(t, mec.Options{})
	granted := rule(t, "app1", "r a.game.example.com 192.0.2.1")
	granted.Grant = dnsname.MustParse("game.example.com.")
	if _, err := g.Create(t.Context(), actor, granted, nil); err != nil {
		t.Fatal(err)
	}
	g.wantUsed(true, "b.game.example.com.", "x.b.game.example.com.", "game.example.com.", "example.com.")
	g.wantUsed(false, "b.example.com.", "ygame.example.com.")
	_, err := g.Update(t.Context(), actor, "app1", "r",
		func(r mec.Rule) (mec.Rule, error) { r.Grant = dnsname.Name{}; return r, nil })
	if err != nil {
		t.Fatal(err)
	}
	g.wantUsed(false, "b.game.example.com.")
	g.wantUsed(true, "a.game.example.com.", "game.example.com.")
}

// TestNamesOfAnOlderStore checks that Open writes the rows of names for a store of an older version.
func TestNamesOfAnOlderStore(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "r a.example.com 192.0.2.1 INACTIVE")
	if err := g.PutRecords(t.Context(), actor, []mec.Record{record(t, ". www.example.edu. A 30 192.0.2.1")}); err != nil {
		t.Fatal(err)
	}
	err := g.pub.Commit(t.Context(), actor, func(tx *publish.Tx) error {
		var ids []string
		err := tx.EachObject(store.KindMECName, func(id string, _ []byte) (bool, error) {
			ids = append(ids, id)
			return true, nil
		})
		for _, id := range ids {
			if err == nil {
				err = tx.DeleteObject(store.KindMECName, id)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	g.wantUsed(false, "example.com.", "example.edu.")
	g = g.again(mec.Options{})
	g.wantUsed(true, "example.com.", "example.edu.")
	g.delete("app1", "r")
	g.wantUsed(false, "example.com.")
}

func TestParseGrant(t *testing.T) {
	draft := mec.Draft{ID: "r", Domain: "a.game.example.com", AddrType: "IP_V4", Addr: "192.0.2.1"}
	for _, good := range []string{"", "a.game.example.com", "Game.Example.COM.", "com"} {
		draft.Grant = good
		if r, err := mec.ParseRule(draft, specialaddr.Table{}); err != nil || r.Grant.IsZero() != (good == "") {
			t.Errorf("grantedDomain %q: %v, %v", good, r.Grant, err)
		}
	}
	for _, bad := range []string{".", "*.game.example.com", "other.example.com", "ame.example.com", "a b",
		"b.a.game.example.com"} {
		draft.Grant = bad
		_, err := mec.ParseRule(draft, specialaddr.Table{})
		wantField(t, err, "grantedDomain")
	}
}
