package alias_test

import (
	"testing"
	"time"
)

// Only stale addresses are reported as stale: those of the failing family and those of a wildcard, not their
// neighbours.
func TestStaleAnswers(t *testing.T) {
	for _, tt := range []struct{ name, fault, want string }{
		{"nothing", "", ""},
		{"one family", "fault servfail cdn.example.net. AAAA", "AAAA"},
		{"both", "fault timeout", "A AAAA"},
		{"a loop", "drop cdn.example.net.|set cdn.example.net. 60 CNAME cdn.example.net.", "A AAAA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, cdn)
				server := r.net.MustServer(resolver, "")
				r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.", "example.org. 300 MX 10 mx.example.org.",
					"*.w.example.org. 300 ALIAS cdn.example.net.", "here.w.example.org. 300 A 192.0.2.1",
					"deep.here.w.example.org. 300 A 192.0.2.1")
				r.wait(time.Second)
				r.do(server, tt.fault)
				r.wait(10 * time.Minute)
				for owner, want := range map[string]string{"example.org.": tt.want, "any.w.example.org.": tt.want,
					"a.b.w.example.org.": tt.want,
					"*.w.example.org.":   tt.want, "w.example.org.": "", "here.w.example.org.": "", "other.here.w.example.org.": "",
					"example.com.": ""} {
					if got := r.stale(owner); got != want {
						t.Errorf("stale types of %s: %q, want %q", owner, got, want)
					}
				}
				r.do(server,
					"heal|drop cdn.example.net.|set cdn.example.net. 60 A 203.0.113.1|set cdn.example.net. 60 AAAA 2001:db8::1")
				r.wait(time.Hour)
				for _, owner := range []string{"example.org.", "any.w.example.org."} {
					if got := r.stale(owner); got != "" {
						t.Errorf("stale types of %s after recovery: %q", owner, got)
					}
				}
			})
		})
	}
}
