package designate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
)

// imports sends a zone file and waits for the end of its import.
func (s *server) imports(who httpapi.Caller, file, query string) response {
	s.t.Helper()
	res := s.want(202, request{who, "POST /v2/zones/tasks/imports" + query, file, []string{"Content-Type: text/dns"}})
	return s.finished(who, res.str("id"))
}

func (s *server) finished(who httpapi.Caller, id string) response {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		res := s.as(who, 200, "GET /v2/zones/tasks/imports/"+id, "")
		if res.str("status") != "PENDING" {
			return res
		}
		if time.Now().After(deadline) {
			s.t.Fatal("the import does not end")
		}
	}
}

const zoneText = `$ORIGIN example.org.
$TTL 300
@ 600 IN SOA ns1.example.net. host\.master.example.org. 1700000000 3600 600 86400 3600
@ 300 IN NS ns1.example.net.
@ 300 IN MX 10 mail.example.org.
\@odd\;name 300 IN TXT "a" "b\"c"
mail 60 IN A 192.0.2.1
mail 60 IN A 192.0.2.2
www 300 IN TYPE65400 \# 2 abcd
`

// TestImportExport imports a file, exports the zone and imports the export: both zones are equal.
func TestImportExport(t *testing.T) {
	s := newServer(t, designate.Settings{})
	done := s.imports(alice, zoneText, "")
	if done.str("status") != "COMPLETE" {
		t.Fatalf("import: %s", done.Body)
	}
	z := "/v2/zones/" + done.str("zone_id")
	links, _ := done.json["links"].(map[string]any)
	if self := "http://dns.test/v2/zones/tasks/imports/" + done.str("id"); links["self"] != self ||
		links["zone"] != "http://dns.test"+z {
		t.Errorf("links: %v", links)
	}
	if got := s.as(alice, 200, "GET "+z, ""); got.str("email") != "host.master@example.org" || got.json["ttl"] != 300.0 {
		t.Errorf("zone: %s", got.Body)
	}
	file := s.file(z)
	s.as(alice, 202, "DELETE "+z, "")
	again := s.imports(alice, file, "")
	if diff := cmp.Diff(file, s.file("/v2/zones/"+again.str("zone_id"))); diff != "" {
		t.Errorf("export, import, export: %s", diff)
	}
	if !strings.Contains(file, " 1700000000 ") || strings.Count(file, "\n") != strings.Count(zoneText, "\n") {
		t.Errorf("exported\n%s", file)
	}
	s.as(alice, 204, "DELETE /v2/zones/tasks/imports/"+done.str("id"), "")
	s.as(alice, 404, "GET /v2/zones/tasks/imports/"+done.str("id"), "")
	if got := s.as(alice, 200, "GET /v2/zones/tasks/imports?status=COMPLETE", "").items("imports", "id"); len(got) != 1 {
		t.Errorf("imports: %q", got)
	}
}

func TestImportFailures(t *testing.T) {
	s := newLimitedServer(t, designate.Settings{}, quotas(func(q *publish.Quotas) { q.ZoneRecordsets = 3 }), nil)
	s.zoneOf(bob, "bob.test.")
	soa := " 60 IN SOA ns1.example.net. a.example.org. 1 2 3 4 5\n"
	tests := []struct{ name, file, message string }{
		{"no SOA", "$ORIGIN example.org.\n@ 60 IN NS ns1.example.net.\n", "no SOA"},
		{"empty", "", "no SOA"},
		{"no NS", "example.org." + soa, "no NS"},
		{"syntax", "example.org." + soa + "example.org. 60 IN A 192.0.2.300\n", "2:"},
		{"outside", "example.org." + soa + "example.org. 60 IN NS a.test.\nexample.net. 60 IN A 192.0.2.1\n", "not in zone"},
		{"two SOA", "example.org." + soa + "example.org. 60 IN SOA a. b. 1 2 3 4 5\nexample.org. 60 IN NS a.test.\n", "SOA"},
		{"include", "$INCLUDE /etc/passwd\n", "1:"},
		{"exists", "bob.test." + soa + "bob.test. 60 IN NS a.test.\n", "Duplicate Zone"},
		{"in another's", "x.bob.test." + soa + "x.bob.test. 60 IN NS a.test.\n", "another tenant"},
		{"one label", "test." + soa + "test. 60 IN NS a.test.\n", "label"},
		{"quota", zoneText, "Quota exceeded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.imports(alice, tt.file, "?replace=true")
			if res.str("status") != "ERROR" || !strings.Contains(res.str("message"), tt.message) {
				t.Errorf("import = %s, want an error about %q", res.Body, tt.message)
			}
			if links, _ := res.json["links"].(map[string]any); links["zone"] != nil {
				t.Errorf("a failed import has a link to the zone %s", links["zone"])
			}
		})
	}
	if res := s.imports(admin, zoneText, ""); res.str("status") != "COMPLETE" {
		t.Errorf("the quota stopped an administrator: %s", res.Body)
	}
	if got := s.as(alice, 200, "GET /v2/zones", "").items("zones", "name"); len(got) != 0 {
		t.Errorf("failed imports left %q", got)
	}
	res := s.do(request{alice, "POST /v2/zones/tasks/imports", "x", []string{"Content-Type: text/plain"}})
	if res.Code != 415 {
		t.Errorf("text/plain = %d", res.Code)
	}
}

