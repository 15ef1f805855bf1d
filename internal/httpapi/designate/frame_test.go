package designate_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
)

func TestFrame(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	good := `{"name":"example.net.","email":"a@example.net"}`
	tests := []struct {
		name    string
		request request
		status  int
		kind    string
	}{
		{"final slash", request{as: alice, call: "GET /v2/zones/"}, 200, ""},
		{"final slashes", request{as: alice, call: "GET " + z + "//"}, 200, ""},
		{"encoded final slash", request{as: alice, call: "DELETE " + z + "%2F"}, 400, "invalid_uuid"},
		{"encoded final slash alone", request{as: alice, call: "DELETE " + z + "/%2F"}, 404, "not_found"},
		{"unknown path", request{as: alice, call: "GET /v2/houses"}, 404, "not_found"},
		{"unknown version", request{as: alice, call: "GET /v1/zones"}, 404, "not_found"},
		{"empty segment", request{as: alice, call: "GET /v2//zones"}, 404, "not_found"},
		{"wrong method", request{as: alice, call: "PUT /v2/zones"}, 405, "method_not_allowed"},
		{"GET of a task", request{as: admin, call: "GET " + z + "/tasks/abandon"}, 405, "method_not_allowed"},
		{"no UUID", request{as: alice, call: "GET /v2/zones/example"}, 400, "invalid_uuid"},
		{"URN", request{as: alice, call: "GET /v2/zones/urn:uuid:00000000-0000-4000-8000-000000000000"}, 400, "invalid_uuid"},
		{"set no UUID", request{as: alice, call: "GET " + z + "/recordsets/x"}, 400, "invalid_uuid"},
		{"no content type", request{as: alice, call: "POST /v2/zones", body: good, headers: []string{"Content-Type: "}}, 415,
			"unsupported_content_type"},
		{"text", request{as: alice, call: "POST /v2/zones", body: good, headers: []string{"Content-Type: text/plain"}}, 415,
			"unsupported_content_type"},
		{"charset", request{as: alice, call: "POST /v2/zones", body: good,
			headers: []string{"Content-Type: application/json; charset=utf-8"}}, 202, ""},
		{"empty body", request{as: alice, call: "POST /v2/zones", body: " ", headers: nil}, 400, "empty_request_body"},
		{"broken JSON", request{as: alice, call: "POST /v2/zones", body: `{"name":`}, 400, "invalid_json"},
		{"two values", request{as: alice, call: "POST /v2/zones", body: good + good}, 400, "invalid_json"},
		{"a list", request{as: alice, call: "POST /v2/zones", body: `[]`}, 400, "invalid_json"},
		{"null", request{as: alice, call: "POST /v2/zones", body: `null`}, 400, "empty_request_body"},
		{"not UTF-8", request{as: alice, call: "POST /v2/zones", body: "{\"name\":\"\xff\"}"}, 400, "invalid_json"},
		{"deep", request{as: alice, call: "POST /v2/zones", body: strings.Repeat(`{"a":`, 200_000)}, 400, "invalid_json"},
		{"large", request{as: alice, call: "POST /v2/zones", body: `{"name":"` + strings.Repeat("x", 1<<20) + `"}`}, 413,
			"request_too_large"},
		{"duplicate keys", request{as: alice, call: "POST /v2/zones",
			body: `{"name":"x","name":"dup.test.","email":"a@dup.test"}`}, 400, "invalid_json"},
		{"duplicate keys inside", request{as: alice, call: "POST /v2/zones",
			body: `{"name":"dup.test.","email":"a@dup.test","attributes":{"a":"1","a":"2"}}`}, 400, "invalid_json"},
		{"keys that differ in case", request{as: alice, call: "POST /v2/zones",
			body: `{"name":"dup.test.","email":"a@dup.test","Name":"x"}`}, 400, "invalid_json"},
		{"reader writes", request{as: carol, call: "POST /v2/zones", body: good}, 403, "forbidden"},
		{"nobody reads", request{call: "GET /v2/zones"}, 403, "forbidden"},
		{"all projects as member", request{as: alice, call: "GET /v2/zones", headers: []string{"X-Auth-All-Projects: true"}},
			403, "forbidden"},
		{"all tenants as member", request{as: alice, call: "GET /v2/zones?all_tenants=1"}, 403, "forbidden"},
		{"sudo as member", request{as: alice, call: "GET /v2/zones", headers: []string{"X-Auth-Sudo-Project-ID: p2"}}, 403,
			"forbidden"},
		{"hard delete as member", request{as: alice, call: "DELETE " + z, headers: []string{"X-Designate-Hard-Delete: true"}},
			403, "forbidden"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.do(tt.request)
			if res.Code != tt.status || res.str("type") != tt.kind && tt.kind != "" {
				t.Errorf("%s = %d %s, want %d %s", tt.request.call, res.Code, res.Body, tt.status, tt.kind)
			}
			if tt.kind != "" && (res.str("request_id") == "" || res.json["code"] != float64(tt.status)) {
				t.Errorf("%s has the error body %s", tt.request.call, res.Body)
			}
		})
	}
	if got := s.as(alice, 405, "PUT /v2/zones", "").Header().Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow = %q", got)
	}
	if res := s.as(alice, 404, "GET /v2/houses/", ""); res.str("message") != "There is nothing at /v2/houses/" {
		t.Errorf("the message does not have the path that was asked for: %s", res.Body)
	}
	if res := s.as(alice, 200, "HEAD /v2/zones", ""); res.Header().Get("Content-Type") != "application/json" {
		t.Errorf("HEAD: %v", res.Header())
	}
}

