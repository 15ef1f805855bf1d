package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHistoryPrinter checks the text for damaged changes, and that each record is printed with the TTL that the zone
// had at that time.
func TestHistoryPrinter(t *testing.T) {
	set := `"recordsets":[{"name":"a.test.","type":"A","before":null,"after":{"ttl":null,"records":["192.0.2.1"]}}]`
	author := `"created_at":"2026-11-15T03:02:00.000000","who":"w","note":"n"`
	var b strings.Builder
	h := &historyPrinter{w: &b, zoneTTL: 60, remaining: 9}
	for _, item := range []string{
		`{"id":"5",` + author + `,"serial_to":5,"complete":true,` + set + `}`,
		`{"id":"4",` + author + `,"serial_to":4,"complete":true,"zone_ttl":{"before":300,"after":60},"recordsets":[]}`,
		`{"id":"3","created_at":null,"complete":false,"damaged":true,"recordsets":[]}`,
		`{"id":"2",` + author + `,"serial_to":2,"complete":false,"damaged":true,"recordsets":[]}`,
		`{"id":"1",` + author + `,"serial_to":1,"complete":true,` + set + `}`,
	} {
		if err := h.page([]json.RawMessage{json.RawMessage(item)}); err != nil {
			t.Fatal(err)
		}
	}
	want := `serial 5  2026-11-15 03:02:00 UTC  w  n
+ a.test. 60 A 192.0.2.1

serial 4  2026-11-15 03:02:00 UTC  w  n
- $TTL 300
+ $TTL 60

change 3
  (damaged: its records cannot be read, and no rollback can go further back)

serial 2  2026-11-15 03:02:00 UTC  w  n
  (damaged: its records cannot be read, and no rollback can go further back)

serial 1  2026-11-15 03:02:00 UTC  w  n
+ a.test. 300 A 192.0.2.1
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
