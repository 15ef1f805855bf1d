package designate_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
)

// file is the zone as a file, without its serial.
func (s *server) file(zone string) string {
	s.t.Helper()
	id := s.as(alice, 202, "POST "+zone+"/tasks/export", "").str("id")
	return s.as(alice, 200, "GET /v2/zones/tasks/exports/"+id+"/export", "").Body.String()
}

func withoutSerial(file string) string {
	head, rest, _ := strings.Cut(file, " IN SOA ")
	f := strings.SplitN(rest, " ", 4)
	return head + " IN SOA " + f[0] + " " + f[1] + " " + f[3]
}

func (s *server) serial(zone string) string {
	s.t.Helper()
	return fmt.Sprintf("%.0f", s.as(alice, 200, "GET "+zone, "").json["serial"])
}

func TestChanges(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	a := s.set(z, "a.example.org.", "A", "192.0.2.1")
	s.set(z, "c.example.org.", "CNAME", "a.example.org.")
	tag := s.as(alice, 200, "GET "+a, "").Header().Get("ETag")
	before := s.file(z)
	bad := []struct {
		name, body string
		status     int
		kind, path string
	}{
		{"no list", `{}`, 400, "invalid_object", `["changes"]`},
		{"list of numbers", `{"changes":[1]}`, 400, "invalid_object", `["changes",0]`},
		{"unknown action", `{"changes":[{"action":"x","name":"a.example.org.","type":"A"}]}`, 400, "invalid_object", `["changes",0,"action"]`},
		{"unknown type", `{"changes":[{"action":"upsert","name":"a.example.org.","type":"X"}]}`, 400, "invalid_object", `["changes",0,"type"]`},
		{"unknown key", `{"changes":[{"action":"upsert","name":"a.example.org.","type":"A","x":1}]}`, 400, "invalid_object", `["changes",0]`},
		{"bad record in the second", `{"changes":[{"action":"upsert","name":"b.example.org.","type":"A","records":["192.0.2.1"]},
			{"action":"upsert","name":"d.example.org.","type":"A","records":["192.0.2.1","x"]}]}`, 400, "invalid_object", `["changes",1,"records",1]`},
		{"second exists", `{"changes":[{"action":"create","name":"b.example.org.","type":"A","records":["192.0.2.1"]},
			{"action":"create","name":"a.example.org.","type":"A","records":["192.0.2.1"]}]}`, 409, "duplicate_recordset", `["changes",1]`},
		{"update of nothing", `{"changes":[{"action":"update","name":"b.example.org.","type":"A","records":["192.0.2.1"]}]}`, 404, "recordset_not_found", `["changes",0]`},
		{"delete of nothing", `{"changes":[{"action":"delete","name":"b.example.org.","type":"A"}]}`, 404, "recordset_not_found", `["changes",0]`},
		{"old tag", `{"changes":[{"action":"delete","name":"a.example.org.","type":"A","if_match":"\"x\""}]}`, 412, "precondition_failed", `["changes",0]`},
		{"SOA", `{"changes":[{"action":"delete","name":"example.org.","type":"SOA"}]}`, 400, "bad_request", `["changes",0]`},
		{"outside", `{"changes":[{"action":"create","name":"example.net.","type":"A"}]}`, 400, "invalid_recordset_location", `["changes",0]`},
		{"CNAME beside A at the end", `{"changes":[{"action":"create","name":"a.example.org.","type":"CNAME","records":["b.example.org."]}]}`, 400, "invalid_recordset_location", ""},
	}
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			res := s.do(request{as: alice, call: "POST " + z + "/changes", body: tt.body})
			flat := string(bytes.ReplaceAll(res.Body.Bytes(), []byte(" "), nil))
			if res.Code != tt.status || res.str("type") != tt.kind || !strings.Contains(flat, tt.path) {
				t.Errorf("%s = %d %s, want %d %s %s", tt.body, res.Code, res.Body, tt.status, tt.kind, tt.path)
			}
		})
	}
	if diff := cmp.Diff(before, s.file(z)); diff != "" {
		t.Errorf("refused batches changed the zone: %s", diff)
	}
	serial := s.serial(z)
	s.as(alice, 200, "POST "+z+"/changes", fmt.Sprintf(`{"changes":[
		{"action":"delete","name":"a.example.org.","type":"A","if_match":%q},
		{"action":"create","name":"a.example.org.","type":"CNAME","records":["b.example.org."]},
		{"action":"upsert","name":"b.example.org.","type":"A","ttl":5,"records":["192.0.2.9"]},
		{"action":"upsert","name":"b.example.org.","type":"A","records":["192.0.2.8"]},
		{"action":"delete","name":"c.example.org.","type":"CNAME"},
		{"action":"create","name":"c.example.org.","type":"A","records":["192.0.2.7"]}]}`, tag))
	got := s.file(z)
	for _, line := range []string{"a 3600 IN CNAME b.example.org.", "b 5 IN A 192.0.2.8", "c 3600 IN A 192.0.2.7"} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("the zone lacks %q:\n%s", line, got)
		}
	}
	history := s.as(alice, 200, "GET "+z+"/history?limit=1", "").json["history"].([]any)[0].(map[string]any)
	if got := fmt.Sprintf("%.0f", history["serial_from"]); got != serial {
		t.Errorf("the batch went from serial %s, want %s", got, serial)
	}
}

