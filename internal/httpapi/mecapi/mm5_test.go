package mecapi_test

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
)

// TestMm5 calls every operation of nameplane's own Mm5 API.
func TestMm5(t *testing.T) {
	const id = "ac4cd7be-debc-4244-a2a5-1598225927b9"
	const sent = `{"dnsRuleId":"` + id +
		`","domainName":"www.example.com","ipAddressType":"IP_V4","ipAddress":"172.16.189.14","ttl":30}`
	const on = `{"dnsRuleId":"` + id +
		`","domainName":"www.example.com","ipAddressType":"IP_V4","ipAddress":"172.16.189.14","ttl":30,"state":"ACTIVE"}`
	off := strings.Replace(on, `"ACTIVE"`, `"INACTIVE"`, 1)
	s := newServer(t, mecapi.API{})
	const all = "/mep/config/app1/dns_rules"
	const one = all + "/" + id

	s.want(s.as(platform, 200, "GET "+all, "").json, "[]")
	made := s.as(platform, 201, "POST "+all, sent)
	s.want(made.json, on)
	if got := made.Header().Get("Location"); got != "http://192.0.2.53"+one {
		t.Errorf("Location %q", got)
	}
	s.as(platform, 409, "POST "+all, sent)
	s.want(s.as(platform, 200, "GET "+one, "").json, on)
	s.want(s.as(platform, 200, "GET "+all, "").json, "["+on+"]")
	s.want(s.as(admin, 200, "PUT "+one, `{"state":"INACTIVE"}`).json, off)
	s.want(s.as(platform, 200, "PUT "+one, strings.Replace(sent, "14", "15", 1)).json, strings.Replace(off, "14", "15", 1))
	s.as(platform, 412, "DELETE "+one, "", "If-Match: "+made.Header().Get("ETag"))
	s.as(platform, 204, "DELETE "+one, "")
	s.as(platform, 404, "DELETE "+one, "")
	s.as(platform, 404, "PUT "+one, `{"state":"ACTIVE"}`)

	minted := s.as(platform, 201, "POST "+all,
		`{"domainName":"*.app.example","ipAddressType":"IPv6","ipAddress":"2001:db8::7"}`).json
	if id := minted.(map[string]any)["dnsRuleId"]; len(id.(string)) != 36 {
		t.Errorf("id %v of a rule that was sent without", id)
	}
	for _, who := range []string{"POST " + all, "GET " + all, "DELETE " + one, "GET /mep/config",
		"DELETE /mep/config/app1"} {
		s.as(app1, 403, who, sent)
		s.as(member, 403, who, sent)
	}
	s.as(platform, 405, "PATCH "+one, sent)
	s.as(platform, 415, "POST "+all, sent, "Content-Type: ", "Origin: https://example.org")
}

// TestAllRules replaces all rules of an application at once, and sets the state of all.
func TestAllRules(t *testing.T) {
	s := newServer(t, mecapi.API{})
	const all = "/mep/config/app1/dns_rules"
	on := strings.Replace(rule2, "INACTIVE", "ACTIVE", 1)
	s.want(s.as(platform, 200, "PUT "+all, "["+rule1+","+rule2+"]").json, "["+rule1+","+rule2+"]")
	s.want(s.as(platform, 200, "PUT "+all, `{"state":"ACTIVE"}`).json, "["+rule1+","+on+"]")
	s.want(s.as(platform, 200, "PUT "+all, "["+on+"]").json, "["+on+"]")
	s.want(s.as(platform, 200, "GET "+all, "").json, "["+on+"]")
	for _, bad := range []struct{ body, detail string }{
		{"[" + rule1 + "," + strings.Replace(rule2, "2001:db8::1", "2001:db8::x", 1) + "]", "[1].ipAddress: "},
		{"[" + rule1 + "," + rule1 + "]", "[1].dnsRuleId: "},
		{`[1]`, "[0]: "},
		{`{"state":"ON"}`, "state: "},
		{`{"state":"ACTIVE","ttl":1}`, "body: "},
		{rule1, "body: "},
		{`7`, "body: "},
	} {
		if got := s.as(platform, 400, "PUT "+all, bad.body).detail(); !strings.HasPrefix(got, bad.detail) {
			t.Errorf("PUT %s: %q, want %q", bad.body, got, bad.detail)
		}
	}
	s.want(s.as(platform, 200, "GET "+all, "").json, "["+on+"]")
	s.want(s.as(platform, 200, "PUT "+all, "[]").json, "[]")
	s.want(s.as(platform, 200, "PUT "+all, `{"state":"ACTIVE"}`).json, "[]")
}

// TestSpecialAddresses checks that rules cannot have an address that a NAT64 of the operator translates to a metadata
// service.
func TestSpecialAddresses(t *testing.T) {
	s := startServer(t, mecapi.API{EdgeGallery: true},
		mec.Options{Special: specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}})
	const all = "/mep/config/app1/dns_rules"
	s.as(platform, 200, "PUT "+all, "["+rule2+"]")
	with := func(addr string) string { return strings.Replace(rule2, "2001:db8::1", addr, 1) }
	bad := with("2a0f:64::169.254.169.254")
	for call, body := range map[string]string{"POST " + all: bad, "PUT " + all: "[" + bad + "]", "PUT " + all + "/r2": bad,
		"POST /mepcfg/mec_app_config/v1/rules/app1/dns_rules":          bad,
		"POST /mepcfg/app_lcm/v1/applications/app2/appd_configuration": `{"appName":"a","appDNSRule":[` + bad + `]}`} {
		if got := s.as(platform, 400, call, body).detail(); !strings.Contains(got, "metadata") {
			t.Errorf("%s: %s", call, got)
		}
	}
	s.as(platform, 200, "PUT "+all+"/r2", with("2a0f:64::9.9.9.9"))
}

func TestApps(t *testing.T) {
	s := newServer(t, mecapi.API{})
	s.want(s.as(platform, 200, "GET /mep/config", "").json,
		`{"applications":[],"links":{"self":"http://192.0.2.53/mep/config"}}`)
	for i := range 5 {
		s.rule(fmt.Sprintf("app%d", i), strings.Replace(rule1, "www", fmt.Sprint("w", i), 1))
	}
	var seen []string
	path := "/mep/config?limit=2"
	for range 3 {
		page := s.as(platform, 200, "GET "+path, "").json.(map[string]any)
		for _, a := range page["applications"].([]any) {
			seen = append(seen, a.(map[string]any)["appInstanceId"].(string))
		}
		next, _ := page["links"].(map[string]any)["next"].(string)
		u, err := url.Parse(next)
		if err != nil {
			t.Fatal(err)
		}
		path = u.RequestURI()
	}
	if got := strings.Join(seen, " "); got != "app0 app1 app2 app3 app4" || path != "/" {
		t.Errorf("applications %s, and then %q", got, path)
	}
	s.want(s.as(platform, 200, "GET /mep/config?marker=app3", "").json.(map[string]any)["applications"],
		`[{"appInstanceId":"app4","subscriptions":0,"dnsRules":[`+strings.Replace(rule1, "www", "w4", 1)+`]}]`)
	for _, limit := range []string{"0", "-1", "x"} {
		s.as(platform, 400, "GET /mep/config?limit="+limit, "")
	}
	s.as(platform, 204, "DELETE /mep/config/app0", "")
	s.as(platform, 404, "DELETE /mep/config/app0", "")
	s.want(s.as(platform, 200, "GET /mep/config/app0/dns_rules", "").json, "[]")
	s.rule("events", rule1)
	s.as(platform, 204, "DELETE /mep/config/events", "")
}