// TestPattern checks the pattern under which the metrics of package httpapi count a request.
func TestPattern(t *testing.T) {
	s := newServer(t, designate.Settings{})
	for path, want := range map[string]string{"/v2/zones": "GET /v2/zones", "/v2/zones/": "GET /v2/zones",
		"/v2/houses": ""} {
		r := httptest.NewRequest("GET", path, nil)
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
		if r.Pattern != want {
			t.Errorf("the pattern of %s is %q, want %q", path, r.Pattern, want)
		}
	}
}

// TestRoutes checks that every route exists, and that only the version documents are open to callers without a role.
func TestRoutes(t *testing.T) {
	s := newServer(t, designate.Settings{})
	seen := map[string]bool{}
	for _, r := range designate.Routes() {
		key := r.Method + " " + r.Pattern
		if seen[key] || r.Description == "" {
			t.Errorf("%s is listed twice or not described", key)
		}
		seen[key] = true
		path := strings.NewReplacer("{", "", "}", "").Replace(r.Pattern)
		res := s.do(request{call: r.Method + " " + path})
		want := 403
		switch r.Pattern {
		case "/":
			want = 300
		case "/dns", "/v2":
			want = 200
		}
		if res.Code != want {
			t.Errorf("%s by nobody = %d %s, want %d", key, res.Code, res.Body, want)
		}
	}
}

func TestTenancy(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	set := s.set(z, "a.example.org.", "A", "192.0.2.1")
	for _, call := range []string{"GET " + z, "DELETE " + z, "GET " + set, "DELETE " + set, "GET " + z + "/history",
		"GET " + z + "/recordsets",
		"POST " + z + "/tasks/export", "GET " + z + "/nameservers", "GET " + z + "/shares"} {
		if res := s.as(bob, 404, call, ""); res.str("type") != "zone_not_found" {
			t.Errorf("%s by bob: %s", call, res.Body)
		}
		s.as(admin, 404, call, "")
	}
	s.as(bob, 404, "PATCH "+z, `{"ttl":5}`)
	s.as(bob, 404, "PUT "+set, `{"ttl":5}`)
	s.as(bob, 404, "POST "+z+"/changes", `{"changes":[]}`)
	s.as(bob, 404, "POST "+z+"/history/rollback", `{"serial":1}`)
	if got := s.as(bob, 200, "GET /v2/recordsets", "").items("recordsets", "id"); len(got) != 0 {
		t.Errorf("bob lists %q", got)
	}
	all, sudo := "X-Auth-All-Projects: true", "X-Auth-Sudo-Project-ID: p1"
	s.as(admin, 200, "GET "+z, "", all)
	s.as(admin, 200, "GET "+z, "", sudo)
	s.as(admin, 202, "PUT "+set, `{"ttl":5}`, all)
	if got := s.as(admin, 200, "GET /v2/zones", "", all).items("zones", "name"); len(got) != 1 {
		t.Errorf("admin lists %q", got)
	}
	if got := s.as(admin, 202, "POST /v2/zones", `{"name":"sudo.test.","email":"a@example.org"}`,
		sudo).str("project_id"); got != "p1" {
		t.Errorf("the zone made for p1 is in %q", got)
	}
	s.as(carol, 200, "GET "+set, "")
	s.as(carol, 403, "DELETE "+set, "")
}

func TestShares(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	share := s.as(alice, 201, "POST "+z+"/shares", `{"target_project_id":"p2"}`)
	s.as(alice, 409, "POST "+z+"/shares", `{"target_project_id":"p2"}`)
	s.as(alice, 400, "POST "+z+"/shares", `{"target_project_id":"p1"}`)
	s.as(alice, 400, "POST "+z+"/shares", `{}`)
	if res := s.as(bob, 200, "GET "+z, ""); res.json["shared"] != true {
		t.Error(res.Body)
	}
	if got := s.as(bob, 200, "GET /v2/zones", "").items("zones", "name"); len(got) != 1 {
		t.Errorf("bob lists %q", got)
	}
	s.as(bob, 202, "POST "+z+"/recordsets", `{"name":"b.example.org.","type":"A","records":["192.0.2.1"]}`)
	for _, r := range []request{{call: "PATCH " + z, body: `{"ttl":5}`}, {call: "DELETE " + z},
		{call: "GET " + z + "/shares"},
		{call: "POST " + z + "/shares", body: `{"target_project_id":"p3"}`},
		{call: "POST " + z + "/history/rollback", body: `{"serial":1}`}} {
		r.as = bob
		s.want(403, r)
	}
	one := z + "/shares/" + share.str("id")
	s.as(alice, 200, "GET "+one, "")
	s.as(alice, 204, "DELETE "+one, "")
	s.as(alice, 404, "GET "+one, "")
	s.as(bob, 404, "GET "+z, "")
}

