package designate_test

import (
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
)

func TestGolden(t *testing.T) {
	s := newServer(t, designate.Settings{})
	s.golden("versions", s.as(alice, 200, "GET /dns/", ""))
	s.golden("version", s.as(alice, 200, "GET /v2/", ""))

	z := s.as(alice, 202, "POST /v2/zones", `{"name":"example.org.","email":"host.master@example.org","ttl":7200,
		"description":"the first","attributes":{"tier":"gold"}}`)
	s.golden("zone_create", z)
	path := "/v2/zones/" + z.str("id")
	if got, want := z.Header().Get("Location"), "http://dns.test"+path; got != want {
		t.Errorf("Location = %q, want %q", got, want)
	}
	if z.Header().Get("ETag") == "" {
		t.Errorf("headers %v lack the entity tag", z.Header())
	}
	s.golden("zone_show", s.as(alice, 200, "GET "+path, ""))
	s.golden("zone_list", s.as(alice, 200, "GET /v2/zones", ""))
	s.golden("zone_update", s.as(alice, 202, "PATCH "+path, `{"email":"new@example.org","description":null}`))
	s.golden("zone_nameservers", s.as(alice, 200, "GET "+path+"/nameservers", ""))

	set := s.as(alice, 202, "POST "+path+"/recordsets", `{"name":"www.example.org.","type":"A","ttl":60,
		"records":["192.0.2.2","192.0.2.1"],"description":"web"}`)
	s.golden("recordset_create", set)
	one := path + "/recordsets/" + set.str("id")
	s.golden("recordset_show", s.as(alice, 200, "GET "+one, ""))
	s.golden("recordset_update", s.as(alice, 202, "PUT "+one, `{"ttl":null}`))
	s.golden("recordset_list", s.as(alice, 200, "GET "+path+"/recordsets", ""))
	s.golden("recordset_list_all", s.as(alice, 200, "GET /v2/recordsets?type=A", ""))
	s.golden("changes", s.as(alice, 200, "POST "+path+"/changes", `{"changes":[
		{"action":"create","name":"a.example.org.","type":"TXT","records":["\"x y\""]},
		{"action":"delete","name":"www.example.org.","type":"A"}]}`))
	s.golden("history", s.as(alice, 200, "GET "+path+"/history?limit=2", ""))
	s.golden("invalid", s.as(alice, 400, "POST "+path+"/recordsets",
		`{"name":"x.example.org.","type":"A","records":["192.0.2.300"]}`))
	s.golden("unknown_type", s.as(alice, 400, "POST "+path+"/recordsets",
		`{"name":"x.example.org.","type":"NOPE","records":["x"]}`))
	s.golden("unknown_key", s.as(alice, 400, "POST /v2/zones", `{"name":"x.org.","email":"a@x.org","colour":1}`))
	s.golden("not_found", s.as(alice, 404, "GET /v2/zones/00000000-0000-4000-8000-000000000000", ""))
	s.golden("recordset_delete", s.as(alice, 202,
		"DELETE "+path+"/recordsets/"+s.as(alice, 200, "GET "+path+"/recordsets?type=TXT", "").items("recordsets", "id")[0],
		""))
	s.golden("export_create", s.as(alice, 202, "POST "+path+"/tasks/export", ""))
	s.golden("transfer_request_create",
		s.as(alice, 201, "POST "+path+"/tasks/transfer_requests", `{"description":"take it"}`))
	s.golden("share_create", s.as(alice, 201, "POST "+path+"/shares", `{"target_project_id":"p2"}`))
	s.golden("share_list", s.as(alice, 200, "GET "+path+"/shares", ""))
	s.golden("zone_delete", s.as(alice, 202, "DELETE "+path, "", "X-Designate-Delete-Shares: true"))
	s.as(alice, 404, "GET "+path, "")
}

func TestGoldenAdmin(t *testing.T) {
	s := newServer(t, designate.Settings{})
	s.golden("limits", s.as(alice, 200, "GET /v2/limits", ""))
	s.golden("quotas", s.as(admin, 200, "PATCH /v2/quotas/p1", `{"zones":3}`, "X-Auth-All-Projects: true"))
	s.golden("pools", s.as(admin, 200, "GET /v2/pools", ""))
	s.golden("services", s.as(admin, 200, "GET /v2/service_statuses", ""))
	s.golden("tld_create", s.as(admin, 201, "POST /v2/tlds", `{"name":"org"}`))
	s.golden("tld_list", s.as(admin, 200, "GET /v2/tlds", ""))
	s.golden("blacklist_create", s.as(admin, 201, "POST /v2/blacklists", `{"pattern":"^bad\\.","description":"no"}`))
	s.golden("tsigkey_create", s.as(admin, 201, "POST /v2/tsigkeys", `{"name":"k1","algorithm":"hmac-sha256",
		"secret":"c2VjcmV0","scope":"POOL","resource_id":"794ccc2c-d751-44fe-b57f-8894c9f5c842"}`))
	s.golden("floatingips", s.as(admin, 200, "GET /v2/reverse/floatingips", ""))
}
