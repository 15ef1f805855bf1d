package powerdns_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

func TestZone(t *testing.T) {
	s := newServer(t)
	res := s.want(201, alice, "POST /zones", `{"name":"Example.org.","kind":"Master","account":"web","serial":0,
		"dnsssec":false,"nameservers":["ns9.example.net."],"rrsets":[
		{"name":"www.example.org.","type":"A","ttl":60,"records":[{"content":"192.0.2.1","name":"x","set-ptr":false}],
		"comments":[{"content":"the site","account":""}]}]}`)
	if res.json["name"] != "example.org." || res.json["kind"] != "Master" || res.json["account"] != "web" ||
		res.json["soa_edit_api"] != "DEFAULT" || res.json["id"] != "example.org." {
		t.Errorf("created %s", res.Body)
	}
	s.want(409, alice, "POST /zones", `{"name":"example.org."}`)
	if got := s.records(alice, "example.org", "example.org.", "NS"); !cmp.Equal(got, []string{"ns9.example.net."}) {
		t.Errorf("NS %q", got)
	}
	if got := s.records(alice, "example.org.", "www.example.org", "a"); !cmp.Equal(got, []string{"192.0.2.1"}) {
		t.Errorf("A %q", got)
	}
	one := s.want(200, alice, "GET /zones/example.org.?rrsets=false", "")
	if one.json["rrsets"] != nil || one.json["dnssec"] != false || one.json["edited_serial"] != one.json["serial"] {
		t.Errorf("without record sets: %s", one.Body)
	}
	if got := s.want(422, alice, "GET /zones/example.org.?rrsets=maybe", "").message(); got !=
		"'rrsets' request parameter value 'maybe' is not supported" {
		t.Error(got)
	}
	s.want(204, alice, "PUT /zones/example.org.", `{"kind":"Native","account":"mail"}`)
	if got := s.want(200, alice, "GET /zones/example.org.", ""); got.json["kind"] != "Native" ||
		got.json["account"] != "mail" {
		t.Errorf("changed: %s", got.Body)
	}
	if got := s.want(200, alice, "GET /zones?zone=example.org.", "").Body.String(); strings.Count(got, `"id"`) != 1 {
		t.Errorf("list: %s", got)
	}
	if got := s.want(200, alice, "GET /zones?zone=none.test.", "").Body.String(); got != "[]" {
		t.Errorf("list of nothing: %s", got)
	}
	s.want(204, alice, "DELETE /zones/example.org.", "")
	if got := s.want(404, alice, "DELETE /zones/example.org.", "").message(); got != "Not Found" {
		t.Error(got)
	}
}

// TestSettingsEnd checks that a zone takes its settings with it, whichever API deletes it.
func TestSettingsEnd(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	s.want(204, alice, "PUT /zones/example.org.", `{"account":"web"}`)
	s.want(201, alice, "POST /zones/example.org./metadata", `{"kind":"X-OWNER","metadata":["web"]}`)
	z, err := publish.Read(s.pub, zoneByName("example.org."))
	if err != nil {
		t.Fatal(err)
	}
	s.want(202, alice, "DELETE /v2/zones/"+z.ID.String(), "")
	left, err := publish.Read(s.pub, func(v store.View) ([]any, error) {
		return store.ObjectsOf[any](v, store.KindPowerDNS)
	})
	if err != nil || len(left) != 0 {
		t.Errorf("after the deletion there are the settings %v (%v)", left, err)
	}
}