// TestUnavailable checks that a store without writes is 503 with Retry-After.
func TestUnavailable(t *testing.T) {
	s := newServer(t, designate.Settings{})
	s.stop() // a stopped publisher refuses changes like a full disk
	res := s.as(alice, 503, "POST /v2/zones", `{"name":"a.test.","email":"a@a.test"}`)
	if res.Header().Get("Retry-After") == "" || res.str("type") != "service_unavailable" {
		t.Errorf("create = %v %s", res.Header(), res.Body)
	}
	s.as(alice, 200, "GET /v2/zones", "")
}

// TestParsedBeforeCommit sends bodies while no commit is possible. A bad body gets its own error, not 503: it is parsed
// before the commit.
func TestParsedBeforeCommit(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	set := s.set(z, "www.example.org.", "A", "192.0.2.1")
	offer := "/v2/zones/tasks/transfer_requests/" + s.as(alice, 201, "POST "+z+"/tasks/transfer_requests", "").str("id")
	tld := "/v2/tlds/" + s.as(admin, 201, "POST /v2/tlds", `{"name":"org"}`).str("id")
	list := "/v2/blacklists/" + s.as(admin, 201, "POST /v2/blacklists", `{"pattern":"bad"}`).str("id")
	key := "/v2/tsigkeys/" + s.as(admin, 201, "POST /v2/tsigkeys", `{"name":"k1","algorithm":"hmac-sha256",
		"secret":"c2VjcmV0","scope":"POOL","resource_id":"794ccc2c-d751-44fe-b57f-8894c9f5c842"}`).str("id")
	s.stop()
	for _, tt := range []struct {
		who             httpapi.Caller
		call, bad, good string
	}{
		{alice, "POST /v2/zones", `{"name":"example.net.","email":"a"}`, `{"name":"example.net.","email":"a@example.net"}`},
		{alice, "PATCH " + z, `{"email":"a"}`, `{"email":"a@example.net"}`},
		{alice, "POST " + z + "/recordsets", `{"name":"a.example.org.","type":"A","records":["192.0.2.300"]}`,
			`{"name":"a.example.org.","type":"A","records":["192.0.2.30"]}`},
		{alice, "PUT " + set, `{"records":["192.0.2.300"]}`, `{"records":["192.0.2.30"]}`},
		{alice, "POST " + z + "/changes", `{"changes":[{"action":"delete","name":"a..b.","type":"A"}]}`,
			`{"changes":[{"action":"delete","name":"a.b.","type":"A"}]}`},
		{alice, "POST " + z + "/history/rollback", `{"serial":-1}`, `{"serial":1}`},
		{alice, "POST " + z + "/shares", `{"target_project_id":"/"}`, `{"target_project_id":"p2"}`},
		{alice, "PATCH " + offer, `{"description":1}`, `{"description":"x"}`},
		{admin, "PATCH " + tld, `{"name":"a..b"}`, `{"name":"net"}`},
		{admin, "PATCH " + list, `{"pattern":"("}`, `{"pattern":"x"}`},
		{admin, "PATCH " + key, `{"secret":"?"}`, `{"secret":"c2VjcmV1"}`},
		{admin, "PATCH /v2/quotas/p0", `{"zones":"many"}`, `{"zones":1}`},
	} {
		s.as(tt.who, 400, tt.call, tt.bad)
		s.as(tt.who, 503, tt.call, tt.good)
	}
}

// TestSharesAreBounded shares zones with a project that did not ask for them. Its lists of record sets do not read
// them, and the project of the zones can share only some.
func TestSharesAreBounded(t *testing.T) {
	s := newLimitedServer(t, designate.Settings{}, quotas(func(q *publish.Quotas) { q.Zones = -1 }), nil)
	for i := range 100 {
		z := s.zone(fmt.Sprintf("z%d.example.org.", i))
		s.as(alice, 201, "POST "+z+"/shares", `{"target_project_id":"p2"}`)
	}
	last := s.zone("last.example.org.")
	if res := s.as(alice, 413, "POST "+last+"/shares", `{"target_project_id":"p2"}`); res.str("type") != "over_quota" {
		t.Error(res.Body)
	}
	s.as(alice, 201, "POST "+last+"/shares", `{"target_project_id":"p3"}`)
	if got := s.as(bob, 200, "GET /v2/recordsets", "").items("recordsets", "name"); len(got) > 0 {
		t.Errorf("bob lists record sets that others share: %q", got)
	}
	other := s.zoneOf(carolOf("p4"), "other.example.net.")
	s.as(carolOf("p4"), 201, "POST "+other+"/shares", `{"target_project_id":"p2"}`)
}

// carolOf returns a member of a project.
func carolOf(project string) httpapi.Caller {
	return httpapi.Caller{Who: "token carol", Project: project, Roles: []string{"member"}}
}
