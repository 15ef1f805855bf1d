package designate_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
)

// TestBlacklistPattern checks which patterns are refused, and who is bound by them.
func TestBlacklistPattern(t *testing.T) {
	s := newServer(t, designate.Settings{})
	long := `"` + strings.Repeat("a", 1000) + `"`
	for _, pattern := range []string{`""`, `null`, `5`, `"#(*&^%$%$#@$"`, long, `"(?=x)"`} {
		res := s.as(admin, 400, "POST /v2/blacklists", `{"pattern":`+pattern+`}`)
		if path, _ := firstProblem(res); path != "[pattern]" {
			t.Errorf("pattern %.20s: %s", pattern, res.Body)
		}
	}
	id := s.as(admin, 201, "POST /v2/blacklists", `{"pattern":"^bad\\."}`).str("id")
	s.as(admin, 400, "PATCH /v2/blacklists/"+id, `{"pattern":""}`)
	s.as(alice, 400, "POST /v2/zones", `{"name":"bad.example.org.","email":"a@example.org"}`)
	s.done(alice, "POST /v2/zones", `{"name":"good.example.org.","email":"a@example.org"}`)
	s.done(admin, "POST /v2/zones", `{"name":"bad.example.org.","email":"a@example.org"}`) // not bound by blacklists
	s.as(admin, 201, "POST /v2/tlds", `{"name":"net"}`)
	s.as(admin, 400, "POST /v2/zones", `{"name":"other.org.","email":"a@example.org"}`) // but by TLDs, as in Designate
}
