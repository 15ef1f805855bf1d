package designate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
)

// TestRecordTypes has records of each type: the text that is stored and shown, or "" when the record is refused.
func TestRecordTypes(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	b255 := strings.Repeat("x", 255)
	sha256, sha512 := strings.Repeat("ab", 32), strings.Repeat("cd", 64)
	tests := []struct{ typ, record, shown string }{ // shown: the canonical text; "": the record is refused
		{"A", "192.0.2.1", "192.0.2.1"}, {"A", "192.0.2.01", ""}, {"A", "192.0.2", ""}, {"A", "2001:db8::1", ""},
		{"A", " 192.0.2.1", ""}, {"A", "", ""},
		{"AAAA", "2001:DB8:0:0::1", "2001:db8::1"}, {"AAAA", "192.0.2.1", ""}, {"AAAA", "fe80::1%eth0", ""},
		{"CNAME", "www.example.net.", "www.example.net."}, {"CNAME", "www.example.net", ""}, {"CNAME", "a b.", ""},
		{"NS", "ns.example.net.", "ns.example.net."}, {"NS", "192.0.2.1", ""},
		{"PTR", "a.example.net.", "a.example.net."}, {"PTR", "a", ""},
		{"MX", "10 mail.example.net.", "10 mail.example.net."}, {"MX", "-0 mail.example.net.", ""},
		{"MX", "010 mail.example.net.", ""},
		{"MX", "65536 mail.example.net.", ""}, {"MX", "10 mail.example.net", ""}, {"MX", "10", ""}, {"MX", "0 .", "0 ."},
		{"MX", "10  mail.example.net.", ""},
		{"SRV", "0 5 5060 sip.example.net.", "0 5 5060 sip.example.net."}, {"SRV", "0 5 70000 sip.example.net.", ""},
		{"SRV", "0 5 sip.example.net.", ""},
		{"SSHFP", "4 2 " + strings.Repeat("ab", 32), "4 2 " + strings.Repeat("AB", 32)},
		{"SSHFP", "5 2 " + strings.Repeat("ab", 32), ""}, {"SSHFP", "4 3 abcdefabcd", ""}, {"SSHFP", "4 1 zz", ""},
		{"TXT", `"hello world"`, `"hello world"`}, {"TXT", `hello`, `"hello"`}, {"TXT", `hello world`, ""},
		{"TXT", `v=DKIM1;p=x`, `"v=DKIM1;p=x"`},
		{"TXT", `"a;b"`, `"a;b"`}, {"TXT", `"say \"hi\""`, `"say \"hi\""`}, {"TXT", `"say "hi""`, ""}, {"TXT", `"open`, ""},
		{"TXT", `ab"c`, ""},
		{"TXT", `"end\"`, ""}, {"TXT", `end\`, ""}, {"TXT", "\"a\nb\"", ""}, {"TXT", "a\rb", ""}, {"TXT", `""`, `""`},
		{"TXT", ``, ""},
		{"TXT", `"` + b255 + `"`, `"` + b255 + `"`}, {"TXT", `"` + b255 + `x"`, ""}, {"TXT", b255 + "x", ""},
		{"TXT", `"` + b255 + `" "x"`, `"` + b255 + `" "x"`}, {"TXT", `"a""b"`, ""}, {"TXT", `"a" b`, ""},
		{"SPF", `"v=spf1 -all"`, `"v=spf1 -all"`},
		{"CAA", `0 issue "ca.example.net"`, `0 issue "ca.example.net"`}, {"CAA", `2 issue "ca"`, ""},
		{"CAA", `0 tissue "ca"`, ""}, {"CAA", `0 issue`, ""},
		{"NAPTR", `10 20 "S" "SIP+D2U" "" _sip._udp.example.net.`, `10 20 "S" "SIP+D2U" "" _sip._udp.example.net.`},
		{"NAPTR", `10 20 S SIP+D2U !^.*$!sip:info@example.net! .`, `10 20 "S" "SIP+D2U" "!^.*$!sip:info@example.net!" .`},
		{"NAPTR", `10 20 u "E2U+sip" "" a\"b.example.net.`, ""}, {"NAPTR", `10 20 a"b" c d .`, ""},
		{"NAPTR", `x 20 "S" "" "" .`, ""}, {"NAPTR", `1 2 "S"`, ""}, {"NAPTR", `1 2 S SIP+D2U .`, ""},
		{"CERT", "1 0 5 dGVzdA==", "PKIX 0 RSASHA1 dGVzdA=="}, {"CERT", "1 0", ""}, {"CERT", "1 0 5 !!", ""},
		{"HTTPS", "1 . alpn=h2", `1 . alpn="h2"`}, {"HTTPS", "x . alpn=h2", ""}, {"HTTPS", "1 www.example.net", ""},
		{"SVCB", "0 svc.example.net.", "0 svc.example.net."},
		{"SVCB", "1 . mandatory=alpn alpn=h2", `1 . mandatory="alpn" alpn="h2"`},
		{"SVCB", "1 . mandatory=alpn,port alpn=h2", ""}, {"HTTPS", "1 . mandatory=ipv4hint alpn=h2", ""},
		{"HTTPS", "1 . mandatory=mandatory alpn=h2", ""},
		{"HTTPS", "1 . mandatory=key65000 key65000=a", `1 . mandatory="key65000" key65000="a"`},
		{"TLSA", "3 1 1 " + sha256, "3 1 1 " + sha256}, {"TLSA", "3 1 2 " + sha512, "3 1 2 " + sha512},
		{"TLSA", "3 1 1 " + sha512, ""}, {"TLSA", "3 1 2 " + sha256, ""}, {"TLSA", "3 1 1 abcd", ""},
		{"TLSA", "3 1 1 abc", ""}, {"TLSA", "3 1 0 abc", ""}, {"TLSA", "3 1 1", ""}, {"TLSA", "256 1 0 abcd", ""},
		{"TLSA", "255 255 255 abcd", "255 255 255 abcd"}, {"TLSA", "3 1 0 ABCD", "3 1 0 abcd"}, {"TLSA", "3 1 0 xyz0", ""},
		{"TLSA", "3 1 1 (" + sha256[:32] + "\n\t" + sha256[32:] + " )", "3 1 1 " + sha256},
		{"TLSA", "3  1\t1 " + sha256[:8] + " " + sha256[8:], "3 1 1 " + sha256},
		{"LOC", "51 30 12.748 N 0 7 39.611 W 0m 0m 0m 0m", "51 30 12.748 N 00 07 39.611 W 0m 0.00m 0.00m 0.00m"},
		{"TYPE65400", `\# 2 abcd`, `\# 2 abcd`}, {"TYPE65400", `abcd`, ""},
		{"ANY", "x", ""}, {"a", "192.0.2.1", ""}, {"ALIAS", "example.net", ""}, {"ALIAS", "192.0.2.1", ""},
		{"alias", "example.net.", ""}, {"ALIAS", ".", ""}, {"TYPE1", "192.0.2.1", ""}, {"TYPE0", `\# 0`, ""},
	}
	for i, tt := range tests {
		name := fmt.Sprintf("n%d.example.org.", i)
		if tt.typ == "SRV" {
			name = "_sip._udp." + name
		}
		if tt.typ == "TLSA" {
			name = "_443._tcp." + name
		}
		b, _ := json.Marshal(map[string]any{"name": name, "type": tt.typ, "records": []string{tt.record}})
		res := s.do(request{as: alice, call: "POST " + z + "/recordsets", body: string(b)})
		if tt.shown == "" {
			if res.Code != 400 || res.str("type") != "invalid_object" {
				t.Errorf("%s %q = %d %s, want it refused", tt.typ, tt.record, res.Code, res.Body)
			}
			continue
		}
		if got, _ := res.json["records"].([]any); res.Code != 202 || len(got) != 1 || got[0] != tt.record {
			t.Errorf("%s %q = %d %s, want the record as it was sent", tt.typ, tt.record, res.Code, res.Body)
			continue
		}
		if got := s.canonical(res.str("id")); got != tt.shown {
			t.Errorf("%s %q is stored as %q, want %q", tt.typ, tt.record, got, tt.shown)
		}
	}
}

// TestRecordSetRules checks which names record sets may have, and which sets may be changed.
func TestRecordSetRules(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	s.zone("child.example.org.")
	s.set(z, "a.example.org.", "A", "192.0.2.1")
	s.set(z, "c.example.org.", "CNAME", "a.example.org.")
	tests := []struct {
		name, body string
		status     int
		kind       string
	}{
		{"outside", `{"name":"a.example.net.","type":"A","records":["192.0.2.1"]}`, 400, "invalid_recordset_location"},
		{"label boundary", `{"name":"xexample.org.","type":"A","records":["192.0.2.1"]}`, 400, "invalid_recordset_location"},
		{"in a child zone", `{"name":"www.child.example.org.","type":"A","records":["192.0.2.1"]}`, 400,
			"invalid_recordset_location"},
		{"at a child zone", `{"name":"child.example.org.","type":"A","records":["192.0.2.1"]}`, 400,
			"invalid_recordset_location"},
		{"delegation to a child zone", `{"name":"child.example.org.","type":"NS","records":["ns.example.net."]}`, 202, ""},
		{"CNAME at the apex", `{"name":"example.org.","type":"CNAME","records":["a.example.org."]}`, 400,
			"invalid_recordset_location"},
		{"CNAME beside A", `{"name":"a.example.org.","type":"CNAME","records":["b.example.org."]}`, 400,
			"invalid_recordset_location"},
		{"A beside CNAME", `{"name":"c.example.org.","type":"A","records":["192.0.2.1"]}`, 400, "invalid_recordset_location"},
		{"two CNAME", `{"name":"d.example.org.","type":"CNAME","records":["a.example.org.","b.example.org."]}`, 400,
			"bad_request"},
		{"SOA", `{"name":"example.org.","type":"SOA","records":["a. b. 1 2 3 4 5"]}`, 400, "bad_request"},
		{"duplicate", `{"name":"A.example.org.","type":"A","records":["192.0.2.2"]}`, 409, "duplicate_recordset"},
		{"apex NS", `{"name":"example.org.","type":"NS","records":["ns.example.net."]}`, 409, "duplicate_recordset"},
		{"wildcard", `{"name":"*.example.org.","type":"A","records":["192.0.2.2"]}`, 202, ""},
		{"wildcard inside", `{"name":"a.*.example.org.","type":"A","records":["192.0.2.2"]}`, 400, "invalid_object"},
		{"wildcard NS", `{"name":"*.w.example.org.","type":"NS","records":["ns.example.net."]}`, 400, "invalid_object"},
		{"SRV without service", `{"name":"srv.example.org.","type":"SRV","records":["0 0 1 a.example.org."]}`, 400,
			"invalid_object"},
		{"SRV with one label", `{"name":"_sip.example.org.","type":"SRV","records":["0 0 1 a.example.org."]}`, 400,
			"invalid_object"},
		{"TLSA port", `{"name":"_65536._tcp.example.org.","type":"TLSA","records":["3 1 1 ` + strings.Repeat("ab", 32) +
			`"]}`, 400, "invalid_object"},
		{"no type", `{"name":"e.example.org.","records":[]}`, 400, "invalid_object"},
		{"null in records", `{"name":"e.example.org.","type":"A","records":[null]}`, 400, "invalid_object"},
		{"records no list", `{"name":"e.example.org.","type":"A","records":"192.0.2.1"}`, 400, "invalid_object"},
		{"unknown key", `{"name":"e.example.org.","type":"A","records":[],"colour":"red"}`, 400, "invalid_object"},
		{"empty set", `{"name":"e.example.org.","type":"A","records":[]}`, 202, ""},
		{"no dot", `{"name":"e.example.org","type":"A","records":[]}`, 400, "invalid_object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.do(request{as: alice, call: "POST " + z + "/recordsets", body: tt.body})
			if res.Code != tt.status || tt.kind != "" && res.str("type") != tt.kind {
				t.Errorf("POST %s = %d %s, want %d %s", tt.body, res.Code, res.Body, tt.status, tt.kind)
			}
		})
	}
}

