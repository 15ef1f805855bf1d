package mecapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
)

var bases = []string{"", "/mec_app_support/v1", "/mec_app_support/v2", "/mep/mec_app_support/v1"}

func TestMp1(t *testing.T) {
	s := newServer(t, mecapi.API{})
	s.rule("app1", rule1)
	s.rule("app1", rule2)
	for _, base := range bases {
		all := base + "/applications/app1/dns_rules"
		one := all + "/r1"
		s.want(s.as(app1, 200, "GET "+all, "").json, "["+rule1+","+rule2+"]")
		s.want(s.as(app1, 200, "GET "+one, "").json, rule1)
		s.want(s.as(admin, 200, "GET "+one, "").json, rule1)
		s.want(s.as(gateway, 200, "GET "+one, "").json, rule1)
		s.want(s.as(app2, 200, "GET "+base+"/applications/app2/dns_rules", "").json, "[]")
		s.as(app1, 404, "GET "+all+"/no-uuid", "")
		s.as(app1, 404, "PUT "+all+"/none", rule1)
		off := strings.Replace(rule1, `"ACTIVE"`, `"INACTIVE"`, 1)
		s.want(s.as(app1, 200, "PUT "+one, off).json, off)
		s.want(s.as(app1, 200, "PUT "+one, rule1).json, rule1)
		for _, method := range []string{"POST", "DELETE", "PATCH"} {
			if got := s.as(app1, 405, method+" "+one, rule1).Header().Get("Allow"); got != "GET, PUT" {
				t.Errorf("%s: Allow %q", method, got)
			}
			if got := s.as(app1, 405, method+" "+all, rule1).Header().Get("Allow"); got != "GET" {
				t.Errorf("%s: Allow %q", method, got)
			}
		}
		if res := s.as(app1, 200, "HEAD "+one, ""); res.Header().Get("ETag") == "" {
			t.Error("HEAD without ETag")
		}
	}
}

func TestMp1Callers(t *testing.T) {
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", rule1)
	s.as(app2, 403, "GET "+path, "")
	s.as(app2, 403, "PUT "+path, rule1)
	s.as(platform, 403, "GET "+path, "")
	s.as(member, 403, "GET "+path, "")
	s.as(app1, 400, "GET /applications/a%20b/dns_rules", "")
	s.as(app1, 400, "GET /applications/a%2fb/dns_rules", "")
	if got := s.as(app2, 403, "GET "+path, "").detail(); strings.Contains(got, "example.com") {
		t.Errorf("a stranger sees %q", got)
	}
}

func TestMp1Header(t *testing.T) {
	s := newServer(t, mecapi.API{EdgeGallery: true})
	path := s.rule("app1", rule1)
	s.as(app1, 401, "GET "+path, "")
	s.as(app1, 401, "GET "+path, "", "X-AppinstanceID: app2")
	s.as(app1, 200, "GET "+path, "", "X-AppinstanceID: app1")
	s.as(app1, 401, "GET "+path, "", "X-AppinstanceID: app1", "X-AppinstanceID: app2")
}

func TestEntityTags(t *testing.T) {
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", rule1)
	first := s.as(app1, 200, "GET "+path, "").Header().Get("ETag")
	if len(first) < 10 || first[0] != '"' || first[len(first)-1] != '"' {
		t.Fatalf("ETag %q is not a strong one", first)
	}
	if res := s.as(app1, 304, "GET "+path, "", "If-None-Match: "+first); res.Body.Len() != 0 ||
		res.Header().Get("ETag") != first {
		t.Errorf("304 with %q and %v", res.Body, res.Header())
	}
	s.as(app1, 304, "GET "+path, "", "If-None-Match: \"x\", W/"+first)
	s.as(app1, 200, "GET "+path, "", `If-None-Match: "x"`)
	off := strings.Replace(rule1, `"ACTIVE"`, `"INACTIVE"`, 1)
	second := s.as(app1, 200, "PUT "+path, off, "If-Match: "+first).Header().Get("ETag")
	if second == first || second == "" {
		t.Errorf("ETag after a change is %q", second)
	}
	s.as(app1, 412, "PUT "+path, rule1, "If-Match: "+first)
	s.as(app1, 412, "PUT "+path, "{nonsense", "If-Match: "+first)
	s.as(app1, 412, "PUT "+path, rule1, "If-Match: W/"+second)
	if got := s.as(app1, 200, "PUT "+path, off, "If-Match: "+second).Header().Get("ETag"); got != second {
		t.Errorf("the same again has ETag %q, want %q", got, second)
	}
	if got := s.as(app1, 200, "PUT "+path, rule1, "If-Match: *").Header().Get("ETag"); got != first {
		t.Errorf("what it was at first has ETag %q, want %q", got, first)
	}
	s.as(app1, 404, "PUT "+path+"x", rule1, "If-Match: *")
}

