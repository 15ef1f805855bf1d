package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/test/reference"
)

// designateCalls lists the calls of Designate with the status codes that its source gives to each, without those that
// every call can have: 401, 404 and 405 for unknown paths and methods, 406, 500, 503 and 504. The codes are those of
// the controllers in designate/api/v2, of the exceptions that designate/central/service.py raises for them, and of
// the policies in designate/common/policies, in the state of August 2026.
var designateCalls = []struct{ call, codes, note string }{
	{"GET /", "200", "here the root lists the identity service too; Designate's document is at `/dns`; " + badQuery},
	{"GET /dns", "200", "`GET /` of Designate; " + badQuery},
	{"GET /v2", "200", badQuery},
	{"GET /v2/zones", "200, 400, 403", ""},
	{"POST /v2/zones", "201, 202, 400, 403, 404, 409, 413, 415", "Designate's 201 is for a zone that is not PENDING"},
	{"GET /v2/zones/{zone_id}", "200, 400, 403, 404", "304 with `If-None-Match`"},
	{"PATCH /v2/zones/{zone_id}", "200, 202, 400, 403, 404, 415", "412 with `If-Match`; 413 for a body that is too " +
		"large; Designate's 200 is for a zone that is not PENDING"},
	{"DELETE /v2/zones/{zone_id}", "202, 400, 403, 404", "412 with `If-Match`"},
	{"GET /v2/zones/{zone_id}/nameservers", "200, 400, 403, 404", ""},
	{"GET /v2/zones/{zone_id}/recordsets", "200, 400, 403, 404", ""},
	{"POST /v2/zones/{zone_id}/recordsets", "201, 202, 400, 403, 404, 409, 413, 415",
		"Designate's 201 is for a set that is not PENDING"},
	{"GET /v2/zones/{zone_id}/recordsets/{recordset_id}", "200, 400, 403, 404", "304 with `If-None-Match`"},
	{"PUT /v2/zones/{zone_id}/recordsets/{recordset_id}", "200, 202, 400, 403, 404, 413, 415",
		"412 with `If-Match`; 409 for changes that contradict each other; Designate's 200 is for a set that is not PENDING"},
	{"DELETE /v2/zones/{zone_id}/recordsets/{recordset_id}", "202, 400, 403, 404", "412 with `If-Match`"},
	{"GET /v2/recordsets", "200, 400, 403", ""},
	{"GET /v2/recordsets/{recordset_id}", "301, 400, 403, 404", ""},
	{"POST /v2/zones/{zone_id}/tasks/abandon", "204, 400, 403, 404", ""},
	{"POST /v2/zones/{zone_id}/tasks/xfr", "202, 400, 403, 404", ""},
	{"POST /v2/zones/{zone_id}/tasks/pool_move", "202, 400, 403, 404", ""},
	{"POST /v2/zones/{zone_id}/tasks/export", "202, 400, 403, 404", "413 over the quota: Designate fails the task"},
	{"GET /v2/zones/tasks/exports", "200, 400, 403", ""},
	{"GET /v2/zones/tasks/exports/{id}", "200, 400, 403, 404", ""},
	{"DELETE /v2/zones/tasks/exports/{id}", "204, 400, 403, 404", ""},
	{"GET /v2/zones/tasks/exports/{id}/export", "200, 400, 403, 404", ""},
	{"GET /v2/zones/tasks/imports", "200, 400, 403", ""},
	{"POST /v2/zones/tasks/imports", "202, 400, 403, 415", "413 for a file that is too large"},
	{"GET /v2/zones/tasks/imports/{id}", "200, 400, 403, 404", ""},
	{"DELETE /v2/zones/tasks/imports/{id}", "204, 400, 403, 404", ""},
	{"POST /v2/zones/{zone_id}/tasks/transfer_requests", "201, 400, 403, 404, 409, 415",
		"413 for a body that is too large"},
	{"GET /v2/zones/tasks/transfer_requests", "200, 400", ""},
	{"GET /v2/zones/tasks/transfer_requests/{id}", "200, 400, 403, 404", ""},
	{"PATCH /v2/zones/tasks/transfer_requests/{id}", "200, 400, 403, 404, 415", "413 for a body that is too large"},
	{"DELETE /v2/zones/tasks/transfer_requests/{id}", "204, 400, 403, 404", ""},
	{"GET /v2/zones/tasks/transfer_accepts", "200, 400, 403", ""},
	{"POST /v2/zones/tasks/transfer_accepts", "201, 400, 403, 404, 413, 415", ""},
	{"GET /v2/zones/tasks/transfer_accepts/{id}", "200, 400, 403, 404", ""},
	{"GET /v2/zones/{zone_id}/shares", "200, 400, 403, 404", ""},
	{"POST /v2/zones/{zone_id}/shares", "201, 400, 403, 404, 409, 415", "413 over the number of shares"},
	{"GET /v2/zones/{zone_id}/shares/{id}", "200, 400, 403, 404", ""},
	{"DELETE /v2/zones/{zone_id}/shares/{id}", "204, 400, 403, 404", ""},
	{"GET /v2/tlds", "200, 400, 403", ""},
	{"POST /v2/tlds", "201, 400, 403, 409, 415", "413 for a body that is too large, here and below"},
	{"GET /v2/tlds/{id}", "200, 400, 403, 404", ""},
	{"PATCH /v2/tlds/{id}", "200, 400, 403, 404, 409, 415", ""},
	{"DELETE /v2/tlds/{id}", "204, 400, 403, 404", ""},
	{"GET /v2/blacklists", "200, 400, 403", ""},
	{"POST /v2/blacklists", "201, 400, 403, 409, 415", ""},
	{"GET /v2/blacklists/{id}", "200, 400, 403, 404", ""},
	{"PATCH /v2/blacklists/{id}", "200, 400, 403, 404, 409, 415", ""},
	{"DELETE /v2/blacklists/{id}", "204, 400, 403, 404", ""},
	{"GET /v2/tsigkeys", "200, 400, 403", ""},
	{"POST /v2/tsigkeys", "201, 400, 403, 409, 415", ""},
	{"GET /v2/tsigkeys/{id}", "200, 400, 403, 404", ""},
	{"PATCH /v2/tsigkeys/{id}", "200, 400, 403, 404, 409, 415", ""},
	{"DELETE /v2/tsigkeys/{id}", "204, 400, 403, 404", ""},
	{"GET /v2/pools", "200, 400, 403", ""},
	{"POST /v2/pools", "201, 400, 403, 409, 415", ""},
	{"GET /v2/pools/{id}", "200, 400, 403, 404", ""},
	{"PATCH /v2/pools/{id}", "202, 400, 403, 404, 409, 415", ""},
	{"DELETE /v2/pools/{id}", "204, 400, 403, 404", ""},
	{"GET /v2/limits", "200", "403 without a role in the project; " + badQuery},
	{"GET /v2/quotas", "200, 403", badQuery},
	{"GET /v2/quotas/{project_id}", "200, 403", badQuery},
	{"PATCH /v2/quotas/{project_id}", "200, 400, 403, 415", "unknown projects are always 400 `invalid_project`"},
	{"DELETE /v2/quotas/{project_id}", "204, 403", badQuery},
	{"GET /v2/service_statuses", "200, 400, 403", ""},
	{"GET /v2/service_statuses/{id}", "200, 400, 403, 404", ""},
	{"GET /v2/reverse/floatingips", "200, 403", "the list is empty: there is no network service"},
	{"GET /v2/reverse/floatingips/{id}", "200, 400, 403, 404", "always 404"},
	{"PATCH /v2/reverse/floatingips/{id}", "202, 400, 403, 404, 415", "always 404"},
}

