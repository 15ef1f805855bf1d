package designate_test

import (
	"fmt"
	"net/netip"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/transfer"
)

// wantStatus checks the status and the action of a zone or record set in a reply.
func wantStatus(t *testing.T, what string, res response, status, action string) {
	t.Helper()
	if res.str("status") != status || res.str("action") != action {
		t.Errorf("%s: %s %s, want %s %s", what, res.str("status"), res.str("action"), status, action)
	}
}

// TestPending checks that the reply to each change of a zone or record set is 202 and PENDING with the action, and that
// a server without secondaries shows the result to the next read.
func TestPending(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.as(alice, 202, "POST /v2/zones", `{"name":"example.org.","email":"a@example.org"}`)
	wantStatus(t, "create a zone", z, "PENDING", "CREATE")
	path := "/v2/zones/" + z.str("id")
	read := s.as(alice, 200, "GET "+path, "")
	wantStatus(t, "read the zone", read, "ACTIVE", "NONE")
	if z.Header().Get("Location") != "http://dns.test"+path || z.Header().Get("ETag") != read.Header().Get("ETag") {
		t.Errorf("create a zone: headers %v", z.Header())
	}
	changed := s.as(alice, 202, "PATCH "+path, `{"ttl":60}`)
	wantStatus(t, "change the zone", changed, "PENDING", "UPDATE")
	read = s.as(alice, 200, "GET "+path, "")
	wantStatus(t, "read the changed zone", read, "ACTIVE", "NONE")
	if changed.json["serial"] != read.json["serial"] || changed.json["ttl"] != 60.0 ||
		changed.Header().Get("ETag") != read.Header().Get("ETag") {
		t.Errorf("change the zone: %s, then %s", changed.Body, read.Body)
	}

	set := s.as(alice, 202, "POST "+path+"/recordsets", `{"name":"www.example.org.","type":"A","records":["192.0.2.1"]}`)
	wantStatus(t, "create a record set", set, "PENDING", "CREATE")
	one := path + "/recordsets/" + set.str("id")
	read = s.as(alice, 200, "GET "+one, "")
	wantStatus(t, "read the record set", read, "ACTIVE", "NONE")
	if set.Header().Get("Location") != "http://dns.test"+one || set.Header().Get("ETag") != read.Header().Get("ETag") {
		t.Errorf("create a record set: headers %v", set.Header())
	}
	put := s.as(alice, 202, "PUT "+one, `{"ttl":60}`, "If-Match: "+set.Header().Get("ETag"))
	wantStatus(t, "change the record set", put, "PENDING", "UPDATE")
	wantStatus(t, "read the changed record set", s.as(alice, 200, "GET "+one, ""), "ACTIVE", "NONE")
	// the whole object of the reply, with its status
	s.as(alice, 202, "PUT "+one, strings.Replace(put.Body.String(), `"ttl":60`, `"ttl":90`, 1))
	wantStatus(t, "delete the record set", s.as(alice, 202, "DELETE "+one, ""), "PENDING", "DELETE")
	s.as(alice, 404, "GET "+one, "")
	wantStatus(t, "delete the zone", s.as(alice, 202, "DELETE "+path, ""), "PENDING", "DELETE")
	s.as(alice, 404, "GET "+path, "")
}

