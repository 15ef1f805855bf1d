package designate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/httpapi"
)

// TestAliasDetail checks that tenants see why a lookup failed, but not which resolvers of the operator were asked.
func TestAliasDetail(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		path := s.alias(s.zone("example.org."), "example.org.", "cdn.example.net.")
		s.wait(5 * time.Second)
		if err := s.net.MustServer("192.0.2.53", "").Do("fault servfail"); err != nil {
			t.Fatal(err)
		}
		s.wait(10 * time.Minute)
		s.wantState(path, "STALE", "NONE", "servfail")
		for _, tt := range []struct {
			who     httpapi.Caller
			servers bool // the caller sees which servers were asked
			headers []string
		}{{alice, false, nil}, {admin, true, []string{"X-Auth-All-Projects: true"}}} {
			res := s.as(tt.who, 200, "GET "+path, "", tt.headers...)
			known, _ := res.json["alias"].(map[string]any)
			family := known["families"].(map[string]any)["A"].(map[string]any)
			for _, detail := range []any{known["detail"], family["detail"]} {
				text, _ := detail.(string)
				if !strings.HasPrefix(text, "the resolvers cannot look up the target") ||
					strings.Contains(text, "192.0.2.53") != tt.servers {
					t.Errorf("%s sees %q", tt.who.Who, text)
				}
			}
		}
	})
}