func TestImportReplace(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	s.set(z, "old.example.org.", "A", "192.0.2.1")
	kept := s.set(z, "mail.example.org.", "A", "192.0.2.9")
	if res := s.imports(alice, zoneText, ""); !strings.Contains(res.str("message"), "Duplicate Zone") {
		t.Errorf("import of an existing zone: %s", res.Body)
	}
	before := s.serial(z)
	if res := s.imports(alice, zoneText, "?replace=true"); res.str("status") != "COMPLETE" {
		t.Fatalf("replace: %s", res.Body)
	}
	file := s.file(z)
	if strings.Contains(file, "old") || !strings.Contains(file, "mail 60 IN A 192.0.2.2\n") || s.serial(z) == before {
		t.Errorf("replaced, serial %s after %s:\n%s", s.serial(z), before, file)
	}
	s.as(alice, 200, "GET "+kept, "")
}

func TestImportJSON(t *testing.T) {
	s := newServer(t, designate.Settings{})
	b, _ := json.Marshal(map[string]any{"zonefile": zoneText, "attributes": map[string]string{"tier": "gold"}})
	res := s.finished(alice, s.as(alice, 202, "POST /v2/zones/tasks/imports", string(b)).str("id"))
	if res.str("status") != "COMPLETE" {
		t.Fatal(res.Body)
	}
	if got := s.as(alice, 200, "GET /v2/zones/"+res.str("zone_id"),
		"").json["attributes"]; cmp.Diff(map[string]any{"tier": "gold"}, got) != "" {
		t.Errorf("attributes %v", got)
	}
	s.as(alice, 400, "POST /v2/zones/tasks/imports", `{}`)
	s.as(alice, 400, "POST /v2/zones/tasks/imports", `{"zonefile":5}`)
	s.as(alice, 400, "POST /v2/zones/tasks/imports", `{"zonefile":"","x":1}`)
}

// TestTransfer offers a zone to another project, which accepts it.
func TestTransfer(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	req := s.as(alice, 201, "POST "+z+"/tasks/transfer_requests", "")
	if len(req.str("key")) != 8 || strings.Trim(req.str("key"), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		t.Errorf("key %q", req.str("key"))
	}
	s.as(alice, 409, "POST "+z+"/tasks/transfer_requests", "{}")
	one := "/v2/zones/tasks/transfer_requests/" + req.str("id")
	if res := s.as(bob, 200, "GET "+one, ""); res.str("key") != "" || res.str("project_id") != "" {
		t.Errorf("bob sees %s", res.Body)
	}
	s.as(alice, 200, "PATCH "+one, `{"description":"new"}`)
	s.as(alice, 400, "PATCH "+one, `{"key":"AAAAAAAA"}`)
	s.as(bob, 403, "PATCH "+one, `{"description":"mine"}`)
	accept := func(key string) string {
		return `{"key":"` + key + `","zone_transfer_request_id":"` + req.str("id") + `"}`
	}
	if res := s.as(bob, 403, "POST /v2/zones/tasks/transfer_accepts",
		accept("WRONGKEY")); res.str("type") != "invalid_key" {
		t.Error(res.Body)
	}
	s.as(bob, 400, "POST /v2/zones/tasks/transfer_accepts", `{"key":"x"}`)
	done := s.as(bob, 201, "POST /v2/zones/tasks/transfer_accepts", accept(req.str("key")))
	s.golden("transfer_accept_create", done)
	s.as(bob, 400, "POST /v2/zones/tasks/transfer_accepts", accept(req.str("key")))
	s.as(alice, 404, "GET "+z, "")
	s.as(bob, 200, "GET "+z, "")
	s.as(bob, 200, "GET /v2/zones/tasks/transfer_accepts/"+done.str("id"), "")
	s.as(alice, 404, "GET /v2/zones/tasks/transfer_accepts/"+done.str("id"), "")
	if got := s.as(alice, 200, "GET /v2/zones/tasks/transfer_requests?status=COMPLETE", "").items("transfer_requests",
		"id"); len(got) != 1 {
		t.Errorf("requests: %q", got)
	}
	s.as(alice, 204, "DELETE "+one, "")

	z = s.zone("example.net.")
	req = s.as(alice, 201, "POST "+z+"/tasks/transfer_requests", `{"target_project_id":"p9"}`)
	s.as(bob, 403, "POST /v2/zones/tasks/transfer_accepts", accept(req.str("key")))
	s.as(alice, 202, "DELETE "+z, "")
	s.as(alice, 404, "GET /v2/zones/tasks/transfer_requests/"+req.str("id"), "")
}

