package designate_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
)

func TestZoneRules(t *testing.T) {
	s := newServer(t, designate.Settings{MinTTL: 10})
	s.zone("taken.example.org.")
	s.zoneOf(bob, "bob.test.")
	s.zoneOf(bob, "inner.carol.test.")
	long := strings.Repeat("a", 64)
	tests := []struct {
		name, body string
		status     int
		kind       string
	}{
		{"no final dot", `{"name":"example.com","email":"a@example.org"}`, 400, "invalid_object"},
		{"one label", `{"name":"com.","email":"a@example.org"}`, 400, "invalid_zone_name"},
		{"root", `{"name":".","email":"a@example.org"}`, 400, "invalid_object"},
		{"wildcard", `{"name":"*.example.org.","email":"a@example.org"}`, 400, "invalid_object"},
		{"long label", `{"name":"` + long + `.org.","email":"a@example.org"}`, 400, "invalid_object"},
		{"long name", `{"name":"` + strings.Repeat("abcdefg.", 32) + `","email":"a@example.org"}`, 400, "invalid_object"},
		{"leading hyphen", `{"name":"-a.org.","email":"a@example.org"}`, 400, "invalid_object"},
		{"trailing hyphen", `{"name":"a-.org.","email":"a@example.org"}`, 400, "invalid_object"},
		{"space", `{"name":"a b.org.","email":"a@example.org"}`, 400, "invalid_object"},
		{"no name", `{"email":"a@example.org"}`, 400, "invalid_object"},
		{"no email", `{"name":"e.example.org."}`, 400, "invalid_object"},
		{"null email", `{"name":"e.example.org.","email":null}`, 400, "invalid_object"},
		{"email without @", `{"name":"e.example.org.","email":"example.org"}`, 400, "invalid_object"},
		{"email with two @", `{"name":"e.example.org.","email":"a@b@example.org"}`, 400, "invalid_object"},
		{"email with a final dot", `{"name":"e.example.org.","email":"a@example.org."}`, 400, "invalid_object"},
		{"masters of a primary", `{"name":"e.example.org.","email":"a@example.org","masters":["192.0.2.1"]}`, 400,
			"invalid_object"},
		{"ttl below the range", `{"name":"e.example.org.","email":"a@example.org","ttl":-1}`, 400, "invalid_object"},
		{"ttl above the range", `{"name":"e.example.org.","email":"a@example.org","ttl":2147483648}`, 400, "invalid_object"},
		{"ttl no number", `{"name":"e.example.org.","email":"a@example.org","ttl":"60"}`, 400, "invalid_object"},
		{"ttl below the minimum", `{"name":"e.example.org.","email":"a@example.org","ttl":9}`, 400, "invalid_ttl"},
		{"long description", `{"name":"e.example.org.","email":"a@example.org","description":"` + strings.Repeat("x", 161) +
			`"}`, 400, "invalid_object"},
		{"unknown kind", `{"name":"e.example.org.","email":"a@example.org","type":"TERTIARY"}`, 400, "invalid_object"},
		{"secondary without masters", `{"name":"e.example.org.","type":"SECONDARY"}`, 400, "invalid_object"},
		{"secondary with email",
			`{"name":"e.example.org.","type":"SECONDARY","masters":["192.0.2.1"],"email":"a@example.org"}`, 400,
			"invalid_object"},
		{"secondary with bad master", `{"name":"e.example.org.","type":"SECONDARY","masters":["192.0.2.1:0"]}`, 400,
			"invalid_object"},
		{"secondary of a host", `{"name":"e.example.org.","type":"SECONDARY","masters":["192.0.2.1:53","ns.example.org"]}`,
			400, "invalid_object"},
		{"catalog", `{"name":"e.example.org.","type":"CATALOG"}`, 400, "bad_request"},
		{"other pool", `{"name":"e.example.org.","email":"a@example.org","pool_id":"00000000-0000-4000-8000-000000000000"}`,
			404, "pool_not_found"},
		{"read-only key", `{"name":"e.example.org.","email":"a@example.org","serial":1}`, 400, "invalid_object"},
		{"taken", `{"name":"TAKEN.example.org.","email":"a@example.org"}`, 409, "duplicate_zone"},
		{"inside another project's", `{"name":"x.bob.test.","email":"a@example.org"}`, 403, "illegal_child"},
		{"around another project's", `{"name":"carol.test.","email":"a@example.org"}`, 403, "illegal_parent"},
		{"inside one's own", `{"name":"x.taken.example.org.","email":"a@example.org"}`, 202, ""},
		{"around one's own", `{"name":"example.org.","email":"a@example.org"}`, 202, ""},
		{"underscore and ttl 10", `{"name":"_x.example.net.","email":"a.b.c@example.org","ttl":10,"description":null}`, 202,
			""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.do(request{as: alice, call: "POST /v2/zones", body: tt.body})
			if res.Code != tt.status || res.str("type") != tt.kind && tt.kind != "" {
				t.Errorf("POST %s = %d %s, want %d %s", tt.body, res.Code, res.Body, tt.status, tt.kind)
			}
		})
	}
}