func TestRefusals(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	s.want(204, alice, "PATCH /zones/example.org.", replace("www.example.org.", "A", "192.0.2.1"))
	one := func(change string) string { return `{"rrsets":[` + change + `]}` }
	tests := []struct{ name, call, body, message string }{
		{"no final dot", "POST /zones", `{"name":"a.test","kind":"Native"}`, "DNS Name 'a.test' is not canonical"},
		{"characters", "POST /zones", `{"name":"a b.test.","kind":"Native"}`,
			"Name 'a\\032b.test.' contains unsupported characters"},
		{"no name", "POST /zones", `{}`, "Key 'name' not present or not a String"},
		{"not an object", "POST /zones", `[]`, "Key 'name' not present or not a String"},
		{"no kind", "POST /zones", `{"name":"a.test."}`, "Key 'kind' not present or not a String"},
		{"name server", "POST /zones", `{"name":"a.test.","kind":"Native","nameservers":["ns1"]}`,
			"Nameserver is not canonical: 'ns1'"},
		{"signed", "POST /zones", `{"name":"a.test.","kind":"Native","dnssec":true}`,
			"Zone 'a.test.' cannot be signed: this server does not sign zones"},
		{"slave without masters", "POST /zones", `{"name":"a.test.","kind":"Slave"}`, "A zone of kind Slave needs masters"},
		{"no rrsets", "PATCH /zones/example.org.", `{}`, "No rrsets given in update request"},
		{"changetype", "PATCH /zones/example.org.", patch("CREATE", "a.example.org.", "A"), "Changetype not understood"},
		{"type", "PATCH /zones/example.org.", replace("a.example.org.", "LUA", "A \"x\""),
			"RRset a.example.org. IN LUA: unknown type given"},
		{"out of zone", "PATCH /zones/example.org.", replace("a.example.net.", "A", "192.0.2.1"),
			"RRset a.example.net. IN A: Name is out of zone"},
		{"CNAME beside A", "PATCH /zones/example.org.", replace("www.example.org.", "CNAME", "a.test."),
			"RRset www.example.org. IN CNAME: Conflicts with pre-existing RRset"},
		{"twice", "PATCH /zones/example.org.", one(rrset("DELETE", "a.example.org.", "A") + "," +
			rrset("DELETE", "a.example.org.", "A")), "Duplicate RRset a.example.org. IN A with changetype: DELETE"},
		{"no TTL", "PATCH /zones/example.org.",
			one(`{"changetype":"REPLACE","name":"a.example.org.","type":"A","records":[{"content":"192.0.2.1"}]}`),
			"Key 'ttl' not an Integer or not present"},
		{"disabled", "PATCH /zones/example.org.", one(`{"changetype":"REPLACE","name":"a.example.org.","type":"A","ttl":1,
			"records":[{"content":"192.0.2.1","disabled":true}]}`),
			"Record a.example.org./A '192.0.2.1': disabled records are not supported"},
		{"two comments", "PATCH /zones/example.org.", one(`{"changetype":"REPLACE","name":"www.example.org.","type":"A",
			"comments":[{"content":"a","account":""},{"content":"b","account":""}]}`),
			"RRset www.example.org. IN A: only one comment is supported"},
		{"format", "PATCH /zones/example.org.", replace("a.example.org.", "MX", "10  mail.example.org."),
			"Record a.example.org./MX '10  mail.example.org.': Not in expected format (parsed as '10 mail.example.org.')"},
		{"two records", "PATCH /zones/example.org.", patch("EXTEND", "a.example.org.", "A", "192.0.2.1", "192.0.2.2"),
			"Exactly one record should be provided for PRUNE or EXTEND operation"},
		{"last NS", "PATCH /zones/example.org.", patch("DELETE", "example.org.", "NS"),
			"zone example.org. has no NS record at its apex"},
		{"no SOA", "PUT /zones/example.org.", `{"rrsets":[]}`, "Must give SOA record for zone when replacing all RR sets"},
		{"no slave", "PUT /zones/example.org./axfr-retrieve", "",
			"Domain 'example.org.' is not a slave domain (or has no master defined)"},
		{"metadata", "POST /zones/example.org./metadata", `{"kind":"ALLOW-AXFR-FROM","metadata":["0.0.0.0/0"]}`,
			"Unsupported metadata kind 'ALLOW-AXFR-FROM'"},
		{"signing key", "POST /zones/example.org./cryptokeys", `{"keytype":"csk"}`,
			"Zone 'example.org.' cannot be signed: this server does not sign zones"},
		{"search", "GET /search-data?q=", "", "Query q can't be blank"},
		{"flush", "PUT /cache/flush?domain=a", "", "DNS Name 'a' is not canonical"},
	}
	before := s.want(200, alice, "GET /zones/example.org.", "").Body.String()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.want(422, alice, tt.call, tt.body).message(); got != tt.message {
				t.Errorf("error %q, want %q", got, tt.message)
			}
		})
	}
	if diff := cmp.Diff(before, s.want(200, alice, "GET /zones/example.org.", "").Body.String()); diff != "" {
		t.Errorf("refused requests changed the zone: %s", diff)
	}
	if got := s.want(400, alice, "PATCH /zones/example.org.", `{`).message(); got != "Bad Request" {
		t.Error(got)
	}
	s.want(400, alice, "PATCH /zones/example.org.", `{"rrsets":[],"RRSETS":[]}`)
	s.want(405, alice, "POST /zones/example.org.", `{}`)
	s.want(404, alice, "GET /api/v1/servers/other/zones", "")
	s.want(404, alice, "GET /autoprimaries", "")
	s.want(413, alice, "PATCH /zones/example.org.", strings.Repeat(" ", 3<<20))
}

