package designate_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestTransferEndsShares checks that a share from before a transfer does not let the old owner back in.
func TestTransferEndsShares(t *testing.T) {
	s := newServer(t, designate.Settings{})
	dave := alice
	dave.Project = "p3"
	z := s.zone("example.org.")
	s.as(alice, 201, "POST "+z+"/shares", `{"target_project_id":"p3"}`)
	s.as(dave, 200, "GET "+z, "")
	req := s.as(alice, 201, "POST "+z+"/tasks/transfer_requests", "")
	s.as(bob, 201, "POST /v2/zones/tasks/transfer_accepts",
		`{"key":"`+req.str("key")+`","zone_transfer_request_id":"`+req.str("id")+`"}`)
	s.as(dave, 404, "GET "+z, "")
	s.as(dave, 404, "POST "+z+"/recordsets", `{"name":"a.example.org.","type":"A","records":["192.0.2.1"]}`)
	if got := s.as(bob, 200, "GET "+z, "").json["shared"]; got != false {
		t.Errorf("shared = %v", got)
	}
}

// TestImportRules checks that imports follow the rules for new zones, however the names are written.
func TestImportRules(t *testing.T) {
	s := newServer(t, designate.Settings{MinTTL: 60})
	s.as(admin, 201, "POST /v2/tlds", `{"name":"co.test"}`)
	s.as(admin, 201, "POST /v2/tlds", `{"name":"org"}`)
	s.as(admin, 201, "POST /v2/blacklists", `{"pattern":"^Secret\\."}`)
	file := func(name string) string { return strings.ReplaceAll(zoneText, "example.org.", name) }
	tests := []struct{ name, file, message string }{
		{"a dot inside a label", file(`x\.co.test.`), "Invalid TLD"},
		{"an escaped TLD", file(`c\111.test.`), "same as a TLD"},
		{"a wildcard", file("*.example.org."), "wildcard"},
		{"a black name in other letters", file(`\083ECRET.org.`), "Blacklisted"},
		{"TTL of a set", strings.Replace(zoneText, "mail 60", "mail 59", 2), "below the minimum"},
		{"TTL of the zone", strings.Replace(zoneText, "$TTL 300", "$TTL 30", 1), "below the minimum"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.imports(alice, tt.file, "?replace=true")
			if res.str("status") != "ERROR" || !strings.Contains(res.str("message"), tt.message) {
				t.Errorf("import = %s, want an error about %q", res.Body, tt.message)
			}
		})
	}
	if res := s.imports(alice, zoneText, ""); res.str("status") != "COMPLETE" {
		t.Errorf("import: %s", res.Body)
	}
	if res := s.imports(alice, tests[5].file, "?replace=true"); res.str("status") != "ERROR" {
		t.Errorf("replace: %s", res.Body)
	}
}

func TestTargetProjects(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	for _, target := range []string{"", `x\u0000y`, "../p2", "p 2", strings.Repeat("x", 37)} {
		s.as(alice, 400, "POST "+z+"/shares", `{"target_project_id":"`+target+`"}`)
		s.as(alice, 400, "POST "+z+"/tasks/transfer_requests", `{"target_project_id":"`+target+`"}`)
	}
	s.as(alice, 201, "POST "+z+"/shares", `{"target_project_id":"`+strings.Repeat("x", 36)+`"}`)
}

// TestOverlaysAreNotShown checks that overlays, which are in the same store as zones, are invisible in this API and do
// not block other zones.
func TestOverlaysAreNotShown(t *testing.T) {
	s := newServer(t, designate.Settings{})
	var id string
	err := s.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
		for _, apex := range []string{".", "sub.example.org."} {
			z, err := tx.Overlay(dnsname.MustParse(apex))
			if err != nil {
				return err
			}
			id = z.ID.String()
			data, _ := rr.ParseData(rr.TypeA, "192.0.2.9")
			set := zone.RecordSet{Zone: z.ID, Name: dnsname.MustParse("a.sub.example.org."), Type: rr.TypeA,
				Data: []string{data}}
			if _, err := tx.CreateSet(set); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	z := s.zone("example.org.")
	for _, who := range []httpapi.Caller{alice, admin} {
		all := []string{"X-Auth-All-Projects: " + strconv.FormatBool(who.Project == admin.Project)}
		s.want(404, request{as: who, call: "GET /v2/zones/" + id, headers: all})
		s.want(404, request{as: who, call: "DELETE /v2/zones/" + id, headers: all})
		got := s.want(200, request{as: who, call: "GET /v2/zones", headers: all})
		if n := len(got.json["zones"].([]any)); n != 1 {
			t.Errorf("%s sees %d zones", who.Who, n)
		}
		got = s.want(200, request{as: who, call: "GET /v2/recordsets", headers: all})
		if n := len(got.json["recordsets"].([]any)); n != 2 ||
			got.json["metadata"].(map[string]any)["total_count"] != float64(2) {
			t.Errorf("%s sees %d record sets, metadata %v", who.Who, n, got.json["metadata"])
		}
	}
	s.as(alice, 202, "POST "+z+"/recordsets", `{"name":"b.sub.example.org.","type":"A","records":["192.0.2.1"]}`)
	s.as(alice, 409, "POST /v2/zones", `{"name":"sub.example.org.","email":"a@example.org"}`)
}