// TestNoChange checks that a PUT that changes nothing causes no event, and so no commit of a rule.
func TestNoChange(t *testing.T) {
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", rule1)
	before, err := s.service.Newest()
	if err != nil {
		t.Fatal(err)
	}
	s.as(app1, 200, "PUT "+path, rule1)
	s.as(app1, 400, "PUT "+path, strings.Replace(rule1, "ACTIVE", "UNKNOWN_VALUE", 1))
	if after, err := s.service.Newest(); err != nil || after != before {
		t.Errorf("events went from %d to %d, %v", before, after, err)
	}
}

// TestBadRules sends bad bodies with PUT on Mp1. Each changes nothing, and the error names the field.
func TestBadRules(t *testing.T) {
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", rule1)
	put := func(from, to string) string {
		t.Helper()
		if !strings.Contains(rule1, from) {
			t.Fatalf("no %s in the rule", from)
		}
		return strings.Replace(rule1, from, to, 1)
	}
	label := strings.Repeat("a", 63)
	domain := func(d string) string { return put("www.example.com", d) }
	tests := []struct{ name, body, field string }{
		{"state", put("ACTIVE", "UNKNOWN_VALUE"), "state"},
		{"state missing", put(`,"state":"ACTIVE"`, ""), "state"},
		{"state null", put(`"ACTIVE"`, "null"), "state"},
		{"state number", put(`"ACTIVE"`, "1"), "state"},
		{"other id", put(`"r1"`, `"r2"`), "dnsRuleId"},
		{"id missing", put(`"dnsRuleId":"r1",`, ""), "dnsRuleId"},
		{"IP_V6 with an IPv4 address", put("IP_V4", "IP_V6"), "ipAddress"},
		{"ttl is a string", put("30", `"?"`), "ttl"},
		{"ttl negative", put("30", "-1"), "ttl"},
		{"ttl fraction", put("30", "1.5"), "ttl"},
		{"ttl exponent", put("30", "1e400"), "ttl"},
		{"ttl too large", put("30", "4294967296"), "ttl"},
		{"ttl far too large", put("30", "99999999999999999999"), "ttl"},
		{"ttl list", put("30", "[30]"), "ttl"},
		{"type", put("IP_V4", "IPX"), "ipAddressType"},
		{"type missing", put(`"ipAddressType":"IP_V4",`, ""), "ipAddressType"},
		{"address", put("192.0.2.1", "192.0.2.256"), "ipAddress"},
		{"address missing", put(`"ipAddress":"192.0.2.1",`, ""), "ipAddress"},
		{"address with a port", put("192.0.2.1", "192.0.2.1:80"), "ipAddress"},
		{"multicast", put("192.0.2.1", "224.0.0.1"), "ipAddress"},
		{"broadcast", put("192.0.2.1", "255.255.255.255"), "ipAddress"},
		{"unspecified", put("192.0.2.1", "0.0.0.0"), "ipAddress"},
		{"domain missing", put(`"domainName":"www.example.com",`, ""), "domainName"},
		{"domain empty", domain(""), "domainName"},
		{"empty label", domain("a..example"), "domainName"},
		{"label of 64", domain(label + "a.example"), "domainName"},
		{"name of 254", domain(strings.Repeat(label+".", 3) + strings.Repeat("a", 62)), "domainName"},
		{"domain is a URL", domain("https://www.example.com/"), "domainName"},
		{"domain with a blank", domain("a b.example"), "domainName"},
		{"domain escaped", domain(`a\\.b.example`), "domainName"},
		{"twice", put(`"ttl":30`, `"ttl":30,"ttl":31`), "ttl"},
		{"twice in other case", put(`"ttl":30`, `"ttl":30,"TTL":31`), "TTL"},
		{"empty", "", "body"},
		{"no JSON", "{", "body"},
		{"more JSON", rule1 + rule1, "body"},
		{"list", "[" + rule1 + "]", "body"},
		{"null", "null", "dnsRuleId"},
		{"no UTF-8", put("www.example.com", "\xff"), "body"},
		{"too deep", put(`"ttl":30`, `"x":`+strings.Repeat("[", 20)+strings.Repeat("]", 20)), "body"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.as(app1, 400, "PUT "+path, tt.body)
			if got := res.detail(); !strings.HasPrefix(got, tt.field+": ") {
				t.Errorf("detail %q does not name %s", got, tt.field)
			}
		})
	}
	s.want(s.as(app1, 200, "GET "+path, "").json, rule1)
	s.as(app1, 413, "PUT "+path, put("www", strings.Repeat("a", 5000)))
	s.as(app1, 415, "PUT "+path, rule1, "Content-Type: text/plain")
	s.as(app1, 415, "PUT "+path, rule1, "Content-Type: application/x-www-form-urlencoded")
}