func TestRecordSetUpdate(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	set := s.set(z, "a.example.org.", "A", "192.0.2.1", "192.0.2.2", "192.0.2.1")
	res := s.as(alice, 202, "PUT "+set, `{"ttl":60}`)
	if diff := cmp.Diff([]any{"192.0.2.1", "192.0.2.2"}, res.json["records"]); diff != "" || res.json["ttl"] != 60.0 {
		t.Errorf("PUT of a ttl: %s", res.Body)
	}
	before := s.as(alice, 200, "GET "+z, "").json["serial"]
	s.as(alice, 202, "PUT "+set, `{"ttl":60,"records":["192.0.2.2","192.0.2.1"]}`)
	if after := s.as(alice, 200, "GET "+z, "").json["serial"]; after != before {
		t.Errorf("a PUT of the same values stepped the serial from %v to %v", before, after)
	}
	res = s.as(alice, 202, "PUT "+set, `{"records":[]}`)
	if len(res.json["records"].([]any)) != 0 {
		t.Error(res.Body)
	}
	for _, body := range []string{`{"name":"b.example.org."}`, `{"type":"AAAA"}`, `{"zone_id":"x"}`, `{"x":1}`,
		`{"records":["x"]}`, `{"ttl":true}`} {
		if res := s.as(alice, 400, "PUT "+set, body); res.str("type") != "invalid_object" {
			t.Errorf("PUT %s = %s", body, res.Body)
		}
	}
	s.as(alice, 202, "PUT "+set, `{"name":"a.example.org.","type":"A","records":["192.0.2.9"]}`)
	s.as(alice, 202, "DELETE "+set, "")
	s.as(alice, 404, "DELETE "+set, "")
}