// TestChangesIfMatch wants a batch to be made only on the zone that its writer has seen.
func TestChangesIfMatch(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	batch := func(address, tag string) response {
		return s.do(request{alice, "POST " + z + "/changes", fmt.Sprintf(
			`{"changes":[{"action":"upsert","name":"a.example.org.","type":"A","records":[%q]}]}`, address), []string{"If-Match: " + tag}})
	}
	tag := s.as(alice, 200, "GET "+z, "").Header().Get("ETag")
	first := batch("192.0.2.1", tag)
	if second := batch("192.0.2.2", tag); first.Code != 200 || second.Code != 412 || second.str("type") != "precondition_failed" {
		t.Errorf("two batches with one tag: %d, then %d %s", first.Code, second.Code, second.Body)
	}
	for _, tag := range []string{first.Header().Get("ETag"), "*"} {
		if res := batch("192.0.2.3", tag); res.Code != 200 {
			t.Errorf("batch with If-Match %s = %d %s", tag, res.Code, res.Body)
		}
	}
}

func TestHistory(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	first, firstFile := s.serial(z), s.file(z)
	a := s.set(z, "a.example.org.", "A", "192.0.2.1")
	s.set(z, "b.example.org.", "MX", "10 a.example.org.")
	second, secondFile := s.serial(z), s.file(z)
	s.as(alice, 200, "PUT "+a, `{"records":["192.0.2.2"],"ttl":7}`)
	s.as(alice, 200, "PATCH "+z, `{"email":"other@example.net"}`)
	s.as(alice, 202, "DELETE "+a, "")
	third, thirdFile := s.serial(z), s.file(z)
	s.as(alice, 200, "PATCH "+z, `{"description":"no new serial"}`)

	pages := s.follow(z+"/history?limit=2", "history", "note")
	want := [][]string{{"update zone", "delete record set"}, {"update zone", "update record set"}, {"create record set", "create record set"}, {"create zone"}}
	if diff := cmp.Diff(want, pages); diff != "" {
		t.Errorf("history: %s", diff)
	}
	res := s.as(alice, 200, "GET "+z+"/history/diff?from="+second+"&to="+third, "")
	if diff := cmp.Diff([]string{"a.example.org.", "example.org."}, res.items("recordsets", "name")); diff != "" {
		t.Errorf("diff: %s", diff)
	}
	back := s.as(alice, 200, "GET "+z+"/history/diff?from="+third+"&to="+first, "")
	if diff := cmp.Diff([]string{"b.example.org.", "example.org."}, back.items("recordsets", "name")); diff != "" {
		t.Errorf("diff backwards: %s", diff)
	}
	for _, q := range []string{"", "?from=1", "?from=x&to=2", "?from=1&to=99999999999"} {
		s.as(alice, 400, "GET "+z+"/history/diff"+q, "")
	}
	s.as(alice, 400, "GET "+z+"/history?marker=x", "")
	s.as(alice, 400, "GET "+z+"/history?limit=0", "")

	for _, tt := range []struct{ serial, file string }{{second, secondFile}, {third, thirdFile}, {first, firstFile}, {second, secondFile}} {
		before := s.serial(z)
		s.as(alice, 200, "POST "+z+"/history/rollback", `{"serial":`+tt.serial+`}`)
		if diff := cmp.Diff(withoutSerial(tt.file), withoutSerial(s.file(z))); diff != "" {
			t.Errorf("rollback to %s: %s", tt.serial, diff)
		}
		if s.serial(z) == before {
			t.Errorf("rollback to %s left the serial", tt.serial)
		}
	}
	if got := s.as(alice, 200, "GET "+z, "").str("email"); got != "host.master@example.org" {
		t.Errorf("email after rollback is %q", got)
	}
	before := s.serial(z)
	s.as(alice, 200, "POST "+z+"/history/rollback", `{"serial":`+before+`}`)
	if s.serial(z) != before {
		t.Error("a rollback to the present stepped the serial")
	}
	s.as(alice, 202, "DELETE "+s.set(z, "gone.example.org.", "A", "192.0.2.1"), "")
	after := s.serial(z)
	s.as(alice, 200, "POST "+z+"/history/rollback", `{"serial":`+before+`}`)
	if s.serial(z) != after {
		t.Error("a rollback that changes nothing stepped the serial")
	}
	for body, status := range map[string]int{`{"serial":5}`: 409, `{"serial":0}`: 409, `{}`: 400, `{"serial":-1}`: 400, `{"serial":"x"}`: 400} {
		s.as(alice, status, "POST "+z+"/history/rollback", body)
	}
	s.as(alice, 412, "POST "+z+"/history/rollback", `{"serial":`+first+`}`, `If-Match: "x"`)
}

// A change that was too large to keep ends the history.
func TestHistoryEnds(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	first := s.serial(z)
	s.as(alice, 200, "PATCH "+z, `{"ttl":60}`) // every set's TTL
	s.set(z, "a.example.org.", "A", "192.0.2.1")
	if res := s.as(alice, 409, "POST "+z+"/history/rollback", `{"serial":`+first+`}`); res.str("type") != "history_incomplete" {
		t.Error(res.Body)
	}
	s.as(alice, 409, "GET "+z+"/history/diff?from="+first+"&to="+s.serial(z), "")
}