// TestRecordSetStatus checks that a record set is PENDING until all secondaries have its last change, and ERROR when
// one lacks it for long. Record sets without changes stay ACTIVE.
func TestRecordSetStatus(t *testing.T) {
	s, w := newPeersServer(t)
	z := s.zone("example.org.")
	old := s.set(z, "old.example.org.", "A", "192.0.2.1")
	made, changed := s.set(z, "made.example.org.", "A", "192.0.2.1"), s.set(z, "changed.example.org.", "A", "192.0.2.1")
	s.as(alice, 202, "PUT "+changed, `{"ttl":60}`)
	from, err := time.Parse("2006-01-02T15:04:05", s.as(alice, 200, "GET "+made, "").str("created_at"))
	if err != nil {
		t.Fatal(err)
	}
	secondary := func(addr string) transfer.Secondary {
		return transfer.Secondary{Addr: transfer.Remote{AddrPort: netip.MustParseAddrPort(addr)}}
	}
	has := transfer.Progress{Secondary: secondary("192.0.2.1:53"), InSync: true}
	lacks := transfer.Progress{Secondary: secondary("192.0.2.2:53"), Since: time.Now(), From: from}
	late := lacks
	late.Since = time.Now().Add(-time.Hour)
	unknown := lacks
	unknown.From = time.Time{}
	tests := []struct {
		name               string
		progress           []transfer.Progress
		old, made, changed string
	}{
		{"no secondaries", nil, "ACTIVE NONE", "ACTIVE NONE", "ACTIVE NONE"},
		{"all have it", []transfer.Progress{has, has}, "ACTIVE NONE", "ACTIVE NONE", "ACTIVE NONE"},
		{"one lacks it", []transfer.Progress{has, lacks}, "ACTIVE NONE", "PENDING CREATE", "PENDING UPDATE"},
		{"one lacks it for long", []transfer.Progress{lacks, late}, "ACTIVE NONE", "ERROR CREATE", "ERROR UPDATE"},
		{"one is not known", []transfer.Progress{unknown}, "PENDING CREATE", "PENDING CREATE", "PENDING UPDATE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.progress = tt.progress
			for path, want := range map[string]string{old: tt.old, made: tt.made, changed: tt.changed} {
				status, action, _ := strings.Cut(want, " ")
				res := s.as(alice, 200, "GET "+path, "")
				wantStatus(t, res.str("name"), res, status, action)
				for _, list := range []string{z + "/recordsets", "/v2/recordsets"} {
					found := s.as(alice, 200, "GET "+list+"?type=A&status="+status, "").items("recordsets", "name")
					if !strings.Contains(strings.Join(found, " "), res.str("name")) {
						t.Errorf("GET %s: %s are %s, without %s", list, found, status, res.str("name"))
					}
				}
			}
			name := strings.ReplaceAll(tt.name, " ", "-") + ".test."
			wantStatus(t, "a new zone", s.as(alice, 202, "POST /v2/zones", `{"name":"`+name+`","email":"a@example.org"}`),
				"PENDING", "CREATE")
		})
	}
	// The entity tag of a PENDING set is valid for changes after the set is ACTIVE, but the two representations differ.
	w.progress = []transfer.Progress{lacks}
	tag := s.as(alice, 200, "GET "+made, "").Header().Get("ETag")
	w.progress = nil
	s.as(alice, 200, "GET "+made, "", "If-None-Match: "+tag)
	s.as(alice, 202, "PUT "+made, `{"ttl":60}`, "If-Match: "+tag)
	s.as(alice, 412, "PUT "+made, `{"ttl":70}`, "If-Match: "+tag)
}