func TestManagedSets(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	list := s.as(alice, 200, "GET "+z+"/recordsets", "")
	soa, ns := z+"/recordsets/"+list.items("recordsets", "id")[0], z+"/recordsets/"+list.items("recordsets", "id")[1]
	const edit, all = "X-Designate-Edit-Managed-Records: true", "X-Auth-All-Projects: true"
	s.as(alice, 400, "DELETE "+soa, "")
	s.as(admin, 400, "DELETE "+soa, "", edit, all)
	s.as(admin, 400, "PUT "+soa, `{"ttl":5}`, edit, all)
	s.as(alice, 400, "DELETE "+ns, "")
	s.as(alice, 400, "PUT "+ns, `{"records":["ns9.example.net."]}`)
	s.as(alice, 403, "PUT "+ns, `{"records":["ns9.example.net."]}`, edit)
	s.as(alice, 403, "PUT "+ns+"?edit_managed_records=true", `{"records":["ns9.example.net."]}`)
	s.as(admin, 202, "PUT "+ns, `{"records":["ns9.example.net."]}`, edit, all)
	s.as(admin, 202, "PUT "+ns+"?edit_managed_records=true", `{"records":["ns8.example.net."]}`, all)
	if res := s.as(admin, 400, "DELETE "+ns, "", edit, all); res.str("type") != "invalid_recordset_location" {
		t.Error("a zone without NS cannot be served:", res.Body)
	}
}

