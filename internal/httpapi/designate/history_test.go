package designate_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// file returns the zone as a zone file, without its serial.
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
		{"unknown action", `{"changes":[{"action":"x","name":"a.example.org.","type":"A"}]}`, 400, "invalid_object",
			`["changes",0,"action"]`},
		{"unknown type", `{"changes":[{"action":"upsert","name":"a.example.org.","type":"X"}]}`, 400, "invalid_object",
			`["changes",0,"type"]`},
		{"unknown key", `{"changes":[{"action":"upsert","name":"a.example.org.","type":"A","x":1}]}`, 400, "invalid_object",
			`["changes",0]`},
		{"bad record in the second", `{"changes":[
			{"action":"upsert","name":"b.example.org.","type":"A","records":["192.0.2.1"]},
			{"action":"upsert","name":"d.example.org.","type":"A","records":["192.0.2.1","x"]}]}`, 400,
			"invalid_object", `["changes",1,"records",1]`},
		{"second exists", `{"changes":[
			{"action":"create","name":"b.example.org.","type":"A","records":["192.0.2.1"]},
			{"action":"create","name":"a.example.org.","type":"A","records":["192.0.2.1"]}]}`, 409,
			"duplicate_recordset", `["changes",1]`},
		{"update of nothing", `{"changes":[{"action":"update","name":"b.example.org.","type":"A","records":["192.0.2.1"]}]}`,
			404, "recordset_not_found", `["changes",0]`},
		{"delete of nothing", `{"changes":[{"action":"delete","name":"b.example.org.","type":"A"}]}`, 404,
			"recordset_not_found", `["changes",0]`},
		{"old tag", `{"changes":[{"action":"delete","name":"a.example.org.","type":"A","if_match":"\"x\""}]}`, 412,
			"precondition_failed", `["changes",0]`},
		{"SOA", `{"changes":[{"action":"delete","name":"example.org.","type":"SOA"}]}`, 400, "bad_request", `["changes",0]`},
		{"outside", `{"changes":[{"action":"create","name":"example.net.","type":"A"}]}`, 400, "invalid_recordset_location",
			`["changes",0]`},
		{"CNAME beside A at the end", `{"changes":[{"action":"create","name":"a.example.org.","type":"CNAME",` +
			`"records":["b.example.org."]}]}`, 400, "invalid_recordset_location", ""},
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