// TestGoodRules checks that valid rules are stored and shown in the form of the client.
func TestGoodRules(t *testing.T) {
	s := newServer(t, mecapi.API{})
	s.rule("app1", rule1)
	const path = "/mep/config/app1/dns_rules/r1"
	label := strings.Repeat("a", 63)
	for _, domain := range []string{"WWW.Example.COM", "www.example.com.", "b\u00fccher.example", label + ".example",
		strings.Repeat(label+".", 3) + strings.Repeat("a", 61), "*.app.example", "_x.example"} {
		body := strings.Replace(rule1, "www.example.com", domain, 1)
		s.want(s.as(platform, 200, "PUT "+path, body).json, body)
	}
	for _, ttl := range []string{"0", "1", "2147483648", "4294967295"} {
		body := strings.Replace(rule1, "30", ttl, 1)
		s.want(s.as(platform, 200, "PUT "+path, body).json, body)
	}
	without := strings.Replace(rule1, `"ttl":30,`, "", 1)
	s.want(s.as(platform, 200, "PUT "+path, without).json, without)
	s.want(s.as(platform, 200, "PUT "+path, strings.Replace(rule1, "30", "null", 1)).json, without)
	more := strings.Replace(rule1, `"ttl"`, `"priority":1,"x":{"y":[]},"ttl"`, 1)
	s.want(s.as(platform, 200, "PUT "+path, more, "Content-Type: application/json; charset=utf-8").json, rule1)
}

// granting returns a rule with a grantedDomain.
func granting(rule, domain string) string {
	return strings.Replace(rule, `"ttl"`, `"grantedDomain":"`+domain+`","ttl"`, 1)
}

// TestOwnState checks that an application may change the state of its rules, and nothing else without a grant.
func TestOwnState(t *testing.T) {
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", rule1)
	off := strings.Replace(rule1, `"ACTIVE"`, `"INACTIVE"`, 1)
	for field, change := range map[string][2]string{"domainName": {"www.example.com", "*.com"},
		"ipAddress": {"192.0.2.1", "192.0.2.2"},
		"ttl":       {"30", "31"}} {
		res := s.as(app1, 403, "PUT "+path, strings.Replace(off, change[0], change[1], 1))
		if !strings.HasPrefix(res.detail(), field+": ") || !strings.Contains(res.detail(), "grantedDomain") {
			t.Errorf("detail %q does not name %s and the solution", res.detail(), field)
		}
	}
	s.as(app1, 403, "PUT "+path, strings.Replace(strings.Replace(rule1, "192.0.2.1", "2001:db8::1", 1), "IP_V4", "IP_V6",
		1))
	s.want(s.as(app1, 200, "GET "+path, "").json, rule1)
	s.want(s.as(app1, 200, "PUT "+path, strings.Replace(off, "www.example.com", "WWW.example.com.", 1)).json, off)
	s.want(s.as(app1, 200, "PUT "+path, strings.Replace(rule1, `"ttl":30,`, "", 1)).json, rule1)
	s.as(app1, 403, "PUT "+path, granting(strings.Replace(rule1, "192.0.2.1", "192.0.2.2", 1), "example.com"))
	s.want(s.as(platform, 200, "GET /mep/config/app1/dns_rules/r1", "").json, rule1)
}