func TestOtherTasks(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	s.as(alice, 400, "POST "+z+"/tasks/xfr", "")
	s.as(alice, 403, "POST "+z+"/tasks/pool_move", "")
	s.as(admin, 400, "POST "+z+"/tasks/pool_move", "{}", "X-Auth-All-Projects: true") // the default pool has the zone
	s.as(alice, 403, "POST "+z+"/tasks/abandon", "")
	s.as(admin, 204, "POST "+z+"/tasks/abandon", "", "X-Auth-All-Projects: true")
	s.as(alice, 404, "GET "+z, "")
	s.as(alice, 400, "GET /v2/reverse/floatingips/x", "")
	s.as(alice, 404, "GET /v2/reverse/floatingips/r:00000000-0000-4000-8000-000000000000", "")
	s.as(alice, 404, "PATCH /v2/reverse/floatingips/r:00000000-0000-4000-8000-000000000000", `{"ptrdname":null}`)
	pool := s.as(admin, 200, "GET /v2/pools", "").items("pools", "id")[0]
	s.as(admin, 200, "GET /v2/pools/"+pool, "")
	service := s.as(admin, 200, "GET /v2/service_statuses?status=UP", "").items("service_statuses", "id")[0]
	s.as(admin, 200, "GET /v2/service_statuses/"+service, "")
}

func TestTSIGKeys(t *testing.T) {
	s := newServer(t, designate.Settings{})
	good := `{"name":"k1","algorithm":"hmac-sha256","secret":"c2VjcmV0","scope":"POOL",` +
		`"resource_id":"794ccc2c-d751-44fe-b57f-8894c9f5c842"}`
	id := s.as(admin, 201, "POST /v2/tsigkeys", good).str("id")
	s.as(admin, 409, "POST /v2/tsigkeys", good)
	for _, swap := range [][2]string{{"hmac-sha256", "rot13"}, {"c2VjcmV0", "!"}, {"POOL", "MOON"}, {"794ccc2c-", ""},
		{`"name":"k1",`, ""}, {"k1", "k 1"}} {
		s.as(admin, 400, "POST /v2/tsigkeys", strings.Replace(good, swap[0], swap[1], 1))
	}
	if res := s.as(admin, 200, "PATCH /v2/tsigkeys/"+id, `{"name":"k2"}`); res.str("name") != "k2" ||
		res.str("secret") != "c2VjcmV0" {
		t.Error(res.Body)
	}
	s.as(admin, 204, "DELETE /v2/tsigkeys/"+id, "")
	s.as(alice, 403, "POST /v2/tsigkeys", good)
}