// TestPatch checks that a request is applied as a whole or not at all.
func TestPatch(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	var sets []string
	for i := range 99 {
		sets = append(sets, rrset("REPLACE", fmt.Sprintf("n%d.example.org.", i), "A", "192.0.2.1"))
	}
	bad := append(sets, rrset("REPLACE", "bad.example.org.", "A", "192.0.2.300"))
	s.want(422, alice, "PATCH /zones/example.org.", `{"rrsets":[`+strings.Join(bad, ",")+`]}`)
	if got := s.records(alice, "example.org.", "n0.example.org.", "A"); got != nil {
		t.Errorf("a refused request left %q", got)
	}
	res := s.want(204, alice, "PATCH /zones/example.org.", `{"rrsets":[`+strings.Join(sets, ",")+`]}`)
	if res.Header().Get("X-Pdns-Old-Serial") == res.Header().Get("X-Pdns-New-Serial") {
		t.Errorf("headers %v", res.Header())
	}
	s.want(204, alice, "PATCH /zones/example.org.", `{"rrsets":[`+rrset("DELETE", "n0.example.org.", "A")+`,`+
		rrset("REPLACE", "n0.example.org.", "CNAME", "a.test.")+`]}`)
	s.want(204, alice, "PATCH /zones/example.org.", patch("DELETE", "none.example.org.", "A"))
	s.want(204, alice, "PATCH /zones/example.org.", replace("n1.example.org.", "A")) // no records: delete
	if got := s.records(alice, "example.org.", "n1.example.org.", "A"); got != nil {
		t.Errorf("without records: %q", got)
	}
	before := s.want(200, alice, "GET /zones/example.org.?rrsets=false", "").json["serial"].(float64)
	soa := fmt.Sprintf("ns1.example.net. dns.example.org. %d 7200 600 86400 60", int(before)-100)
	s.want(204, alice, "PATCH /zones/example.org.", replace("example.org.", "SOA", soa))
	if got := s.records(alice, "example.org.", "example.org.", "SOA"); !strings.HasPrefix(got[0],
		fmt.Sprintf("ns1.example.net. dns.example.org. %d 7200", int(before)+1)) {
		t.Errorf("a lower serial of a client: %q, before %d", got, int(before))
	}
	s.want(204, alice, "PATCH /zones/example.org.", patch("DELETE", "example.org.", "SOA"))
	if got := s.records(alice, "example.org.", "example.org.", "SOA"); len(got) != 1 {
		t.Errorf("after a deletion of the SOA record: %q", got)
	}
	if z, _ := publish.Read(s.pub, zoneByName("example.org.")); z.Email != "dns@example.org" {
		t.Errorf("email %q", z.Email)
	}
	s.want(204, alice, "PATCH /zones/example.org.", replace("example.org.", "NS", "ns1.example.org.", "ns2.example.org."))
}