// TestGrant checks that an application may change a rule with a grant, but only within the granted domain. The grant
// itself can be changed only by the platform.
func TestGrant(t *testing.T) {
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", granting(rule1, "example.com."))
	shown := func(rule string) {
		t.Helper()
		s.want(s.as(app1, 200, "GET "+path, "").json, rule)
		s.want(s.as(platform, 200, "GET /mep/config/app1/dns_rules/r1", "").json, granting(rule, "example.com."))
	}
	shown(rule1)
	moved := strings.NewReplacer("www.example.com", "*.www.example.com", "192.0.2.1", "192.0.2.2", "30",
		"60").Replace(rule1)
	s.want(s.as(app1, 200, "PUT "+path, moved).json, moved)
	shown(moved)
	for _, name := range []string{"www.example.org", "*.com", "com", "notexample.com", "www.example.com.evil.test"} {
		res := s.as(app1, 403, "PUT "+path, strings.Replace(rule1, "www.example.com", name, 1))
		if !strings.HasPrefix(res.detail(), "domainName: ") {
			t.Errorf("detail %q", res.detail())
		}
	}
	s.want(s.as(app1, 200, "PUT "+path, granting(rule1, "com.")).json, rule1) // members that it cannot see do not change
	shown(rule1)
	s.as(platform, 400, "PUT /mep/config/app1/dns_rules/r1", granting(rule1, "example.org"))
	s.as(platform, 200, "PUT /mep/config/app1/dns_rules/r1", rule1)
	s.as(app1, 403, "PUT "+path, moved)
}

func TestStateOnly(t *testing.T) {
	const header = "X-AppinstanceID: app1"
	s := newServer(t, mecapi.API{EdgeGallery: true})
	path := s.rule("app1", rule1)
	off := strings.Replace(rule1, `"ACTIVE"`, `"INACTIVE"`, 1)
	s.want(s.as(app1, 200, "PUT "+path, off, header).json, off)
	s.want(s.as(app1, 200, "PUT "+path, `{"state":"ACTIVE"}`, header).json, rule1)
	s.want(s.as(app1, 200, "PUT "+path, strings.Replace(off, "www.example.com", "WWW.example.com.", 1), header).json, off)
	for field, change := range map[string][2]string{"ipAddress": {"192.0.2.1", "192.0.2.2"}, "ttl": {"30", "31"},
		"domainName": {"www", "other"}, "state": {"ACTIVE", "ON"}, "dnsRuleId": {`"r1"`, `"r3"`}} {
		res := s.as(app1, 400, "PUT "+path, strings.Replace(rule1, change[0], change[1], 1), header)
		if !strings.HasPrefix(res.detail(), field+": ") {
			t.Errorf("detail %q does not name %s", res.detail(), field)
		}
	}
	s.as(app1, 400, "PUT "+path, `{}`, header)
	s.want(s.as(app1, 200, "GET "+path, "", header).json, off)
}

// TestStateOnlyExtensions checks that a difference in a visible member is refused, and that other members are ignored.
func TestStateOnlyExtensions(t *testing.T) {
	for field, value := range map[string]string{"loadBalance": "true", "expiresAt": `"2999-01-01T00:00:00Z"`} {
		body := `{"state":"INACTIVE","` + field + `":` + value + `}`
		s := newServer(t, mecapi.API{EdgeGallery: true})
		path := s.rule("app1", rule1)
		if got := s.as(app1, 400, "PUT "+path, body, "X-AppinstanceID: app1").detail(); !strings.HasPrefix(got, field+": ") {
			t.Errorf("detail %q does not name %s", got, field)
		}
		s.as(platform, 400, "PUT /mepcfg/mec_app_config/v1/rules/app1/dns_rules/r1", body)
		s.want(s.as(app1, 200, "GET "+path, "", "X-AppinstanceID: app1").json, rule1)
	}
	s := newServer(t, mecapi.API{})
	s.as(app1, 200, "PUT "+s.rule("app1", rule1), strings.Replace(rule1, `"ttl"`, `"expiresAt":"soon","ttl"`, 1))
}

