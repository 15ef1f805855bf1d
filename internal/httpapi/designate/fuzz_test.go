package designate_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/store"
)

// FuzzBodies sends arbitrary bytes to every route. There must be no panic and no status of 500 or more. Every error
// must be JSON, and a request with an error must not change the zone.
func FuzzBodies(f *testing.F) {
	bodies := []string{"", "{}", "null", "[]",
		`{"name":"a.example.org.","type":"A","records":["192.0.2.1"],"ttl":1,"description":null}`,
		`{"name":"fuzz.test.","email":"a@fuzz.test","ttl":1e400,"masters":[null],"attributes":{"a":1}}`,
		`{"changes":[{"action":"upsert","name":"example.org.","type":"CNAME","records":["\\\\"]},null,{}]}`,
		`{"changes":[{"action":"delete","name":"example.org.","type":"NS","if_match":"*"}]}`,
		`{"serial":4294967295}`, `{"key":"x","zone_transfer_request_id":"00000000-0000-4000-8000-000000000000"}`,
		`{"zonefile":"$ORIGIN a.test.\n@ 1 IN SOA a. . 1 2 3 4 5\n@ 1 NS a.\n"}`, "$TTL 1\n@ SOA", zoneText,
		`{"pattern":"((((a*)*)*)*)","name":"` + strings.Repeat("*.", 200) + `"}`, `{"target_project_id":"p2"}`,
		`{"zones":-9223372036854775809}`, `{"name":"p","ns_records":[{"hostname":"a.","priority":1},null,[]]}`,
		"{\"name\":\"\\u0000\\ud800\"}", `{"records":["\"\\\""],"type":"TXT","name":"t.example.org."}`}
	s := newServer(f, designate.Settings{MaxImport: 1 << 16})
	zone := strings.TrimPrefix(s.zone("example.org."), "/v2/zones/")
	set := s.set("/v2/zones/"+zone, "www.example.org.", "A", "192.0.2.1")
	routes := designate.Routes()
	for i := range routes {
		for _, b := range bodies {
			f.Add(uint8(i), "limit=2&name=*", b)
		}
	}
	path := strings.NewReplacer("{zone_id}", zone, "{recordset_id}", set[strings.LastIndex(set, "/")+1:],
		"{id}", "00000000-0000-4000-8000-000000000000", "{project_id}", "p0")
	f.Fuzz(func(t *testing.T, route uint8, query, body string) {
		r := routes[int(route)%len(routes)]
		if strings.ContainsAny(query, "#\x7f") || strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' }) {
			return // the HTTP server refuses such requests
		}
		if r.Method == "DELETE" && strings.HasSuffix(r.Pattern, "_id}") || strings.HasSuffix(r.Pattern, "/abandon") {
			return // the test needs the zone later
		}
		for _, media := range []string{"application/json", "text/dns"} {
			res := s.do(request{admin, r.Method + " " + path.Replace(r.Pattern) + "?" + query, body,
				[]string{"Content-Type: " + media, "X-Auth-Sudo-Project-ID: p1"}})
			if res.Code >= 500 && !strings.Contains(res.Body.String(), "too many imports") {
				t.Errorf("%s %s?%s %q = %d %s", r.Method, r.Pattern, query, body, res.Code, res.Body)
			}
			// The serial can change meanwhile: imports and changes of pools continue after their replies.
			if id := res.Header().Get("X-Openstack-Request-Id"); res.Code >= 400 && s.lastChange(t, zone) == id {
				t.Errorf("%s %s?%s %q = %d, and the zone is changed", r.Method, r.Pattern, query, body, res.Code)
			}
			if res.Code >= 400 && (res.json["code"] != float64(res.Code) || res.str("type") == "") {
				t.Errorf("%s %s: error body %s", r.Method, r.Pattern, res.Body)
			}
		}
	})
}

// lastChange returns the request that made the last change of a zone.
func (s *server) lastChange(t testing.TB, id string) (request string) {
	t.Helper()
	err := s.pub.View(func(v store.View) error {
		return v.Changes(uuid.MustParse(id), 0, func(ch store.Change) (bool, error) {
			request = ch.Actor.RequestID
			return false, nil
		})
	})
	if err != nil || request == "" {
		t.Fatalf("the history of zone %s has no request: %v", id, err)
	}
	return request
}