// TestDeletedStatus checks that a deleted record set is shown as PENDING until all secondaries have the deletion, and
// as ERROR when one lacks it for long. As in Designate, lists do not have it, and its name is free at once. A deleted
// zone is gone at once.
func TestDeletedStatus(t *testing.T) {
	s, w := newPeersServer(t)
	z := s.zone("example.org.")
	old, gone := s.set(z, "old.example.org.", "A", "192.0.2.1"), s.set(z, "www.example.org.", "A", "192.0.2.1")
	created, err := time.Parse("2006-01-02T15:04:05.000000", s.as(alice, 200, "GET "+gone, "").str("created_at"))
	if err != nil {
		t.Fatal(err)
	}
	s.as(alice, 202, "DELETE "+old, "")
	s.as(alice, 202, "DELETE "+gone, "")
	s.as(alice, 404, "GET "+gone, "") // there are no secondaries
	again := s.set(z, "www.example.org.", "A", "192.0.2.2")

	lacks := transfer.Progress{Since: time.Now(), From: created}
	w.progress = []transfer.Progress{{InSync: true}, lacks}
	res := s.as(alice, 200, "GET "+gone, "")
	wantStatus(t, "a secondary lacks the deletion", res, "PENDING", "DELETE")
	if res.str("name") != "www.example.org." || len(res.Header().Values("ETag")) > 0 {
		t.Errorf("the deleted set is %s with the headers %v", res.Body, res.Header())
	}
	s.as(alice, 404, "GET "+z+"/recordsets/"+none, "")
	s.as(bob, 404, "GET "+gone, "")
	s.as(alice, 404, "PUT "+gone, `{"ttl":60}`)
	s.as(alice, 404, "DELETE "+gone, "")
	for _, list := range []string{z + "/recordsets?type=A", "/v2/recordsets?type=A", z + "/recordsets?type=A&status=*"} {
		res := s.as(alice, 200, "GET "+list, "")
		ids := res.items("recordsets", "id")
		if len(ids) != 1 || !strings.HasSuffix(again, ids[0]) || res.json["metadata"].(map[string]any)["total_count"] != 1.0 {
			t.Errorf("GET %s: %s, want only %s", list, res.Body, again)
		}
	}
	s.as(alice, 400, "GET "+z+"/recordsets?marker="+path.Base(gone), "") // a list never had it

	w.progress[1].Since = time.Now().Add(-time.Hour)
	wantStatus(t, "a secondary lacks the deletion for long", s.as(alice, 200, "GET "+gone, ""), "ERROR", "DELETE")
	w.progress[1].From = time.Time{}
	wantStatus(t, "what a secondary lacks is not known", s.as(alice, 200, "GET "+gone, ""), "ERROR", "DELETE")
	w.progress[1].From = time.Now().Add(time.Minute)
	s.as(alice, 404, "GET "+gone, "") // the secondary has the deletion, and lacks a later change
	w.progress[1].From = created

	old = s.set(z, "old.example.org.", "A", "192.0.2.3") // its name is free while the deletion is PENDING
	s.as(alice, 409, "POST "+z+"/recordsets", `{"name":"old.example.org.","type":"A","records":["192.0.2.4"]}`)
	wantStatus(t, "a new set with the name of a deleted one", s.as(alice, 200, "GET "+old, ""), "ERROR", "CREATE")

	for i := range 1_001 { // more changes than are searched
		s.as(alice, 202, "PUT "+again, fmt.Sprintf(`{"ttl":%d}`, 1+i))
	}
	s.as(alice, 404, "GET "+gone, "")
	wantStatus(t, "delete the zone", s.as(alice, 202, "DELETE "+z, ""), "PENDING", "DELETE")
	s.as(alice, 404, "GET "+z, "")
}

