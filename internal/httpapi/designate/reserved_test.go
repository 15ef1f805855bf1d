package designate_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/store"
)

// refusedZone checks that every operation that creates a zone refuses the name, with a message that contains why.
func (s *server) refusedZone(who httpapi.Caller, name, why string) {
	s.t.Helper()
	for _, body := range []string{`{"name":"` + name + `","email":"a@example.org"}`,
		`{"name":"` + name + `","type":"SECONDARY","masters":["203.0.113.1"]}`} {
		res := s.as(who, 400, "POST /v2/zones", body)
		if res.str("type") != "invalid_zone_name" || !strings.Contains(res.str("message"), why) {
			s.t.Errorf("POST %s = %s, want a message about %q", body, res.Body, why)
		}
	}
	res := s.imports(who, strings.ReplaceAll(zoneText, "example.org.", name), "?replace=true")
	if res.str("status") != "ERROR" || !strings.Contains(res.str("message"), why) {
		s.t.Errorf("import of %s = %s, want a message about %q", name, res.Body, why)
	}
}

// granted creates a zone for alice's project as an administrator.
func (s *server) granted(name string) string {
	s.t.Helper()
	res := s.as(admin, 202, "POST /v2/zones", `{"name":"`+name+`","email":"a@example.org"}`, "X-Auth-Sudo-Project-Id: p1")
	return "/v2/zones/" + res.str("id")
}

func TestPublicSuffixes(t *testing.T) {
	s := newServer(t, designate.Settings{})
	for _, name := range []string{"co.uk.", "kawasaki.jp.", "any.kawasaki.jp.", "example.ck.", "in-addr.arpa.",
		"xn--55qx5d.cn."} {
		s.refusedZone(alice, name, "public suffix")
	}
	for _, name := range []string{"example.co.uk.", "github.io.", "example.internal.", "www.example.ck."} {
		s.zone(name)
	}
	// A listed TLD does not open a public suffix to tenants.
	s.as(admin, 201, "POST /v2/tlds", `{"name":"br"}`)
	s.refusedZone(alice, "com.br.", "public suffix")
	s.zone("example.com.br.")
	s.refusedZone(bob, "example.net.", "Invalid TLD")
}

// TestReservedByAdministrator checks that a project owns a zone that an administrator created for it, and may create
// zones below.
func TestReservedByAdministrator(t *testing.T) {
	s := newServer(t, designate.Settings{Forwards: true})
	s.as(admin, 201, "POST /v2/blacklists", `{"pattern":"^secret\\."}`)
	s.refusedZone(alice, "secret.org.", "Blacklisted")
	for _, name := range []string{"com.au.", "2.0.192.in-addr.arpa.", "secret.org."} {
		s.granted(name)
	}
	s.zone("example.com.au.")
	s.zone("128-25.2.0.192.in-addr.arpa.")
	s.as(bob, 403, "POST /v2/zones", `{"name":"1.2.0.192.in-addr.arpa.","email":"a@example.org"}`)
}

func TestArpa(t *testing.T) {
	s := newServer(t, designate.Settings{})
	names := []string{"10.in-addr.arpa.", "2.0.192.in-addr.arpa.", "8.b.d.0.1.0.0.2.ip6.arpa.", "resolver.arpa."}
	for _, name := range names {
		s.refusedZone(alice, name, "arpa")
	}
	// A TLD in arpa opens that part of arpa and changes nothing else.
	s.as(admin, 201, "POST /v2/tlds", `{"name":"in-addr.arpa"}`)
	s.zone("2.0.192.in-addr.arpa.")
	s.zone("example.org.")
	s.refusedZone(alice, "8.b.d.0.1.0.0.2.ip6.arpa.", "arpa")
	if res := s.as(alice, 400, "POST /v2/zones",
		`{"name":"in-addr.arpa.","email":"a@example.org"}`); !strings.Contains(res.str("message"), "TLD") {
		t.Error(res.Body)
	}
	s.as(admin, 201, "POST /v2/tlds", `{"name":"org"}`)
	s.refusedZone(alice, "example.net.", "Invalid TLD")
}

// TestSpecialUseNames checks that tenants cannot create zones for special-use names, also on a server that does not
// forward. Names for documentation and tests are open.
func TestSpecialUseNames(t *testing.T) {
	s := newServer(t, designate.Settings{})
	for _, name := range []string{"printer.local.", "x.LocalHost.", "x.invalid.", "x.onion.", "x.alt."} {
		s.refusedZone(alice, name, "special-use")
	}
	s.refusedZone(alice, "x.home.arpa.", "arpa")
	for _, name := range []string{"x.test.", "x.example.", "x.example.org.", "x.internal.", "localhost.example.net."} {
		s.zone(name)
	}
	s.granted("corp.local.")
	s.zone("a.corp.local.")
	s.as(admin, 201, "POST /v2/tlds", `{"name":"localhost"}`)
	s.zone("dev.localhost.")
}