// TestExtend adds and removes fifty records of one set at the same time: none is lost.
func TestExtend(t *testing.T) {
	const n = 50
	q := publish.DefaultQuotas()
	q.RecordsetRecords = n
	s := newLimited(t, q, designate.Settings{}, nil)
	s.zone("example.org.")
	all := func(change string, from int) {
		var running sync.WaitGroup
		for i := from; i < n; i++ {
			running.Go(func() {
				body := patch(change, "_acme-challenge.example.org.", "TXT", fmt.Sprintf(`"%d"`, i))
				s.do(alice, "PATCH /zones/example.org.", body)
			})
		}
		running.Wait()
	}
	all("EXTEND", 0)
	all("EXTEND", 0) // it is no error that the record exists
	if got := s.records(alice, "example.org.", "_acme-challenge.example.org.", "TXT"); len(got) != n {
		t.Errorf("%d records, want %d", len(got), n)
	}
	if got := s.want(422, alice, "PATCH /zones/example.org.", patch("EXTEND", "_acme-challenge.example.org.", "TXT",
		`"more"`)).message(); !strings.Contains(got, "Quota exceeded") {
		t.Error(got)
	}
	all("PRUNE", 2)
	if got := s.records(alice, "example.org.", "_acme-challenge.example.org.", "TXT"); !cmp.Equal(got,
		[]string{`"0"`, `"1"`}) {
		t.Errorf("after PRUNE of the others: %q", got)
	}
	all("PRUNE", 0)
	if got := s.records(alice, "example.org.", "_acme-challenge.example.org.", "TXT"); got != nil {
		t.Errorf("after PRUNE: %q", got)
	}
	item := rrset("EXTEND", "many.example.org.", "A", "192.0.2.1")
	if got := s.want(422, alice, "PATCH /zones/example.org.", `{"rrsets":[`+strings.Repeat(item+",", 100)+item+`]}`).
		message(); !strings.Contains(got, "at most 100 changes with changetype EXTEND") {
		t.Error(got)
	}
}

func TestEntityTags(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	get := s.want(200, alice, "GET /zones/example.org.", "")
	tag := get.Header().Get("ETag")
	s.want(304, alice, "GET /zones/example.org.", "", "If-None-Match: "+tag)
	set := s.want(204, alice, "PATCH /zones/example.org.", replace("a.example.org.", "A", "192.0.2.1"), "If-Match: "+tag)
	s.want(412, alice, "PATCH /zones/example.org.", replace("a.example.org.", "A", "192.0.2.2"), "If-Match: "+tag)
	s.want(412, alice, "PUT /zones/example.org.", `{"account":"x"}`, "If-Match: "+tag)
	s.want(412, alice, "DELETE /zones/example.org.", "", "If-Match: "+tag)
	s.want(200, alice, "GET /zones/example.org.", "", "If-None-Match: "+tag)

	// A tag of one API guards a change in the other.
	z, err := publish.Read(s.pub, zoneByName("example.org."))
	if err != nil {
		t.Fatal(err)
	}
	path := "/v2/zones/" + z.ID.String()
	s.want(412, alice, "PATCH "+path, `{"ttl":60}`, "If-Match: "+tag)
	other := s.want(200, alice, "GET "+path, "").Header().Get("ETag")
	if other != set.Header().Get("ETag") {
		t.Errorf("ETag %s, in the other API %s", set.Header().Get("ETag"), other)
	}
	s.want(204, alice, "PATCH /zones/example.org.", replace("a.example.org.", "A", "192.0.2.3"), "If-Match: "+other)
}