// TestTSIGKeyOfAZone checks the zones and the limits of a key, and that a key is deleted with its last zone.
func TestTSIGKeyOfAZone(t *testing.T) {
	s := newServer(t, designate.Settings{})
	create := func(name string) string {
		return s.as(alice, 202, "POST /v2/zones", `{"name":"`+name+`","email":"a@example.org"}`).str("id")
	}
	one, two := create("one.example."), create("two.example.")
	const none = "00000000-0000-4000-8000-000000000000"
	body := func(name, scope, resource, more string) string {
		return fmt.Sprintf(`{"name":%q,"algorithm":"hmac-sha256","secret":"c2VjcmV0","scope":%q,"resource_id":%q%s}`, name,
			scope, resource, more)
	}
	for what, in := range map[string]string{
		"no such zone":          body("k", "ZONE", none, ""),
		"no such zone of two":   body("k", "POOL", none, `,"zones":["`+one+`","`+none+`"]`),
		"zones of a zone":       body("k", "ZONE", one, `,"zones":["`+two+`"]`),
		"a zone that is no id":  body("k", "POOL", none, `,"zones":["one.example."]`),
		"two asterisks":         body("k", "ZONE", one, `,"names":["*.a.*"]`),
		"an empty name":         body("k", "ZONE", one, `,"names":[""]`),
		"no type":               body("k", "ZONE", one, `,"types":["KING"]`),
		"a type without data":   body("k", "ZONE", one, `,"types":["ANY"]`),
		"a list that is a text": body("k", "ZONE", one, `,"types":"A"`),
		"too many names":        body("k", "ZONE", one, `,"names":["a"`+strings.Repeat(`,"a"`, 100)+`]`),
	} {
		if res := s.as(admin, 400, "POST /v2/tsigkeys", in); !strings.Contains(res.Body.String(), "invalid_object") {
			t.Errorf("%s: %s", what, res.Body)
		}
	}
	first := s.as(admin, 201, "POST /v2/tsigkeys", body("first", "ZONE", one,
		`,"names":["_acme-challenge.*"],"types":["TXT"]`)).str("id")
	both := s.as(admin, 201, "POST /v2/tsigkeys", body("both", "POOL", none, `,"zones":["`+one+`","`+two+`"]`)).str("id")
	s.as(admin, 201, "POST /v2/tsigkeys", body("all", "POOL", none, ""))
	s.as(admin, 400, "PATCH /v2/tsigkeys/"+first, `{"resource_id":"`+none+`"}`)
	if res := s.as(admin, 200, "PATCH /v2/tsigkeys/"+first, `{"types":["TXT","A"]}`); !strings.Contains(res.Body.String(),
		`"_acme-challenge.*"`) || !strings.Contains(res.Body.String(), `"A"`) {
		t.Errorf("after a change of the types: %s", res.Body)
	}
	if res := s.as(admin, 200, "PATCH /v2/tsigkeys/"+first, `{"names":[]}`); strings.Contains(res.Body.String(), "names") {
		t.Errorf("after the names were removed: %s", res.Body)
	}
	s.as(alice, 202, "DELETE /v2/zones/"+one, "")
	s.as(admin, 404, "GET /v2/tsigkeys/"+first, "")
	if res := s.as(admin, 200, "GET /v2/tsigkeys/"+both, ""); strings.Contains(res.Body.String(), one) ||
		!strings.Contains(res.Body.String(), two) {
		t.Errorf("after the first of two zones was deleted: %s", res.Body)
	}
	s.as(alice, 202, "DELETE /v2/zones/"+two, "")
	if names := s.as(admin, 200, "GET /v2/tsigkeys", "").items("tsigkeys", "name"); len(names) != 1 || names[0] != "all" {
		t.Errorf("keys after both zones were deleted: %v", names)
	}
}

// TestImportsOfOthersDoNotWait lets a hostile project use its share of the memory and import a file that must wait for
// more. Imports of other projects must not wait with it.
func TestImportsOfOthersDoNotWait(t *testing.T) {
	b := budget.New(64 << 20)
	s := newLimitedServer(t, designate.Settings{}, publish.DefaultQuotas(), b)
	release, err := b.Take(t.Context(), alice.Project, 9<<20) // like a request whose body arrives slowly
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	file := strings.ReplaceAll(zoneText, "example.org.", "alice.example.")
	for i := range 4000 {
		file += fmt.Sprintf("n%d 300 IN TXT \"%s\"\n", i, strings.Repeat("x", 200))
	}
	held := s.want(202, request{alice, "POST /v2/zones/tasks/imports", file, []string{"Content-Type: text/dns"}})
	if done := s.imports(bob, strings.ReplaceAll(zoneText, "example.org.", "bob.example."),
		""); done.str("status") != "COMPLETE" {
		t.Errorf("the import of another project: %s", done.Body)
	}
	if res := s.as(alice, 200, "GET /v2/zones/tasks/imports/"+held.str("id"), ""); res.str("status") != "PENDING" {
		t.Errorf("the import that must wait: %s", res.Body)
	}
}