// badQuery is a difference of calls that read no query parameter. Designate ignores a query that it cannot read.
const badQuery = "400 for a query that cannot be read, 403 for headers that only an administrator may send"

// common are the status codes that every call can have.
var common = []string{"401", "406", "500", "503"}

// designateTags are the parts of the document with calls of Designate.
var designateTags = []string{"zones", "recordsets", "changes", "tasks", "transfers", "shares", "rules", "service"}

// TestConformancePage writes the status codes of each call of Designate beside our own into the page about conformance,
// and checks that no call is missing.
func TestConformancePage(t *testing.T) {
	text, err := merge(spec, "")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	ours := map[string]string{}
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			var o struct {
				operation
				Extension bool `json:"x-nameplane-extension"`
			}
			if method == "parameters" {
				continue
			}
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatal(err)
			}
			if o.Extension || !slices.Contains(designateTags, o.Tags[0]) && path != "/" && path != "/dns" && path != "/v2" ||
				strings.HasPrefix(path, "/v1/") {
				continue
			}
			codes := slices.DeleteFunc(slices.Sorted(maps.Keys(o.Responses)),
				func(code string) bool { return slices.Contains(common, code) })
			ours[strings.ToUpper(method)+" "+path] = strings.Join(codes, ", ")
		}
	}
	var rows [][]string
	for _, d := range designateCalls {
		here, ok := ours[d.call]
		if !ok {
			here = "not served"
		}
		rows = append(rows, []string{reference.Code(d.call), d.codes, here, d.note})
		delete(ours, d.call)
	}
	for call := range ours {
		t.Errorf("%s has no row in designateCalls", call)
	}
	reference.Compare(t, "../../../docs/reference/conformance.md", "designate",
		reference.Table([]string{"call", "Designate", "nameplane", "difference"}, rows), *update)
}
