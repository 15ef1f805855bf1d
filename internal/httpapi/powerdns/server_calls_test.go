package powerdns_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/httpapi/powerdns"
)

func TestDiscovery(t *testing.T) {
	s := newServer(t)
	if got := s.want(200, alice, "GET /api", "").Body.String(); got != `[{"url":"/api/v1","version":1}]` {
		t.Error(got)
	}
	s.want(200, alice, "GET /api/v1", "")
	s.want(200, alice, "GET /api/v1/servers", "")
	got := s.want(200, alice, "GET /api/v1/servers/localhost", "").json["version"].(string)
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(got) {
		t.Errorf("clients read the version as three numbers: %q", got)
	}
	s.want(200, alice, "GET /config", "")
	if got := s.want(200, admin, "GET /statistics?statistic=uptime", "").Body.String(); got !=
		`[{"name":"uptime","type":"StatisticItem","value":"7"}]` {
		t.Error(got)
	}
	s.want(422, admin, "GET /statistics?statistic=none", "")
	if got := s.want(200, alice, "PUT /cache/flush?domain=example.org.", "").json["result"]; got != "Flushed cache." {
		t.Error(got)
	}
}

func TestCommands(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	s.want(201, alice, "POST /zones", `{"name":"b.test.","kind":"Slave","masters":["192.0.2.1"]}`)
	if got := s.want(200, alice, "PUT /zones/example.org/notify", "").json["result"]; got != "Notification queued" {
		t.Error(got)
	}
	s.want(200, alice, "PUT /zones/example.org./rectify", "")
	s.want(200, alice, "PUT /zones/b.test./axfr-retrieve", "")
	if s.refreshed != 2 || !cmp.Equal(s.notified, []string{"example.org."}) {
		t.Errorf("%d transfers, notified %q", s.refreshed, s.notified)
	}
	if got := s.want(200, alice, "GET /zones/example.org./cryptokeys", "").Body.String(); got != "[]" {
		t.Error(got)
	}
	s.want(404, alice, "GET /zones/example.org./cryptokeys/1", "")
}

func TestMetadata(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	const path = "/zones/example.org./metadata"
	s.want(201, alice, "POST "+path, `{"kind":"X-OWNER","metadata":["a","b"]}`)
	if got := s.want(201, alice, "POST "+path, `{"kind":"X-OWNER","metadata":["b","c"]}`).json; !cmp.Equal(got,
		map[string]any{"kind": "X-OWNER", "metadata": []any{"a", "b", "c"}, "type": "Metadata"}) {
		t.Error(got)
	}
	s.want(200, alice, "PUT "+path+"/X-OWNER", `{"metadata":["z"]}`)
	var list []struct{ Kind string }
	if err := json.Unmarshal(s.want(200, alice, "GET "+path, "").Body.Bytes(), &list); err != nil || len(list) != 2 {
		t.Errorf("%v %v", list, err)
	}
	s.want(200, alice, "DELETE "+path+"/X-OWNER", "")
	if got := s.want(200, alice, "GET "+path+"/X-OWNER", "").json["metadata"]; !cmp.Equal(got, []any{}) {
		t.Error(got)
	}
	s.want(422, alice, "PUT "+path+"/X-A", `{"metadata":[1]}`)
	s.want(422, alice, "PUT "+path+"/X-A", `{"metadata":["`+strings.Repeat("x", 20<<10)+`"]}`)
}

func TestKeys(t *testing.T) {
	s := newServer(t)
	k := s.want(201, admin, "POST /tsigkeys", `{"name":"transfer","algorithm":"hmac-sha256"}`)
	if len(k.json["key"].(string)) != 88 || k.json["id"] != "transfer." {
		t.Error(k.Body)
	}
	s.want(409, admin, "POST /tsigkeys", `{"name":"Transfer.","algorithm":"hmac-sha256"}`)
	s.want(422, admin, "POST /tsigkeys", `{"name":"b","algorithm":"hmac-sha3"}`)
	s.want(422, admin, "POST /tsigkeys", `{"name":"b","algorithm":"hmac-sha256","key":"%%"}`)
	if got := s.want(200, admin, "GET /tsigkeys", "").Body.String(); strings.Contains(got, k.json["key"].(string)) ||
		!strings.Contains(got, `"name":"transfer"`) {
		t.Errorf("the list has the secret, or not the key: %s", got)
	}
	s.want(200, admin, "PUT /tsigkeys/transfer.", `{"name":"other","key":"c2VjcmV0"}`)
	s.want(404, admin, "GET /tsigkeys/transfer.", "")
	if got := s.want(200, admin, "GET /tsigkeys/other.", "").json["key"]; got != "c2VjcmV0" {
		t.Error(got)
	}
	if got := s.want(200, admin, "GET /v2/tsigkeys", "").Body.String(); !strings.Contains(got, `"name":"other"`) {
		t.Errorf("the zones API does not have the key: %s", got)
	}
	s.want(204, admin, "DELETE /tsigkeys/other.", "")
	s.want(404, admin, "DELETE /tsigkeys/other.", "")
}