func TestZoneFirstSets(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	serial := func() string {
		return strconv.Itoa(int(s.as(alice, 200, "GET "+z, "").json["serial"].(float64)))
	}
	soa := func() []string {
		res := s.as(alice, 200, "GET "+z+"/recordsets?type=SOA", "")
		records := res.json["recordsets"].([]any)[0].(map[string]any)["records"].([]any)
		return strings.Fields(records[0].(string))
	}
	got := soa()
	refresh, _ := strconv.Atoi(got[3])
	if got[0] != "ns1.example.net." || got[1] != `host\.master.example.org.` || got[2] != serial() ||
		refresh < 3500 || refresh > 3600 || strings.Join(got[4:], " ") != "600 86400 3600" {
		t.Errorf("SOA = %q with serial %s", got, serial())
	}
	before := serial()
	s.as(alice, 202, "PATCH "+z, `{"email":"b@example.net"}`)
	if got := soa(); got[1] != "b.example.net." || got[2] != serial() || got[2] == before {
		t.Errorf("SOA after a new email = %q, serial %s, before %s", got, serial(), before)
	}
	before = serial()
	s.as(alice, 202, "PATCH "+z, `{"email":"b@example.net","description":"same email"}`)
	if serial() != before {
		t.Error("a description stepped the serial")
	}
	for _, body := range []string{`{"name":"other.org."}`, `{"type":"SECONDARY"}`, `{"attributes":{"a":"b"}}`,
		`{"serial":5}`, `{"ttl":null}`, `{"masters":["192.0.2.1"]}`} {
		if res := s.as(alice, 400, "PATCH "+z, body); res.str("type") != "invalid_object" {
			t.Errorf("PATCH %s = %s", body, res.Body)
		}
	}
	s.as(alice, 202, "PATCH "+z, `{"name":"example.org.","type":"PRIMARY","ttl":600}`) // the current values
}

// TestSerialsDiffer checks that two changes in one second have different serials.
func TestSerialsDiffer(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	seen := map[any]bool{s.as(alice, 200, "GET "+z, "").json["serial"]: true}
	for _, n := range []string{"a", "b", "c"} {
		s.set(z, n+".example.org.", "A", "192.0.2.1")
		seen[s.as(alice, 200, "GET "+z, "").json["serial"]] = true
	}
	if len(seen) != 4 {
		t.Errorf("4 states have %d serials", len(seen))
	}
}

func TestZoneDelete(t *testing.T) {
	s := newServer(t, designate.Settings{})
	outer, inner := s.zone("example.org."), s.zone("sub.example.org.")
	if res := s.as(alice, 400, "DELETE "+outer, ""); res.str("type") != "zone_has_sub_zone" {
		t.Error(res.Body)
	}
	s.as(alice, 202, "DELETE "+inner, "")
	s.as(alice, 201, "POST "+outer+"/shares", `{"target_project_id":"p2"}`)
	if res := s.as(alice, 400, "DELETE "+outer, ""); res.str("type") != "zone_is_shared" {
		t.Error(res.Body)
	}
	s.as(alice, 202, "DELETE "+outer, "", "X-Designate-Delete-Shares: true")
	s.as(alice, 404, "GET "+outer, "")
	s.as(bob, 404, "GET "+outer, "")
	s.zone("example.org.")
	if got := s.as(bob, 200, "GET /v2/zones", "").items("zones", "name"); len(got) != 0 {
		t.Errorf("bob sees %q, of which the old one was shared with him", got)
	}
}

func TestTLDsAndBlacklists(t *testing.T) {
	s := newServer(t, designate.Settings{})
	body := func(name string) string { return `{"name":"` + name + `","email":"a@example.org"}` }
	s.as(alice, 202, "POST /v2/zones", body("example.net."))
	tld := s.as(admin, 201, "POST /v2/tlds", `{"name":"co.test"}`).str("id")
	for _, name := range []string{"example.org.", "co.test.", "xco.test."} {
		if res := s.as(alice, 400, "POST /v2/zones", body(name)); res.str("type") != "invalid_zone_name" {
			t.Errorf("%s: %s", name, res.Body)
		}
	}
	s.as(alice, 202, "POST /v2/zones", body("x.co.test."))
	s.as(admin, 409, "POST /v2/tlds", `{"name":"CO.test"}`)
	s.as(admin, 200, "PATCH /v2/tlds/"+tld, `{"description":"ours"}`)
	s.as(admin, 204, "DELETE /v2/tlds/"+tld, "")
	if res := s.as(admin, 404, "GET /v2/tlds/"+tld, ""); res.str("type") != "tld_not_found" {
		t.Error(res.Body)
	}
	s.as(admin, 201, "POST /v2/blacklists", `{"pattern":"^secret[0-9]*\\."}`)
	s.as(admin, 400, "POST /v2/blacklists", `{"pattern":"("}`)
	if res := s.as(alice, 400, "POST /v2/zones", body("secret7.org.")); res.str("type") != "invalid_zone_name" {
		t.Error(res.Body)
	}
	s.as(alice, 202, "POST /v2/zones", body("notsecret.org."))
	s.as(alice, 403, "GET /v2/tlds", "")
}

func TestZoneQuota(t *testing.T) {
	s := newLimitedServer(t, designate.Settings{}, quotas(func(q *publish.Quotas) { q.Zones = 1 }), nil)
	s.zone("a.example.org.")
	body := `{"name":"b.example.org.","email":"a@example.org"}`
	if res := s.as(alice, 413, "POST /v2/zones", body); res.str("type") != "over_quota" {
		t.Error(res.Body)
	}
	s.as(alice, 403, "PATCH /v2/quotas/p1", `{"zones":-1}`)
	s.as(admin, 403, "GET /v2/quotas/p1", "")
	s.as(admin, 200, "PATCH /v2/quotas/p1", `{"zones":-1}`, "X-Auth-All-Projects: true")
	s.as(alice, 202, "POST /v2/zones", body)
	s.as(admin, 204, "DELETE /v2/quotas/p1?all_projects=true", "")
	s.as(alice, 413, "POST /v2/zones", `{"name":"c.example.org.","email":"a@example.org"}`)
	s.as(admin, 400, "PATCH /v2/quotas/p1", `{"zones":-2}`, "X-Auth-All-Projects: true")
	s.as(admin, 400, "PATCH /v2/quotas/p1", `{"houses":2}`, "X-Auth-All-Projects: true")
}
