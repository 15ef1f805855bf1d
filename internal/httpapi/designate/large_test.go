package designate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
)

// longText returns a TXT record of about n bytes.
func longText(n int) string {
	return strings.TrimSpace(strings.Repeat(`"`+strings.Repeat("x", 255)+`" `, n/256))
}

// largeSets adds sixteen sets of 60 KiB to a zone in one batch. The TTL distinguishes batches.
func (s *server) largeSets(zone, prefix string, ttl int) {
	s.t.Helper()
	var changes []map[string]any
	for i := range 16 {
		changes = append(changes, map[string]any{"action": "upsert", "type": "TXT", "ttl": ttl,
			"name": fmt.Sprintf("%s%02d.example.org.", prefix, i), "records": []string{longText(60 << 10)}})
	}
	b, _ := json.Marshal(map[string]any{"changes": changes})
	s.as(alice, 200, "POST "+zone+"/changes", string(b))
}

// walk follows the links of a list from its first page and returns the values of a field on each page.
func (s *server) walk(call, list, field string) (pages [][]string) {
	s.t.Helper()
	for path := call; ; {
		res := s.as(alice, 200, "GET "+path, "")
		pages = append(pages, res.items(list, field))
		next, ok := res.json["links"].(map[string]any)["next"].(string)
		if !ok {
			return pages
		}
		path = strings.TrimPrefix(next, "http://dns.test")
	}
}

// TestLargePages checks that a page of large items is shorter than its limit, and that the pages together have every
// item once.
func TestLargePages(t *testing.T) {
	s := newLimitedServer(t, designate.Settings{}, quotas(func(q *publish.Quotas) { q.ZoneRecords = -1 }), nil)
	z := s.zone("example.org.")
	for i := range 3 {
		s.largeSets(z, string(rune('a'+i)), 300)
	}
	for _, name := range []string{"y.example.org.", "z.example.org."} { // the first page of the history
		s.set(z, name, "A", "192.0.2.1")
	}
	seen := func(call, list, field string, want int) {
		t.Helper()
		pages := s.walk(call, list, field)
		once := map[string]bool{}
		for _, page := range pages {
			for _, item := range page {
				once[item] = true
			}
		}
		if len(pages) < 2 || len(pages[0]) < 2 || len(once) != want {
			t.Errorf("GET %s: %d pages, %d on the first, %d items in all, want %d", call, len(pages), len(pages[0]), len(once),
				want)
		}
	}
	seen(z+"/recordsets?limit=max", "recordsets", "id", 52)
	seen(z+"/recordsets?limit=max&sort_key=type&sort_dir=desc&type=TXT", "recordsets", "id", 48)
	seen(z+"/history?limit=max", "history", "id", 6)

	var many []string // more than a list sorts in memory
	for i := range 2000 {
		many = append(many, fmt.Sprintf(`{"action":"create","name":"n%d.example.org.","type":"A","records":["192.0.2.1"]}`,
			i))
	}
	s.as(alice, 200, "POST "+z+"/changes", `{"changes":[`+strings.Join(many, ",")+`]}`)
	seen(z+"/recordsets?limit=max", "recordsets", "id", 2052)
	seen(z+"/recordsets?limit=max&sort_key=name", "recordsets", "id", 2052)
}

// TestLongRollback checks that a rollback over too much history is refused: all other changes would wait for it.
func TestLongRollback(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	first := s.serial(z)
	for i := range 10 {
		s.largeSets(z, "a", 300+i)
	}
	if res := s.as(alice, 409, "POST "+z+"/history/rollback",
		`{"serial":`+first+`}`); res.str("type") != "history_too_long" {
		t.Errorf("rollback: %s", res.Body)
	}
}

// TestSetFitsMessage checks that a set that fits in no DNS message is refused.
func TestSetFitsMessage(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	body := func(n int) string {
		b, _ := json.Marshal(map[string]any{"name": "a.example.org.", "type": "TXT",
			"records": []string{longText(n), longText(n) + ` "y"`}})
		return string(b)
	}
	s.as(alice, 400, "POST "+z+"/recordsets", body(33<<10))
	set := s.as(alice, 202, "POST "+z+"/recordsets", body(31<<10)).str("id")
	s.as(alice, 400, "PUT "+z+"/recordsets/"+set, strings.Replace(body(33<<10), `"name":"a.example.org.",`, "", 1))
	file := zoneText + "big TXT " + longText(33<<10) + "\nbig TXT " + longText(33<<10) + " y\n"
	if res := s.imports(alice, file, "?replace=true"); !strings.Contains(res.str("message"), "a message has room") {
		t.Errorf("import: %s", res.Body)
	}
}

func TestAttributesAreBounded(t *testing.T) {
	s := newServer(t, designate.Settings{})
	zone := func(attributes map[string]string) string {
		b, _ := json.Marshal(map[string]any{"name": "example.org.", "email": "a@example.org", "attributes": attributes})
		return string(b)
	}
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprint(i)] = ""
	}
	s.as(alice, 400, "POST /v2/zones", zone(many))
	s.as(alice, 400, "POST /v2/zones", zone(map[string]string{"a": strings.Repeat("x", 51)}))
	s.as(alice, 400, "POST /v2/zones", zone(map[string]string{strings.Repeat("x", 51): ""}))
	s.as(alice, 202, "POST /v2/zones", zone(map[string]string{"a": strings.Repeat("x", 50)}))
}
