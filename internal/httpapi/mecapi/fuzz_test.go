package mecapi_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// FuzzBodies sends arbitrary bytes to every operation that has a body. There must be no panic and no status of 500 or
// more, and every error must be a problem document.
func FuzzBodies(f *testing.F) {
	cb := mecapi.NewCallbacks(nil, specialaddr.Table{}, false)
	s := startServer(f, mecapi.API{Callbacks: cb}, mec.Options{})
	s.rule("app1", rule1)
	var calls []string
	path := strings.NewReplacer("{app}", "app1", "{rule}", "r1")
	for _, r := range append(mecapi.Mp1Routes(), mecapi.Mm5Routes()...) {
		if r.Method == "PUT" || r.Method == "POST" {
			calls = append(calls, r.Method+" "+path.Replace(r.Pattern))
		}
	}
	for i := range calls {
		for _, b := range []string{"", "{}", "null", "[]", "[null]", rule1, rule2, "[" + rule1 + "]", `{"state":"ACTIVE"}`,
			descriptor("a", rule1),
			subscribeTo("http://[::1%25]:1/"), `{"ttl":1e400,"TTL":-0}`, `{"domainName":"\u0000\ud800"}`,
			`{"domainName":"xn--\u00fc.*"}`,
			`{"appDNSRule":[[[]]],"appTrafficRule":{}}`, `{"expiresAt":"0000-01-01T00:00:00Z"}`, strings.Repeat("[", 3000)} {
			f.Add(uint8(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		call := calls[int(which)%len(calls)]
		res := s.do(admin, call, body)
		if res.Code >= 500 {
			t.Errorf("%s %q = %d %s", call, body, res.Code, res.Body)
		}
		if res.Code >= 400 {
			res.checkProblem(t)
		}
	})
}