// TestErrors checks types and texts of errors against those of Designate.
func TestErrors(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	s.as(alice, 201, "POST "+z+"/shares", `{"target_project_id":"p2"}`)
	s.as(alice, 201, "POST "+z+"/tasks/transfer_requests", "")
	s.as(admin, 201, "POST /v2/blacklists", `{"pattern":"^bad"}`)
	key := `{"name":"k","algorithm":"hmac-sha256","secret":"c2VjcmV0","scope":"POOL","resource_id":"` + none + `"}`
	s.as(admin, 201, "POST /v2/tsigkeys", key)
	tests := []struct {
		as            httpapi.Caller
		call, body    string
		status        int
		kind, message string
	}{
		{alice, "GET /v2/zones/foo", "", 400, "invalid_uuid", "Invalid UUID zone_id: foo"},
		{alice, "GET " + z + "/recordsets/foo", "", 400, "invalid_uuid", "Invalid UUID recordset_id: foo"},
		{alice, "GET " + z + "/shares/foo", "", 400, "invalid_uuid", "Invalid UUID zone_share_id: foo"},
		{alice, "GET /v2/zones/tasks/exports/foo", "", 400, "invalid_uuid", "Invalid UUID export_id: foo"},
		{alice, "DELETE /v2/zones/tasks/exports/foo", "", 400, "invalid_uuid", "Invalid UUID zone_export_id: foo"},
		{alice, "GET /v2/zones/tasks/imports/foo", "", 400, "invalid_uuid", "Invalid UUID import_id: foo"},
		{alice, "DELETE /v2/zones/tasks/imports/foo", "", 400, "invalid_uuid", "Invalid UUID zone_import_id: foo"},
		{alice, "GET /v2/zones/tasks/transfer_requests/foo", "", 400, "invalid_uuid",
			"Invalid UUID zone_transfer_request_id: foo"},
		{alice, "GET /v2/zones/tasks/transfer_accepts/foo", "", 400, "invalid_uuid", "Invalid UUID transfer_accept_id: foo"},
		{admin, "GET /v2/tlds/foo", "", 400, "invalid_uuid", "Invalid UUID tld_id: foo"},
		{admin, "GET /v2/blacklists/foo", "", 400, "invalid_uuid", "Invalid UUID blacklist_id: foo"},
		{admin, "GET /v2/tsigkeys/foo", "", 400, "invalid_uuid", "Invalid UUID tsigkey_id: foo"},
		{admin, "GET /v2/service_statuses/foo", "", 400, "invalid_uuid", "Invalid UUID service_id: foo"},

		{alice, "GET /v2/zones/" + none, "", 404, "zone_not_found", "Could not find Zone"},
		{alice, "GET " + z + "/recordsets/" + none, "", 404, "recordset_not_found", "Could not find RecordSet"},
		{alice, "GET " + z + "/shares/" + none, "", 404, "shared_zone_not_found", "Could not find SharedZone"},
		{alice, "GET /v2/zones/tasks/exports/" + none, "", 404, "zone_export_not_found", "Could not find ZoneExport"},
		{alice, "GET /v2/zones/tasks/imports/" + none, "", 404, "zone_import_not_found", "Could not find ZoneImport"},
		{alice, "GET /v2/zones/tasks/transfer_requests/" + none, "", 404, "zone_transfer_request_not_found",
			"Could not find ZoneTransferRequest"},
		{alice, "GET /v2/zones/tasks/transfer_accepts/" + none, "", 404, "zone_transfer_accept_not_found",
			"Could not find ZoneTransferAccept"},
		{admin, "GET /v2/tlds/" + none, "", 404, "tld_not_found", "Could not find Tld"},
		{admin, "GET /v2/blacklists/" + none, "", 404, "blacklist_not_found", "Could not find Blacklist"},
		{admin, "GET /v2/tsigkeys/" + none, "", 404, "tsigkey_not_found", "Could not find TsigKey"},
		{admin, "GET /v2/service_statuses/" + none, "", 404, "service_status_not_found", "Could not find ServiceStatus"},
		{alice, "GET /v2/reverse/floatingips/RegionOne:" + none, "", 404, "not_found",
			"FloatingIP " + none + ` in RegionOne is not associated for project "p1"`},
		{alice, "GET /v2/reverse/floatingips/foo", "", 400, "bad_request",
			"Floating IP foo is not in the format of <region>:<uuid>"},

		{alice, "POST /v2/zones", `{"name":"example.org.","email":"a@example.org"}`, 409, "duplicate_zone", "Duplicate Zone"},
		{alice, "POST " + z + "/recordsets", `{"name":"example.org.","type":"NS","records":["ns.example.net."]}`, 409,
			"duplicate_recordset", "Duplicate RecordSet"},
		{alice, "POST " + z + "/shares", `{"target_project_id":"p2"}`, 409, "duplicate_shared_zone", "Duplicate SharedZone"},
		{alice, "POST " + z + "/tasks/transfer_requests", "", 409, "duplicate_zone_transfer_request",
			"Duplicate ZoneTransferRequest"},
		{admin, "POST /v2/blacklists", `{"pattern":"^bad"}`, 409, "duplicate_blacklist", "Duplicate Blacklist"},
		{admin, "POST /v2/tsigkeys", key, 409, "duplicate_tsigkey", "Duplicate TsigKey"},

		{alice, "POST /v2/zones", `null`, 400, "empty_request_body", "Request Body is empty"},
		{alice, "POST /v2/zones", ` `, 400, "empty_request_body", "Request Body is empty"},
		{alice, "POST /v2/zones", `{"name":"x.test.","colour":1}`, 400, "invalid_object",
			"Provided object does not match schema.  Keys ['colour'] are not valid for zone"},
		{alice, "GET /v2/zones?limit=0", "", 400, "invalid_limit", "limit should be an integer between 1 and 1000"},
		{alice, "GET /v2/zones?sort_dir=up", "", 400, "invalid_sort_dir", "Unknown sort direction, must be 'desc' or 'asc'"},
		{alice, "GET " + z + "/shares?sort_key=x", "", 400, "invalid_sort_key",
			"sort key must be one of ['created_at', 'id', 'updated_at', 'target_project_id']"},
		{alice, "GET /v2/zones?marker=" + none, "", 400, "marker_not_found", "Marker " + none + " could not be found"},
		{alice, "GET /v2/zones?colour=1", "", 400, "bad_request", "Invalid filters colour"},
		{alice, "GET /v2/zones?colour=1&name=x&name=y", "", 400, "bad_request", "Duplicate filters name"},
		{alice, "POST " + z + "/recordsets", `{"name":"www.example.net.","type":"A","records":["192.0.2.1"]}`, 400,
			"invalid_recordset_location", "RecordSet is not contained within it's parent zone"},
		{alice, "DELETE " + z, "", 400, "zone_is_shared", "This zone is shared with other projects, please remove these " +
			"shares before deletion or use the delete-shares modifier to override this warning."},
	}
	for _, tt := range tests {
		res := s.do(request{as: tt.as, call: tt.call, body: tt.body})
		if res.Code != tt.status || res.str("type") != tt.kind || res.str("message") != tt.message {
			t.Errorf("%s %s = %d %s, want %d %s %q", tt.call, tt.body, res.Code, res.Body, tt.status, tt.kind, tt.message)
		}
	}
}

