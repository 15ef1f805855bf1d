package alias_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/follow"
)

// TestFaultMatrix changes the addresses of a target while lookups of one or both families fail. It has 21 cells of
// seven faults, and cells of further faults. The record sets of the failing family must match the table; the other
// family must have the new addresses. The apex never loses all addresses. When the fault ends, no trace of it remains.
func TestFaultMatrix(t *testing.T) {
	const kept, moved, gone = "OLD", "NEW", ""
	tests := []struct{ fault, cause, rows string }{
		{"timeout", "timeout", kept},
		{"servfail", "servfail", kept},
		{"nxdomain", "nxdomain", kept},
		{"nodata", "", gone}, // an authority proves it
		{"bogus", "bogus", kept},
		{"truncate", "", moved}, // over TCP the reply is complete
		{"lame", "lame", kept},

		{"truncated", "truncated", kept},
		{"refused", "refused", kept},
		{"formerr", "formerr", kept},
		{"malformed", "malformed", kept},
		{"question", "timeout", kept},
		{"unreachable", "network", kept},
		{"empty", "nodata", kept},
	}
	for _, tt := range tests {
		for _, hit := range []follow.Family{follow.IPv4, follow.IPv6, follow.Both} {
			t.Run(fmt.Sprintf("%s/%v", tt.fault, hit), func(t *testing.T) {
				bubble(t, func(t *testing.T) { runCell(t, tt.fault, hit, tt.cause, tt.rows) })
			})
		}
	}
}

func runCell(t *testing.T, fault string, hit follow.Family, cause, rows string) {
	r := start(t, `
		zone example.net.
		cdn.example.net. 60 A 203.0.113.1
		cdn.example.net. 60 AAAA 2001:db8::1
		at 10s set cdn.example.net. 60 A 203.0.113.2
		at 10s set cdn.example.net. 60 AAAA 2001:db8::2
	`)
	server := r.net.MustServer(resolver, "")
	r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
	r.wait(time.Second)
	old := map[follow.Family]string{follow.IPv4: "A 60 203.0.113.1", follow.IPv6: "AAAA 60 2001:db8::1"}
	moved := map[follow.Family]string{follow.IPv4: "A 60 203.0.113.2", follow.IPv6: "AAAA 60 2001:db8::2"}
	var want []string
	for _, f := range []follow.Family{follow.IPv4, follow.IPv6} {
		text := moved[f]
		if f&hit != 0 {
			r.must(server.Do(fmt.Sprintf("at 10s fault %s cdn.example.net. %v", fault, f)))
			text = strings.NewReplacer("OLD", old[f], "NEW", moved[f]).Replace(rows)
		}
		if text != "" {
			want = append(want, text)
		}
	}
	status := "ACTIVE"
	switch {
	case len(want) == 0:
		status = "ERROR nodata"
	case cause != "":
		status = "STALE " + cause
	}
	r.wait(110 * time.Second)
	r.want("example.org.", status, strings.Join(want, ", "))
	r.must(server.Do("heal"))
	r.wait(10 * time.Minute)
	r.want("example.org.", "ACTIVE", moved[follow.IPv4]+", "+moved[follow.IPv6])
}

// TestFaultsAtFirst applies the same faults before the first success: the ALIAS is an error, and nothing is served.
func TestFaultsAtFirst(t *testing.T) {
	for fault, cause := range map[string]string{"timeout": "timeout", "servfail": "servfail", "nxdomain": "nxdomain",
		"nodata": "nodata", "bogus": "bogus",
		"lame": "lame", "truncated": "truncated", "refused": "refused", "malformed": "malformed", "empty": "nodata"} {
		t.Run(fault, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, cdn+"fault "+fault)
				r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
				r.wait(20 * time.Second)
				r.want("example.org.", "ERROR CREATE "+cause, "")
				r.must(r.net.MustServer(resolver, "").Do("heal"))
				r.wait(10 * time.Minute)
				r.want("example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
			})
		})
	}
}
