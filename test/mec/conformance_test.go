package mec

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

var bases = []string{"/mec_app_support/v1", "/mec_app_support/v2", "/mep/mec_app_support/v1", ""}

// checkRule checks that an object has the required members of DnsRule with the right types, and no others except ttl.
func checkRule(t *testing.T, v any) {
	t.Helper()
	r, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%v is no object", v)
	}
	for member, allowed := range map[string]string{"dnsRuleId": "", "domainName": "", "ipAddress": "",
		"ipAddressType": "IP_V4 IP_V6", "state": "ACTIVE INACTIVE"} {
		s, ok := r[member].(string)
		if !ok || s == "" || allowed != "" && !strings.Contains(allowed, s) {
			t.Errorf("%s is %v", member, r[member])
		}
		delete(r, member)
	}
	if ttl, there := r["ttl"]; there {
		if n, ok := ttl.(float64); !ok || n < 0 || n != float64(int64(n)) {
			t.Errorf("ttl is %v", ttl)
		}
		delete(r, "ttl")
	}
	if len(r) > 0 {
		t.Errorf("members that DnsRule does not have: %v", r)
	}
}

// TestConformance runs group SRV/DNS of ETSI MEC-DEC 032-3 with the sample rule of that standard, on every base path.
func TestConformance(t *testing.T) {
	s := start(t, "", settings)
	for i, base := range bases {
		t.Run("base "+base, func(t *testing.T) {
			app := fmt.Sprintf("5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1%d", i)
			token := s.appToken(app)
			name := fmt.Sprintf("b%d.example.org", i)
			sample := rule("DnsRule1", name, "146.241.7.3", `,"ttl":300,"state":"ACTIVE"`)
			s.want(201, "POST "+s.MEP+"/mep/config/"+app+"/dns_rules", rule("DnsRule1", name, "192.0.2.1",
				`,"ttl":300,"grantedDomain":"`+name+`"`))
			all := s.Apps + base + "/applications/" + app + "/dns_rules"
			one := all + "/DnsRule1"
			object := func(body string) map[string]any {
				t.Helper()
				var v map[string]any
				if err := json.Unmarshal([]byte(body), &v); err != nil {
					t.Fatal(err)
				}
				return v
			}
			t.Run("TP_MEC_SRV_DNS_001_OK", func(t *testing.T) {
				var list []any
				if err := json.Unmarshal(s.want(200, "GET "+all, "", token).Body, &list); err != nil || len(list) != 1 {
					t.Fatalf("list %v: %v", list, err)
				}
				checkRule(t, list[0])
			})
			t.Run("TP_MEC_SRV_DNS_002_OK", func(t *testing.T) {
				v := object(string(s.want(200, "GET "+one, "", token).Body))
				if v["dnsRuleId"] != "DnsRule1" {
					t.Errorf("rule %v", v)
				}
				checkRule(t, v)
			})
			t.Run("TP_MEC_SRV_DNS_002_NF", func(t *testing.T) { s.want(404, "GET "+all+"/NON_EXISTENT_DNS_RULE_ID", "", token) })
			t.Run("TP_MEC_SRV_DNS_003_OK", func(t *testing.T) {
				s.says(name+" A", "192.0.2.1/300")
				v := object(string(s.want(200, "PUT "+one, sample, token).Body))
				if v["ipAddress"] != "146.241.7.3" {
					t.Errorf("rule %v", v)
				}
				checkRule(t, v)
				s.says(name+" A", "146.241.7.3/300")
			})
			t.Run("TP_MEC_SRV_DNS_003_BR", func(t *testing.T) {
				s.want(400, "PUT "+one, strings.Replace(sample, "ACTIVE", "UNKNOWN_VALUE", 1), token)
				s.says(name+" A", "146.241.7.3/300")
			})
			t.Run("TP_MEC_SRV_DNS_003_NF", func(t *testing.T) {
				s.want(404, "PUT "+all+"/NON_EXISTENT_DNS_RULE_ID", sample, token)
			})
			t.Run("TP_MEC_SRV_DNS_003_PF", func(t *testing.T) {
				s.want(412, "PUT "+one, strings.Replace(sample, "ACTIVE", "INACTIVE", 1), token, "If-Match: INVALID_ETAG")
				s.says(name+" A", "146.241.7.3/300")
			})
		})
	}
}

// TestListeners checks that each API is on its own listener only, and refuses the callers of the others.
func TestListeners(t *testing.T) {
	s := start(t, "", settings)
	one, two := s.appToken("app1"), s.appToken("app2")
	admin := "X-Auth-Token: " + s.Token
	const own = "/mec_app_support/v2/applications/app1/dns_rules"
	s.want(200, "GET "+s.Apps+own, "", one)
	s.want(403, "GET "+s.Apps+own, "", two)
	s.want(401, "GET "+s.Apps+own, "")
	s.want(401, "GET "+s.Apps+own, "", "Authorization: Basic YTpi")
	for _, path := range []string{"/mep/config/app1/dns_rules", "/mep/dns_server_mgmt/v1/rrecord", "/v2/zones",
		"/access/v1/tokens"} {
		s.want(404, "GET "+s.Apps+path, "", one)
		if r, err := s.call("GET "+s.HTTP+path, "", one); err != nil || r.Status != 403 {
			t.Errorf("an application at %s of the management: %d, %v", path, r.Status, err)
		}
	}
	s.want(404, "GET "+s.MEP+own, "")
	s.want(200, "GET "+s.MEP+"/mep/dns_server_mgmt/v1/rrecord", "")
	s.want(200, "GET "+s.MEP+"/health", "")
	s.want(401, "GET "+s.HTTP+"/mep/dns_server_mgmt/v1/rrecord", "")
	s.want(200, "GET "+s.HTTP+"/mep/dns_server_mgmt/v1/rrecord", "", admin)
	s.want(200, "GET "+s.HTTP+"/mep/config", "", admin)
	s.want(413, "PUT "+s.Apps+own+"/r", strings.Repeat(" ", 5000), one)
	if status := s.End(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d:\n%s", status, s.Log())
	}
}