// none is an id that nothing has.
const none = "00000000-0000-4000-8000-000000000000"

// TestAccept checks that only an Accept header that excludes the reply is refused.
func TestAccept(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	file := "/v2/zones/tasks/exports/" + s.as(alice, 202, "POST "+z+"/tasks/export", "").str("id") + "/export"
	for _, tt := range []struct {
		accept     string
		json, text int
	}{
		{"*/*", 200, 200}, {"application/json", 200, 406}, {"application/*;q=0.1", 200, 406}, {"text/dns", 406, 200},
		{"text/*, application/json", 200, 200}, {"text/html", 406, 406}, {"text/html, */*;q=0.1", 200, 200},
		{"application/json;q=0, */*", 406, 200}, {"*/*;q=0", 406, 406}, {"nonsense", 200, 200}, {"a/b/c", 200, 200},
		{"", 200, 200},
	} {
		res := s.as(alice, tt.json, "GET "+z, "", "Accept: "+tt.accept)
		if tt.json == 406 && res.str("type") != "unsupported_accept" {
			t.Errorf("Accept: %s: %s", tt.accept, res.Body)
		}
		s.as(alice, tt.text, "GET "+file, "", "Accept: "+tt.accept)
	}
	s.as(alice, 406, "POST /v2/zones", `{"name":"x.test.","email":"a@x.test"}`, "Accept: text/html")
	s.as(alice, 202, "POST /v2/zones", `{"name":"x.test.","email":"a@x.test"}`) // nothing was created before
	s.as(alice, 200, "GET /dns", "", "Accept: text/html")
}