func TestSearch(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	s.want(204, alice, "PATCH /zones/example.org.", `{"rrsets":[{"changetype":"REPLACE","name":"www.example.org.",
		"type":"A","ttl":60,"records":[{"content":"192.0.2.1"},{"content":"198.51.100.1"}],
		"comments":[{"content":"The Site","account":""}]}]}`)
	for query, want := range map[string]int{"q=www*": 3, "q=WWW.example.?rg": 3, "q=192.0.2.*": 1, "q=*site": 1,
		"q=example.org": 3, "q=*": 6, "q=*&object_type=zone": 1, "q=*&object_type=record&max=2": 2,
		"q=*&object_type=comment": 1, "q=none": 0} {
		var got []any
		res := s.want(200, alice, "GET /search-data?"+query, "")
		if err := json.Unmarshal(res.Body.Bytes(), &got); err != nil || len(got) != want {
			t.Errorf("%s finds %d (%v), want %d: %s", query, len(got), err, want, res.Body)
		}
	}
	s.want(422, alice, "GET /search-data?q=a&object_type=b", "")
	s.want(422, alice, "GET /search-data?q=a&max=0", "")
	s.want(422, alice, "GET /search-data?q="+strings.Repeat("a", 1025), "")
}

// FuzzBodies sends arbitrary bytes to every route. There must be no panic and no status of 500 or more. Every error
// must be JSON, and a request with an error must not change the zone.
func FuzzBodies(f *testing.F) {
	bodies := []string{"", "{}", "null", "[]", `{"rrsets":null}`, `{"rrsets":[null,{}]}`,
		replace("a.example.org.", "A", "192.0.2.1"), patch("EXTEND", "a.example.org.", "TXT", `"\\"`),
		patch("PRUNE", "*.example.org.", "TXT", `"`), patch("DELETE", "example.org.", "SOA"),
		replace("example.org.", "SOA", ". . 1 2 3 4 5"), replace("example.org.", "NS", "."),
		`{"name":"fuzz.test.","kind":"Slave","masters":[null,1,"192.0.2.1"]}`,
		`{"name":"fuzz.test.","kind":"Native","zone":"@ SOA a. b. 1 2 3 4 5","nameservers":[1]}`,
		`{"kind":"X-A","metadata":["a"]}`, `{"name":"k","algorithm":"hmac-sha256","key":"AA=="}`,
		`{"rrsets":[{"name":"example.org.","type":"SOA","ttl":"1","records":[{"content":"a. b. 1 2 3 4 5"}],` +
			`"comments":[{}]}]}`,
		"{\"name\":\"\\u0000\\ud800.\"}", `{"rrsets":[{"changetype":"replace","ttl":-1e300}]}`}
	s := newServer(f)
	s.zone("example.org.")
	routes := powerdns.Routes()
	for i := range routes {
		for _, b := range bodies {
			f.Add(uint8(i), "q=*&max=2&rrset_name=a", b)
		}
	}
	path := strings.NewReplacer("{zone_name}", "example.org.", "{kind}", "X-A", "{id}", "k.")
	f.Fuzz(func(t *testing.T, route uint8, query, body string) {
		r := routes[int(route)%len(routes)]
		if strings.ContainsAny(query, "#\x7f") || strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' }) {
			return // the HTTP server refuses such requests
		}
		if r.Method == "DELETE" && strings.HasSuffix(r.Pattern, "{zone_name}") {
			return // the test needs the zone later
		}
		before := s.serial(t, "example.org.")
		res := s.do(admin, r.Method+" "+path.Replace(r.Pattern)+"?"+query, body, "X-Auth-Sudo-Project-Id: p1")
		if after := s.serial(t, "example.org."); res.Code >= 400 && after != before {
			t.Errorf("%s %s?%s %q = %d, and the serial changes from %d to %d", r.Method, r.Pattern, query, body, res.Code,
				before, after)
		}
		if res.Code >= 500 {
			t.Errorf("%s %s?%s %q = %d %s", r.Method, r.Pattern, query, body, res.Code, res.Body)
		}
		if res.Code >= 400 && res.message() == "" {
			t.Errorf("%s %s: error body %s", r.Method, r.Pattern, res.Body)
		}
	})
}