// TestIsolation checks the rules that the zones API has too.
func TestIsolation(t *testing.T) {
	q := publish.DefaultQuotas()
	q.Zones, q.RecordsetRecords = 2, 2
	s := newLimited(t, q, designate.Settings{MinTTL: 60}, nil)
	s.zone("example.org.")
	for _, call := range []string{"GET /zones/example.org.", "DELETE /zones/example.org.",
		"GET /zones/example.org./export",
		"GET /zones/example.org./metadata", "PUT /zones/example.org./notify", "GET /zones/example.org./cryptokeys"} {
		s.want(404, bob, call, "")
	}
	s.want(404, bob, "PATCH /zones/example.org.", replace("a.example.org.", "A", "192.0.2.1"))
	if got := s.want(200, bob, "GET /zones", "").Body.String(); got != "[]" {
		t.Errorf("zones of another project: %s", got)
	}
	if got := s.want(200, bob, "GET /search-data?q=*", "").Body.String(); got != "[]" {
		t.Errorf("search in another project: %s", got)
	}
	s.want(409, bob, "POST /zones", `{"name":"example.org.","kind":"Native"}`)
	s.want(403, bob, "POST /zones", `{"name":"sub.example.org.","kind":"Native"}`)
	s.want(403, bob, "GET /zones", "", "X-Auth-All-Projects: true")
	s.want(403, carol, "PATCH /zones/example.org.", replace("a.example.org.", "A", "192.0.2.1"))
	s.want(403, alice, "GET /tsigkeys", "")
	s.want(403, alice, "GET /statistics", "")
	s.want(200, admin, "GET /zones/example.org.", "", "X-Auth-All-Projects: true")
	s.want(404, admin, "GET /zones/example.org.", "")

	for body, want := range map[string]string{
		`{"name":"com.","kind":"Native"}`:                                "More than one label is required",
		`{"name":"co.uk.","kind":"Native"}`:                              "co.uk. is a public suffix",
		`{"name":"2.0.192.in-addr.arpa.","kind":"x"}`:                    "2.0.192.in-addr.arpa. is in arpa",
		`{"name":"printer.local.","kind":"Native"}`:                      "printer.local. is a special-use name",
		`{"name":"a.test.","kind":"Slave","masters":["ns.example.net"]}`: "Master (ns.example.net) is not an IP address",
	} {
		if got := s.want(422, alice, "POST /zones", body).message(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	s.want(403, alice, "POST /zones", `{"name":"a.test.","kind":"Slave","masters":["127.0.0.1"]}`)
	s.want(403, alice, "POST /zones", `{"name":"a.test.","kind":"Slave","masters":["192.0.2.1:5353"]}`)
	s.want(201, alice, "POST /zones", `{"name":"a.test.","kind":"Slave","masters":["192.0.2.1"]}`)
	if got := s.want(422, alice, "POST /zones", `{"name":"b.test.","kind":"Native"}`).message(); !strings.Contains(got,
		"Quota exceeded for zones") {
		t.Error(got)
	}
	if got := s.want(422, alice, "PATCH /zones/example.org.", replace("a.example.org.", "A", "192.0.2.1", "192.0.2.2",
		"192.0.2.3")).message(); !strings.Contains(got, "Quota exceeded for recordset_records") {
		t.Error(got)
	}
	if got := s.want(422, alice, "PATCH /zones/example.org.", strings.Replace(replace("a.example.org.", "A",
		"192.0.2.1"), `"ttl":300`, `"ttl":30`, 1)).message(); got != "TTL is below the minimum: 60" {
		t.Error(got)
	}
	s.want(422, alice, "PATCH /zones/a.test.", replace("x.a.test.", "A", "192.0.2.1"))
}

// TestGenerateInZoneText checks that a line of a zone file that produces more records than the quota allows is refused
// while it is read.
func TestGenerateInZoneText(t *testing.T) {
	s := newServer(t)
	got := s.want(422, alice, "POST /zones", `{"name":"example.org.","kind":"Native",`+
		`"zone":"$GENERATE 0-65535 h$ 300 A 192.0.2.1\n"}`).message()
	if !strings.Contains(got, "parsing the zonedata") || !strings.Contains(got, "Quota exceeded for zone_records") {
		t.Error(got)
	}
}

// TestShared checks that a project that a zone is shared with may change records, and not the zone.
func TestShared(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	z, err := publish.Read(s.pub, zoneByName("example.org."))
	if err != nil {
		t.Fatal(err)
	}
	s.want(201, alice, "POST /v2/zones/"+z.ID.String()+"/shares", `{"target_project_id":"p2"}`)
	s.want(204, bob, "PATCH /zones/example.org.", replace("a.example.org.", "A", "192.0.2.1"))
	s.want(200, bob, "GET /zones/example.org.", "")
	for _, body := range []string{replace("example.org.", "NS", "ns.bob.test."), patch("DELETE", "example.org.", "NS"),
		patch("EXTEND", "example.org.", "NS", "ns.bob.test."), patch("DELETE", "example.org.", "SOA"),
		replace("example.org.", "SOA", "ns.bob.test. bob.bob.test. 1 2 3 4 5")} {
		s.want(403, bob, "PATCH /zones/example.org.", body)
	}
	s.want(403, bob, "PUT /zones/example.org.", `{"account":"mine"}`)
	s.want(403, bob, "DELETE /zones/example.org.", "")
	s.want(403, bob, "POST /zones/example.org./metadata", `{"kind":"X-A","metadata":[]}`)
	if got := s.want(422, alice, "DELETE /zones/example.org.", "").message(); !strings.Contains(got, "zone is shared") {
		t.Error(got)
	}
}

// TestAlias checks that an ALIAS is written and read, and that derived addresses are not listed.
func TestAlias(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	s.want(204, alice, "PATCH /zones/example.org.", replace("www.example.org.", "A", "192.0.2.7"))
	s.want(204, alice, "PATCH /zones/example.org.", replace("example.org.", "ALIAS", "www.example.org."))
	if got := s.records(alice, "example.org.", "example.org.", "ALIAS"); !cmp.Equal(got, []string{"www.example.org."}) {
		t.Errorf("ALIAS %q", got)
	}
	if got := s.records(alice, "example.org.", "example.org.", "A"); got != nil {
		t.Errorf("derived addresses are listed: %q", got)
	}
	res := s.want(422, alice, "PATCH /zones/example.org.", replace("example.org.", "A", "192.0.2.1"))
	if got := res.message(); !strings.Contains(got, "an ALIAS cannot coexist with A or AAAA records") {
		t.Error(got)
	}
	s.want(204, alice, "PATCH /zones/example.org.", `{"rrsets":[`+rrset("DELETE", "example.org.", "ALIAS")+`,`+
		rrset("REPLACE", "example.org.", "A", "192.0.2.1")+`]}`)
}

// TestLarge reads a zone that is larger than the part of a reply that is built in memory.
func TestLarge(t *testing.T) {
	s := newLimited(t, publish.DefaultQuotas(), designate.Settings{}, budget.New(1<<30))
	s.zone("example.org.")
	const n = 8000
	for from := 0; from < n; from += 2000 {
		var sets []string
		for i := from; i < from+2000; i++ {
			sets = append(sets, rrset("REPLACE", fmt.Sprintf("n%d.example.org.", i), "A", "192.0.2.1"))
		}
		s.want(204, alice, "PATCH /zones/example.org.", `{"rrsets":[`+strings.Join(sets, ",")+`]}`)
	}
	if got := len(s.want(200, alice, "GET /zones/example.org.", "").json["rrsets"].([]any)); got != n+2 {
		t.Errorf("%d record sets, want %d", got, n+2)
	}
	if got := strings.Count(s.want(200, alice, "GET /zones/example.org./export", "").Body.String(), "\n"); got != n+2 {
		t.Errorf("%d lines of an export, want %d", got, n+2)
	}
	text := s.want(200, alice, "GET /zones/example.org./export", "", "Accept: application/json").json["zone"].(string)
	if strings.Count(text, "\tIN\tA\t192.0.2.1\n") != n {
		t.Errorf("export as JSON: %.300s", text)
	}
	s.want(204, alice, "PUT /zones/example.org.", `{"rrsets":[{"name":"example.org.","type":"SOA","ttl":60,"records":[
		{"content":"ns1.example.net. a.example.org. 1 2 3 4 5"}]},{"name":"www.example.org.","type":"A","ttl":60,
		"records":[{"content":"192.0.2.1"}]}]}`)
	if got := len(s.want(200, alice, "GET /zones/example.org.", "").json["rrsets"].([]any)); got != 3 {
		t.Errorf("%d record sets after a replacement, want SOA, NS and A", got)
	}
}

func TestZoneText(t *testing.T) {
	s := newServer(t)
	s.want(201, alice, "POST /zones", `{"name":"example.org.","kind":"Native","zone":
		"@ 60 IN SOA ns1.example.net. a.example.org. 7 2 3 4 5\n@ NS ns1.example.net.\nwww 60 A 192.0.2.1\n"}`)
	if got := s.records(alice, "example.org.", "www.example.org.", "A"); len(got) != 1 {
		t.Errorf("A %q", got)
	}
	if got := s.want(422, alice, "POST /zones", `{"name":"b.test.","kind":"Native","zone":"www A x"}`).message(); !strings.
		HasPrefix(got, "An error occurred while parsing the zonedata: ") {
		t.Error(got)
	}
	s.want(422, alice, "POST /zones", `{"name":"b.test.","kind":"Native","zone":"$INCLUDE /etc/passwd"}`)
}

// TestContent checks that records come back as clients of PowerDNS send them.
func TestContent(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	for typ, content := range map[string]string{
		"A": "192.0.2.1", "AAAA": "2001:db8::1", "MX": "10 mail.example.org.", "TXT": `"v=spf1 -all"`,
		"SRV": "0 5 5060 sip.example.org.", "CAA": `0 issue "ca.test"`,
		"SSHFP": "1 1 0123456789abcdef0123456789abcdef01234567",
		"TLSA":  "3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"HTTPS": "1 . alpn=h2,h3", "SVCB": "1 svc.example.org. port=8443", "CNAME": "Target.example.org.",
		"PTR": "host.example.org.", "NAPTR": `100 10 "S" "SIP+D2U" "" _sip._udp.example.org.`,
	} {
		name := strings.ToLower(typ) + ".example.org."
		s.want(204, alice, "PATCH /zones/example.org.", replace(name, typ, content))
		if got := s.records(alice, "example.org.", name, typ); !cmp.Equal(got, []string{content}) {
			t.Errorf("%s: sent %q, got %q", typ, content, got)
		}
	}
}

// TestSigned checks that records which a signer derives are not listed.
func TestSigned(t *testing.T) {
	s := newServer(t)
	s.want(201, alice, "POST /zones", `{"name":"example.org.","kind":"Native","zone":"`+strings.Join([]string{
		"www 60 A 192.0.2.1", "www 60 HTTPS 1 . alpn=h2", "www 60 NSEC example.org. A NSEC",
		"www 60 RRSIG A 13 3 60 20300101000000 20200101000000 12345 example.org. c2lnbmF0dXJl",
		"0p9mhaveqvm6t7vbl5lop2u3t2rp3tom 60 NSEC3 1 0 0 - 2t7b4g4vsa5smi47k61mv5bv1a22bojr A"}, `\n`)+`"}`)
	got := s.want(200, alice, "GET /zones/example.org.", "").Body.String()
	for _, typ := range []string{"NSEC", "NSEC3", "RRSIG"} {
		if strings.Contains(got, `"type":"`+typ+`"`) {
			t.Errorf("%s is listed in %s", typ, got)
		}
	}
	for _, want := range []string{`"192.0.2.1"`, `"1 . alpn=h2"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

func zoneByName(name string) func(v store.View) (zone.Zone, error) {
	return func(v store.View) (zone.Zone, error) { return v.ZoneByName(dnsname.MustParse(name)) }
}