// TestRecordQuota checks the quotas of records and record sets.
func TestRecordQuota(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	records := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(`"192.0.2.%d"`, i))
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	body := func(n int) string { return `{"name":"a.example.org.","type":"A","records":` + records(n) + `}` }
	if res := s.as(alice, 413, "POST "+z+"/recordsets", body(21)); res.str("type") != "over_quota" {
		t.Error(res.Body)
	}
	id := s.as(alice, 202, "POST "+z+"/recordsets", body(20)).str("id")
	s.as(alice, 413, "PUT "+z+"/recordsets/"+id, `{"records":`+records(21)+`}`)
	s.as(admin, 200, "PATCH /v2/quotas/p1", `{"recordset_records":-1,"zone_recordsets":4}`, "X-Auth-All-Projects: true")
	s.as(alice, 202, "PUT "+z+"/recordsets/"+id, `{"records":`+records(100)+`}`)
	s.set(z, "b.example.org.", "A", "192.0.2.1")
	s.as(alice, 413, "POST "+z+"/recordsets", `{"name":"c.example.org.","type":"A","records":["192.0.2.1"]}`)
	s.as(alice, 413, "POST "+z+"/changes", `{"changes":[{"action":"delete","name":"b.example.org.","type":"A"},
		{"action":"create","name":"c.example.org.","type":"A"},{"action":"create","name":"d.example.org.","type":"A"}]}`)
	s.as(alice, 200, "POST "+z+"/changes", `{"changes":[{"action":"delete","name":"b.example.org.","type":"A"},
		{"action":"create","name":"c.example.org.","type":"A"}]}`)
}

