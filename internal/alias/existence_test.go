package alias_test

import (
	"fmt"
	"testing"
)

// The names that exist decide which names a wildcard covers, whatever the record type that makes them exist.
func TestExistenceChanges(t *testing.T) {
	const wild = "A 50 203.0.113.9"
	tests := []struct{ name, put, status string }{
		{"a cut beside the name", "x.b.example.net. 60 NS ns.example.org.", "STALE nxdomain"},
		{"a DNAME beside the name", "x.b.example.net. 60 DNAME example.org.", "STALE nxdomain"},
		{"a wildcard beside the name", "*.x.b.example.net. 60 TXT x", "STALE nxdomain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, cdn)
				r.zone("example.net.", "*.example.net. 50 A 203.0.113.9")
				r.zone("example.org.", "example.org. 300 ALIAS a.b.example.net.")
				r.want("example.org.", "ACTIVE", wild)
				r.must(r.put(tt.put))
				r.wait(0)
				r.want("example.org.", tt.status, wild)
			})
		})
	}
	t.Run("a wildcard of another type", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			r := start(t, cdn)
			r.zone("example.net.", "a.example.net. 50 A 203.0.113.9")
			r.zone("example.org.", "example.org. 300 ALIAS a.example.net.")
			r.must(r.drop("a.example.net.", "A"))
			r.want("example.org.", "STALE nxdomain", wild)
			r.must(r.put("*.example.net. 60 NS ns.example.org."))
			r.want("example.org.", "ERROR nodata", "")
		})
	})
}

// An ALIAS in the middle of other paths is deleted. Its flattened records do not count as records, in whatever order
// the aliases are flattened.
func TestMiddleAliasDeleted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		r.zone("example.net.", "www.example.net. 60 A 203.0.113.1", "a.example.net. 60 ALIAS www.example.net.")
		for i := range 8 { // the order of zones is random
			z := fmt.Sprintf("z%d.test.", i)
			r.zone(z, z+" 300 ALIAS a.example.net.")
		}
		r.must(r.drop("a.example.net.", "ALIAS"))
		for i := range 8 {
			r.want(fmt.Sprintf("z%d.test.", i), "STALE nxdomain", "A 60 203.0.113.1")
		}
	})
}