// TestListForm checks the order of the members of a list and of the parameters of its links.
func TestListForm(t *testing.T) {
	s := newServer(t, designate.Settings{})
	for _, name := range []string{"a.test.", "b.test.", "c.test."} {
		s.zone(name)
	}
	res := s.as(alice, 200, "GET /v2/zones?sort_key=name&limit=1&name=*.test.", "")
	body := res.Body.String()
	zones, metadata := strings.Index(body, `"zones":`), strings.Index(body, `"metadata":`)
	links := strings.Index(body, `"links":{"self":"http://dns.test/v2/zones?`)
	if zones != 1 || links < zones || metadata < links {
		t.Errorf("members in another order: %s", body)
	}
	last := res.items("zones", "id")[0]
	next, _ := res.json["links"].(map[string]any)["next"].(string)
	if want := "http://dns.test/v2/zones?sort_key=name&limit=1&name=%2A.test.&marker=" + last; next != want {
		t.Errorf("next = %s, want %s", next, want)
	}
	res = s.as(alice, 200, "GET "+strings.TrimPrefix(next, "http://dns.test"), "")
	second := res.items("zones", "id")[0]
	next, _ = res.json["links"].(map[string]any)["next"].(string)
	if want := "http://dns.test/v2/zones?sort_key=name&limit=1&name=%2A.test.&marker=" + second; next != want {
		t.Errorf("next of the second page = %s, want %s", next, want)
	}
	res = s.as(alice, 200, "GET /v2/zones", "", "OpenStack-DNS-Hide-Counts: true")
	if !strings.Contains(res.Body.String(), `"metadata":{}`) {
		t.Errorf("without counts: %s", res.Body)
	}
}

// TestVersionChoices checks the versions of all services in the form of Keystone.
func TestVersionChoices(t *testing.T) {
	s := newServer(t, designate.Settings{})
	s.api.Identity = func(base string) any { return map[string]string{"id": "v3.14", "base": base} }
	s.golden("version_choices", s.as(httpapi.Caller{}, 300, "GET /", ""))
}

// TestRights checks what Designate's policies allow and forbid to members and administrators.
func TestRights(t *testing.T) {
	s := newServer(t, designate.Settings{})
	s.api.HasProject = func(id string) bool { return id == "p1" }
	s.as(alice, 403, "GET /v2/service_statuses", "")
	id := s.as(admin, 200, "GET /v2/service_statuses", "").items("service_statuses", "id")[0]
	s.as(alice, 403, "GET /v2/service_statuses/"+id, "")
	s.as(admin, 200, "GET /v2/service_statuses/"+id, "")
	s.as(alice, 403, "GET /v2/zones/tasks/transfer_accepts", "")

	s.as(admin, 403, "PATCH /v2/quotas/p1", `{"zones":3}`)
	s.as(admin, 200, "PATCH /v2/quotas/p1", `{"zones":3}`, "X-Auth-All-Projects: true")
	res := s.as(admin, 400, "PATCH /v2/quotas/nobody", `{"zones":3}`, "X-Auth-All-Projects: true")
	if res.str("type") != "invalid_project" || res.str("message") != "nobody is not a valid project ID." {
		t.Errorf("quotas of an unknown project: %s", res.Body)
	}
	s.as(alice, 403, "DELETE /v2/quotas/p1", "")
	s.as(admin, 204, "DELETE /v2/quotas/p1", "")
	s.as(admin, 204, "DELETE /v2/quotas/nobody", "")
	if res := s.as(alice, 200, "GET /v2/quotas", ""); res.json["zones"] == 3.0 {
		t.Errorf("after the delete: %s", res.Body)
	}
}

