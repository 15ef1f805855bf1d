package daemon

import (
	"strings"
	"testing"
)

// TestTerminatedTokens terminates an application through both APIs. Its tokens must be invalid from then on; the tokens
// of other applications must stay valid.
func TestTerminatedTokens(t *testing.T) {
	h := openServer(t, nil)
	at := h.Endpoints()
	tokens := map[string]string{"app-1": h.token("app", "app-1"), "app-2": h.token("app", "app-2"),
		"app-3": h.token("app", "app-3")}
	second := h.token("app", "app-1")
	h.addRule()
	want := func(app, token string, status int) {
		t.Helper()
		if code, body := h.call(plain, at.Apps, "GET", "/applications/"+app+"/dns_rules", token, ""); code != status {
			t.Errorf("%s reads its rules: %d %s, want %d", app, code, body, status)
		}
	}
	for app, token := range tokens {
		want(app, token, 200)
	}
	if code, body := h.call(plain, at.MEP, "DELETE", "/mep/config/app-1", h.token("platform", ""), ""); code != 204 {
		t.Fatalf("terminate: %d %s", code, body)
	}
	h.do("DELETE", "/mep/mec_app_support/v1/applications/app-2/AppInstanceTermination", "")
	want("app-1", tokens["app-1"], 401)
	want("app-1", second, 401)
	want("app-2", tokens["app-2"], 401)
	want("app-3", tokens["app-3"], 200)
}

// TestSilencedRules checks that the log warns of rules that a zone silences, whichever was created first.
func TestSilencedRules(t *testing.T) {
	h := openServer(t, nil)
	h.addRule()
	h.do("POST", "/v2/zones", `{"name":"example.org.","email":"a@example.org"}`)
	if strings.Contains(h.log.String(), "silence") || strings.Contains(h.log.String(), "warning=") {
		t.Errorf("the log warns of nothing:\n%s", h.log)
	}
	h.do("POST", "/v2/zones", `{"name":"example.com.","email":"a@example.org"}`)
	h.do("POST", "/mep/config/app-2/dns_rules",
		strings.ReplaceAll(strings.Replace(someRule, "example.com", "example.org", 1), "camera", "gate"))
	for _, want := range []string{
		`level=WARN msg="a zone silences rules of edge applications" zone=example.com. names=1 ` +
			`who="token admin" api=designate request_id=req-`,
		`level=WARN msg="a zone silences what was asked for" ` +
			`warning="rule one for gate.example.org. is not answered while zone example.org. is there" ` +
			`who="token admin" request_id=req-`,
	} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, h.log)
		}
	}
}