// TestExtensions checks that members which an application cannot see survive its changes.
func TestExtensions(t *testing.T) {
	const more = `{"dnsRuleId":"r1","domainName":"www.example.com","ipAddressType":"IP_V4","ipAddress":"192.0.2.1",
		"ttl":30,"state":"ACTIVE","loadBalance":true,"expiresAt":"2999-01-01T00:00:00Z"}`
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", more)
	s.want(s.as(app1, 200, "GET "+path, "").json, rule1)
	s.want(s.as(app1, 200, "PUT "+path, rule1).json, rule1)
	s.want(s.as(platform, 200, "GET /mep/config/app1/dns_rules/r1", "").json, more)

	const header = "X-AppinstanceID: app1"
	s = newServer(t, mecapi.API{EdgeGallery: true})
	path = s.rule("app1", more)
	s.want(s.as(app1, 200, "GET "+path, "", header).json, more)
	s.want(s.as(app1, 200, "PUT "+path, more, header).json, more)
	res := s.as(app1, 400, "PUT "+path, strings.Replace(more, "2999-01-01T00:00:00Z", "soon", 1), header)
	if !strings.HasPrefix(res.detail(), "expiresAt: ") {
		t.Errorf("detail %q", res.detail())
	}
}

// TestConflict checks that an application learns only that another application exists.
func TestConflict(t *testing.T) {
	s := newServer(t, mecapi.API{})
	s.rule("app1", rule1)
	theirs := s.rule("app2", granting(rule1, "example.com"))
	if got := s.as(app2, 409, "PUT "+theirs,
		strings.Replace(rule1, "192.0.2.1", "192.0.2.2", 1)).detail(); strings.Contains(got, "app1") ||
		!strings.Contains(got, "another application") {
		t.Errorf("an application sees %q", got)
	}
	other := strings.NewReplacer("192.0.2.1", "192.0.2.3", `"r1"`, `"r3"`).Replace(rule1)
	if got := s.as(platform, 409, "POST /mep/config/app3/dns_rules", other).detail(); !strings.Contains(got, "app1") &&
		!strings.Contains(got, "app2") {
		t.Errorf("the platform sees %q", got)
	}
	s.want(s.as(app2, 200, "GET "+theirs, "").json, rule1)
}

func TestTooMany(t *testing.T) {
	s := newServer(t, mecapi.API{})
	var list []string
	for i := range 1001 {
		list = append(list, fmt.Sprintf(
			`{"dnsRuleId":"r%d","domainName":"n%d.test","ipAddressType":"IP_V4","ipAddress":"192.0.2.1"}`, i, i))
	}
	res := s.as(platform, http.StatusForbidden, "PUT /mep/config/app1/dns_rules", "["+strings.Join(list, ",")+"]")
	if !strings.Contains(res.detail(), "1000") {
		t.Errorf("detail %q", res.detail())
	}
	s.want(s.as(platform, 200, "GET /mep/config/app1/dns_rules", "").json, "[]")
}

// TestMp1ChangeLimit checks that an application which changes its rules all the time is slowed down, and no other is.
func TestMp1ChangeLimit(t *testing.T) {
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", rule1)
	other := s.rule("app2", rule1)
	var res response
	for range 5000 {
		if res = s.do(app1, "PUT "+path, "{"); res.Code == 429 {
			break
		}
	}
	if res.Code != 429 || res.Header().Get("Retry-After") == "" {
		t.Fatalf("thousands of changes in a row: %d %v", res.Code, res.Header())
	}
	res.checkProblem(t)
	s.as(app1, 200, "GET "+path, "")
	s.as(app2, 400, "PUT "+other, "{")
}