// TestTransferRights checks who may see, change and accept a request that offers a zone to one project.
func TestTransferRights(t *testing.T) {
	s := newServer(t, designate.Settings{})
	dave := httpapi.Caller{Who: "token dave", Project: "p3", Roles: []string{"member"}}
	req := s.as(alice, 201, "POST "+s.zone("example.org.")+"/tasks/transfer_requests", `{"target_project_id":"p2"}`)
	one := "/v2/zones/tasks/transfer_requests/" + req.str("id")
	accept := func(key string) string {
		return `{"key":"` + key + `","zone_transfer_request_id":"` + req.str("id") + `"}`
	}
	if res := s.as(bob, 200, "GET "+one, ""); res.json["key"] != nil || res.json["project_id"] != nil {
		t.Errorf("the target sees %s", res.Body)
	}
	if res := s.as(admin, 200, "GET "+one, ""); res.str("key") != req.str("key") {
		t.Errorf("an administrator sees %s", res.Body)
	}
	for _, call := range []string{"GET " + one, "DELETE " + one} {
		if res := s.as(dave, 403, call, ""); res.str("type") != "forbidden" {
			t.Errorf("another project: %s", res.Body)
		}
	}
	s.as(bob, 403, "PATCH "+one, `{"description":"mine"}`)
	s.as(admin, 200, "PATCH "+one, `{"description":"checked"}`)
	s.as(dave, 403, "POST /v2/zones/tasks/transfer_accepts", accept(req.str("key")))
	wrong := s.as(bob, 403, "POST /v2/zones/tasks/transfer_accepts", accept("WRONGKEY"))
	if wrong.str("type") != "invalid_key" || wrong.str("message") != "Key does not match stored key for request" {
		t.Errorf("a wrong key: %s", wrong.Body)
	}
	s.as(bob, 201, "POST /v2/zones/tasks/transfer_accepts", accept(req.str("key")))
	for _, key := range []string{req.str("key"), "WRONGKEY"} {
		res := s.as(bob, 400, "POST /v2/zones/tasks/transfer_accepts", accept(key))
		if res.str("type") != "invalid_zone_transfer_request" || res.str("message") != "Zone Transfer Request has been used" {
			t.Errorf("accepted twice: %s", res.Body)
		}
	}
}

// TestTransferWithoutBody checks that a transfer request needs no body, and that null is none.
func TestTransferWithoutBody(t *testing.T) {
	s := newServer(t, designate.Settings{})
	for name, body := range map[string]string{"a.test.": "", "b.test.": "null", "c.test.": " ", "d.test.": "{}",
		"e.test.": `{"target_project_id":null,"description":null}`} {
		res := s.as(alice, 201, "POST "+s.zone(name)+"/tasks/transfer_requests", body)
		if res.str("status") != "ACTIVE" || res.json["target_project_id"] != nil {
			t.Errorf("body %q: %s", body, res.Body)
		}
	}
	s.as(alice, 400, "POST "+s.zone("f.test.")+"/tasks/transfer_requests", "[]")
}

// TestShareRights checks that a project that a zone is shared with can neither create zones below it nor export it.
func TestShareRights(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	s.as(alice, 201, "POST "+z+"/shares", `{"target_project_id":"p2"}`)
	s.as(bob, 202, "POST "+z+"/recordsets", `{"name":"bob.example.org.","type":"A","records":["192.0.2.2"]}`)
	res := s.as(bob, 403, "POST /v2/zones", `{"name":"sub.example.org.","email":"a@example.org"}`)
	if res.str("type") != "illegal_child" || res.str("message") != "Unable to create subzone in another tenants zone" {
		t.Errorf("a zone below: %s", res.Body)
	}
	file := strings.ReplaceAll(zoneText, "example.org.", "sub.example.org.")
	if res := s.imports(bob, file, ""); !strings.Contains(res.str("message"), "Unable to create subzone") {
		t.Errorf("an import below: %s", res.Body)
	}
	s.zone("sub.example.org.")
	s.as(bob, 403, "POST "+z+"/tasks/export", "")
	own := s.as(alice, 202, "POST "+z+"/tasks/export", "").str("id")
	s.as(alice, 200, "GET /v2/zones/tasks/exports/"+own+"/export", "")
}