// TestForwardedNames checks that tenants of a server that forwards cannot create zones for names of others: the zone
// would answer the server's clients.
func TestForwardedNames(t *testing.T) {
	s := newServer(t, designate.Settings{Forwards: true})
	s.refusedZone(alice, "bank.example.com.", "resolves for its clients")
	s.granted("corp.example.")
	s.zone("a.corp.example.")
	s.as(admin, 201, "POST /v2/tlds", `{"name":"tenants.example.net"}`)
	s.zone("alice.tenants.example.net.")
	s.refusedZone(alice, "bank.example.com.", "Invalid TLD")
	s.refusedZone(alice, "example.net.", "Invalid TLD")
}

// TestRulesAreNotShadowed checks that a tenant cannot create a zone above a rule of an edge application, even while the
// rule is inactive: lookups use zones before rules.
func TestRulesAreNotShadowed(t *testing.T) {
	s := newServer(t, designate.Settings{})
	rules, err := mec.Open(t.Context(), s.pub, mec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []mec.Draft{{ID: "on", Domain: "lobby.game.example.com"},
		{ID: "off", Domain: "www.example.net", State: "INACTIVE"},
		{ID: "all", Domain: "*.rooms.example.org"}, {ID: "own", Domain: "a.app.example.info", Grant: "app.example.info"}} {
		d.AddrType, d.Addr = "IP_V4", "192.0.2.1"
		r, err := mec.ParseRule(d, specialaddr.Table{})
		if err != nil {
			t.Fatal(err)
		}
		r.App = "app1"
		if _, err := rules.Create(t.Context(), store.Actor{}, r, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"example.com.", "game.example.com.", "lobby.game.example.com.", "example.net.",
		"www.example.net.",
		"one.rooms.example.org.", "example.org.", "b.app.example.info.", "app.example.info."} {
		s.refusedZone(alice, name, "edge platform")
	}
	if z := rules.SilencedBy(dnsname.MustParse("lobby.game.example.com.")); !z.IsZero() {
		t.Errorf("the rule is silenced by %s", z)
	}
	s.zone("other.example.com.")
	s.granted("example.net.")
	if _, err := rules.Terminate(t.Context(), store.Actor{}, "app1"); err != nil {
		t.Fatal(err)
	}
	s.zone("game.example.com.")
}

// transfers offers a zone of alice's to every project and accepts it as another caller.
func (s *server) transfers(zone string, who httpapi.Caller, status int) response {
	s.t.Helper()
	req := s.as(alice, 201, "POST "+zone+"/tasks/transfer_requests", "")
	return s.as(who, status, "POST /v2/zones/tasks/transfer_accepts",
		`{"key":"`+req.str("key")+`","zone_transfer_request_id":"`+req.str("id")+`"}`)
}

// TestTransferOfAParent checks that a project cannot keep a zone below the zone that it transfers: the new owner could
// not see it.
func TestTransferOfAParent(t *testing.T) {
	s := newServer(t, designate.Settings{})
	outer, inner := s.zone("example.org."), s.zone("www.example.org.")
	if res := s.transfers(outer, bob, 403); res.str("type") != "illegal_parent" {
		t.Error(res.Body)
	}
	s.as(alice, 200, "GET "+outer, "")
	s.transfers(inner, bob, 201) // the owner of both transfers the inner zone
	s.as(bob, 200, "GET "+inner, "")
	dave := bob
	dave.Project = "p3"
	requests := s.as(alice, 200, "GET /v2/zones/tasks/transfer_requests?status=ACTIVE", "")
	id, key := requests.items("transfer_requests", "id")[0], requests.items("transfer_requests", "key")[0]
	accept := `{"key":"` + key + `","zone_transfer_request_id":"` + id + `"}`
	s.as(dave, 403, "POST /v2/zones/tasks/transfer_accepts", accept) // bob's zone is below it now
	s.as(bob, 201, "POST /v2/zones/tasks/transfer_accepts", accept)
}

// TestTransferBelowAThirdProject checks that a project cannot pass on a zone below the zone of another project, also if
// that zone is shared with the new owner.
func TestTransferBelowAThirdProject(t *testing.T) {
	s := newServer(t, designate.Settings{})
	outer, inner := s.zoneOf(bob, "example.org."), s.zoneOf(bob, "sub.example.org.")
	s.as(bob, 201, "POST "+outer+"/shares", `{"target_project_id":"p3"}`)
	req := s.as(bob, 201, "POST "+inner+"/tasks/transfer_requests", "")
	s.as(alice, 201, "POST /v2/zones/tasks/transfer_accepts",
		`{"key":"`+req.str("key")+`","zone_transfer_request_id":"`+req.str("id")+`"}`)
	dave := bob
	dave.Project = "p3"
	if res := s.transfers(inner, dave, 403); res.str("type") != "illegal_child" {
		t.Error(res.Body)
	}
	s.as(alice, 200, "GET "+inner, "")
}