// TestRecordQuotaOfAdministrators checks that the quotas of records hold for a tenant in every request, for an
// administrator in none, and that they never refuse another TTL.
func TestRecordQuotaOfAdministrators(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	own := admin
	own.Project = alice.Project
	list := func(n int) string {
		records := `["192.0.2.1"`
		for i := range n - 1 {
			records += fmt.Sprintf(`,"192.0.2.%d"`, i+2)
		}
		return records + "]"
	}
	set := func(name string, n int) string {
		return fmt.Sprintf(`"name":"%s.example.org.","type":"A","records":%s}`, name, list(n))
	}
	file := zoneText
	for i := range 21 {
		file += fmt.Sprintf("many 300 IN A 192.0.2.%d\n", i)
	}
	for name, who := range map[string]httpapi.Caller{"a.example.": alice, "b.example.": own} {
		want := map[string]string{"a.example.": "ERROR", "b.example.": "COMPLETE"}[name]
		if res := s.imports(who, strings.ReplaceAll(file, "example.org.", name), ""); res.str("status") != want {
			t.Errorf("import by %s: %s, want %s", who.Who, res.Body, want)
		}
	}
	s.as(alice, 413, "POST "+z+"/recordsets", "{"+set("a", 21))
	id := s.as(own, 202, "POST "+z+"/recordsets", "{"+set("a", 21)).str("id")
	s.as(alice, 202, "PUT "+z+"/recordsets/"+id, `{"ttl":600}`)
	s.as(alice, 202, "PUT "+z+"/recordsets/"+id, `{"ttl":900,"records":`+list(21)+`}`)
	s.as(alice, 200, "POST "+z+"/changes", `{"changes":[{"action":"delete","name":"a.example.org.","type":"A"},
		{"action":"create","ttl":300,`+set("a", 21)+`]}`)
	s.as(alice, 413, "POST "+z+"/changes", `{"changes":[{"action":"upsert",`+set("a", 22)+`]}`)
	s.as(own, 200, "POST "+z+"/changes", `{"changes":[{"action":"upsert",`+set("a", 22)+`]}`)
}

// TestFindRecordSet checks the redirect from the id of a record set to its URL.
func TestFindRecordSet(t *testing.T) {
	s := newServer(t, designate.Settings{})
	set := s.set(s.zone("example.org."), "a.example.org.", "A", "192.0.2.1")
	id := set[strings.LastIndex(set, "/")+1:]
	if got := s.as(alice, 301, "GET /v2/recordsets/"+id, "").Header().Get("Location"); got != "http://dns.test"+set {
		t.Errorf("Location = %q", got)
	}
	s.as(bob, 404, "GET /v2/recordsets/"+id, "")
	s.as(alice, 400, "GET /v2/recordsets/x", "")
}

// TestEntityTags checks ETag, If-Match and If-None-Match.
func TestEntityTags(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	set := s.set(z, "a.example.org.", "A", "192.0.2.1")
	tag := s.as(alice, 200, "GET "+set, "").Header().Get("ETag")
	if res := s.as(alice, 304, "GET "+set, "", "If-None-Match: "+tag); res.Body.Len() != 0 {
		t.Error("304 with a body")
	}
	s.as(alice, 200, "GET "+set, "", `If-None-Match: "x"`)
	next := s.as(alice, 202, "PUT "+set, `{"ttl":60}`, "If-Match: "+tag).Header().Get("ETag")
	if res := s.as(alice, 412, "PUT "+set, `{"ttl":61}`, "If-Match: "+tag); res.str("type") != "precondition_failed" {
		t.Error(res.Body)
	}
	s.as(alice, 412, "DELETE "+set, "", "If-Match: "+tag)
	if got := s.as(alice, 200, "GET "+set, "").Header().Get("ETag"); got != next {
		t.Errorf("GET has tag %s, PUT said %s", got, next)
	}
	s.as(alice, 202, "PUT "+set, `{"ttl":62}`, `If-Match: "other", `+next)
	s.as(alice, 202, "PUT "+set, `{"ttl":63}`, "If-Match: *")
	ztag := s.as(alice, 200, "GET "+z, "").Header().Get("ETag")
	s.as(alice, 304, "GET "+z, "", "If-None-Match: W/"+ztag)
	s.as(alice, 202, "PATCH "+z, `{"description":"x"}`, "If-Match: "+ztag)
	s.as(alice, 412, "PATCH "+z, `{"description":"y"}`, "If-Match: "+ztag)
	s.as(alice, 412, "DELETE "+z, "", "If-Match: "+ztag)
}

func TestEntityTagsOneWins(t *testing.T) {
	s := newServer(t, designate.Settings{})
	set := s.set(s.zone("example.org."), "a.example.org.", "A", "192.0.2.1")
	tag := s.as(alice, 200, "GET "+set, "").Header().Get("ETag")
	codes := make([]int, 16)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() {
			codes[i] = s.do(request{alice, "PUT " + set, fmt.Sprintf(`{"ttl":%d}`, 100+i), []string{"If-Match: " + tag}}).Code
		})
	}
	wg.Wait()
	count := map[int]int{}
	for _, c := range codes {
		count[c]++
	}
	if count[202] != 1 || count[412] != len(codes)-1 {
		t.Errorf("statuses %v, want one 202", count)
	}
}