// TestChangesIfMatch checks that a batch with If-Match applies only to the zone that its writer has read.
func TestChangesIfMatch(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	batch := func(address, tag string) response {
		return s.do(request{alice, "POST " + z + "/changes", fmt.Sprintf(
			`{"changes":[{"action":"upsert","name":"a.example.org.","type":"A","records":[%q]}]}`, address),
			[]string{"If-Match: " + tag}})
	}
	tag := s.as(alice, 200, "GET "+z, "").Header().Get("ETag")
	first := batch("192.0.2.1", tag)
	if second := batch("192.0.2.2", tag); first.Code != 200 || second.Code != 412 ||
		second.str("type") != "precondition_failed" {
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
	s.as(alice, 202, "PUT "+a, `{"records":["192.0.2.2"],"ttl":7}`)
	s.as(alice, 202, "PATCH "+z, `{"email":"other@example.net"}`)
	s.as(alice, 202, "DELETE "+a, "")
	third, thirdFile := s.serial(z), s.file(z)
	s.as(alice, 202, "PATCH "+z, `{"description":"no new serial"}`)

	pages := s.follow(z+"/history?limit=2", "history", "note")
	want := [][]string{{"update zone", "delete record set"}, {"update zone", "update record set"},
		{"create record set", "create record set"}, {"create zone"}}
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

	for _, tt := range []struct{ serial, file string }{{second, secondFile}, {third, thirdFile}, {first, firstFile},
		{second, secondFile}} {
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
	for body, status := range map[string]int{`{"serial":5}`: 409, `{"serial":0}`: 409, `{}`: 400, `{"serial":-1}`: 400,
		`{"serial":"x"}`: 400} {
		s.as(alice, status, "POST "+z+"/history/rollback", body)
	}
	s.as(alice, 412, "POST "+z+"/history/rollback", `{"serial":`+first+`}`, `If-Match: "x"`)
}

// TestHistoryEnds checks that the history ends at a change that was too large to keep.
func TestHistoryEnds(t *testing.T) {
	s := newLimitedServer(t, designate.Settings{}, quotas(func(q *publish.Quotas) { q.ZoneRecords = -1 }), nil)
	z := s.zone("example.org.")
	first := s.serial(z)
	var gone []string
	for _, prefix := range []string{"a", "b", "c", "d", "e"} {
		s.largeSets(z, prefix, 300)
		for i := range 16 {
			gone = append(gone, fmt.Sprintf(`{"action":"delete","name":"%s%02d.example.org.","type":"TXT"}`, prefix, i))
		}
	}
	s.as(alice, 200, "POST "+z+"/changes", `{"changes":[`+strings.Join(gone, ",")+`]}`)
	s.set(z, "a.example.org.", "A", "192.0.2.1")
	if res := s.as(alice, 409, "POST "+z+"/history/rollback",
		`{"serial":`+first+`}`); res.str("type") != "history_incomplete" {
		t.Error(res.Body)
	}
	s.as(alice, 409, "GET "+z+"/history/diff?from="+first+"&to="+s.serial(z), "")
}

// TestHistoryZoneTTL checks that diff and rollback work across changes of the zone's own TTL.
func TestHistoryZoneTTL(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	s.set(z, "a.example.org.", "A", "192.0.2.1")
	var serials, files []string
	keep := func() { serials, files = append(serials, s.serial(z)), append(files, s.file(z)) }
	keep()
	s.as(alice, 202, "PATCH "+z, `{"ttl":60,"email":"other@example.net"}`)
	keep()
	s.set(z, "b.example.org.", "A", "192.0.2.2")
	s.as(alice, 202, "PATCH "+z, `{"ttl":70}`)
	s.as(alice, 202, "PATCH "+z, `{"ttl":80}`)
	keep()
	res := s.as(alice, 200, "GET "+z+"/history/diff?from="+serials[0]+"&to="+serials[2], "")
	if diff := cmp.Diff(map[string]any{"before": 3600.0, "after": 80.0}, res.json["zone_ttl"]); diff != "" {
		t.Errorf("TTL in the comparison: %s", diff)
	}
	if diff := cmp.Diff([]string{"b.example.org.", "example.org."}, res.items("recordsets", "name")); diff != "" {
		t.Errorf("comparison: %s", diff)
	}
	for _, i := range []int{0, 2, 1, 0, 1, 2} {
		s.as(alice, 200, "POST "+z+"/history/rollback", `{"serial":`+serials[i]+`}`)
		if diff := cmp.Diff(withoutSerial(files[i]), withoutSerial(s.file(z))); diff != "" {
			t.Errorf("rollback to %s: %s", serials[i], diff)
		}
	}
	entry := s.as(alice, 200, "GET "+z+"/history?limit=1", "").json["history"].([]any)[0].(map[string]any)
	want := map[string]any{"before": 60.0, "after": 80.0}
	if diff := cmp.Diff(want, entry["zone_ttl"]); diff != "" || entry["complete"] != true {
		t.Errorf("complete: %v, zone_ttl: %s", entry["complete"], diff)
	}
}

// spoil overwrites a change in the history of a zone.
func (s *server) spoil(zone, change string, damage func(row []byte) []byte) {
	s.t.Helper()
	n, err := strconv.ParseUint(change, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	key := store.JournalKey(uuid.MustParse(strings.TrimPrefix(zone, "/v2/zones/")), n)
	err = s.st.Update(func(w store.Writer) error { return w.Put(store.Journal, key, damage(w.Get(store.Journal, key))) })
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestHistoryDamaged checks that an unreadable change is reported, and that the rest of the history is still listed.
func TestHistoryDamaged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		note   string // the note of the damaged change
		damage func(row []byte) []byte
	}{
		{"all of it", "", func([]byte) []byte { return []byte{0xff, 0xff, 0xff} }},
		{"no bytes", "", func([]byte) []byte { return nil }},
		{"its end", "create record set", func(row []byte) []byte { return row[:len(row)-3] }},
		{"its sets", "create record set", func(row []byte) []byte {
			at := bytes.LastIndex(row, []byte("create record set")) + len("create record set") + 12
			return append(bytes.Clone(row[:at]), bytes.Repeat([]byte{0xff}, len(row)-at)...)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { testHistoryDamaged(t, tt.note, tt.damage) })
	}
}

func testHistoryDamaged(t *testing.T, note string, damage func(row []byte) []byte) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	first := s.serial(z)
	s.set(z, "a.example.org.", "A", "192.0.2.1")
	second, secondFile := s.serial(z), s.file(z)
	s.set(z, "b.example.org.", "A", "192.0.2.2")
	list := s.as(alice, 200, "GET "+z+"/history", "").json["history"].([]any)
	s.spoil(z, list[1].(map[string]any)["id"].(string), damage)

	for range 2 {
		res := s.as(alice, 200, "GET "+z+"/history", "")
		if diff := cmp.Diff([]string{"create record set", note, "create zone"}, res.items("history", "note")); diff != "" {
			t.Errorf("history: %s", diff)
		}
		bad := res.json["history"].([]any)[1].(map[string]any)
		if bad["damaged"] != true || bad["complete"] != false || len(bad["recordsets"].([]any)) != 0 {
			t.Errorf("damaged change: %v", bad)
		}
	}
	if pages := s.follow(z+"/history?limit=1", "history", "note"); len(pages) != 3 {
		t.Errorf("pages: %v", pages)
	}
	res := s.as(alice, 409, "POST "+z+"/history/rollback", `{"serial":`+first+`}`)
	if res.str("type") != "history_damaged" || !strings.Contains(res.str("message"), "goes back to serial "+second) {
		t.Errorf("rollback over it: %s", res.Body)
	}
	s.as(alice, 409, "GET "+z+"/history/diff?from="+first+"&to="+second, "")
	if n := strings.Count(s.log.String(), "is damaged"); n != 1 {
		t.Errorf("the log has the change %d times:\n%s", n, s.log)
	}
	s.as(alice, 200, "POST "+z+"/history/rollback", `{"serial":`+second+`}`)
	if diff := cmp.Diff(withoutSerial(secondFile), withoutSerial(s.file(z))); diff != "" {
		t.Errorf("rollback to after it: %s", diff)
	}
}

// TestHistoryDamagedData checks that a readable row with invalid record data is not restored.
func TestHistoryDamagedData(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	set := s.set(z, "b.example.org.", "MX", "10 mail.example.net.")
	first := s.serial(z)
	s.as(alice, 202, "DELETE "+set, "")
	id := s.as(alice, 200, "GET "+z+"/history?limit=1", "").items("history", "id")[0]
	s.spoil(z, id, func(row []byte) []byte { return bytes.Replace(row, []byte("\x04mail"), []byte("\x24mail"), 1) })
	res := s.as(alice, 409, "POST "+z+"/history/rollback", `{"serial":`+first+`}`)
	if res.str("type") != "history_damaged" || !strings.Contains(res.str("message"), "b.example.org. MX") {
		t.Errorf("rollback: %s", res.Body)
	}
	s.as(alice, 200, "GET "+z+"/history", "")
}

// TestHistoryRandomDamage damages changes at random. The list must always answer, and a rollback must succeed or say
// why it fails.
func TestHistoryRandomDamage(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	first := s.serial(z)
	s.as(alice, 200, "POST "+z+"/changes", `{"changes":[
		{"action":"create","name":"a.example.org.","type":"MX","records":["10 b.example.org."],"description":"d"},
		{"action":"create","name":"b.example.org.","type":"A","records":["192.0.2.1"],"ttl":7},
		{"action":"create","name":"c.example.org.","type":"CAA","records":["0 issue \"ca.example.net\""]}]}`)
	id := s.as(alice, 200, "GET "+z+"/history?limit=1", "").items("history", "id")[0]
	var whole []byte
	s.spoil(z, id, func(row []byte) []byte { whole = bytes.Clone(row); return row })
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		s.spoil(z, id, func([]byte) []byte {
			row := bytes.Clone(whole)
			for range 1 + rnd.IntN(3) {
				row[rnd.IntN(len(row))] = byte(rnd.Uint32())
			}
			return row
		})
		s.as(alice, 200, "GET "+z+"/history", "")
		res := s.do(request{as: alice, call: "GET " + z + "/history/diff?from=" + first + "&to=" + s.serial(z)})
		if res.Code != 200 && res.Code != 409 {
			t.Fatalf("comparison: %d %s", res.Code, res.Body)
		}
	}
}

// TestHistoryGap checks that a rollback notices a missing change.
func TestHistoryGap(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	first := s.serial(z)
	s.set(z, "a.example.org.", "A", "192.0.2.1")
	s.set(z, "b.example.org.", "A", "192.0.2.2")
	s.set(z, "c.example.org.", "A", "192.0.2.3")
	err := s.st.Update(func(w store.Writer) error {
		n := 0
		var gone []byte
		w.Scan(store.Journal, nil, nil, func(key, _ []byte) bool { gone = bytes.Clone(key); n++; return n < 3 })
		return w.Delete(store.Journal, gone)
	})
	if err != nil {
		t.Fatal(err)
	}
	if res := s.as(alice, 409, "POST "+z+"/history/rollback",
		`{"serial":`+first+`}`); res.str("type") != "history_incomplete" {
		t.Error(res.Body)
	}
}
