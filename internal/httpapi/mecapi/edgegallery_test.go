package mecapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/mec"
)

// TestEdgeGalleryRules calls every operation of the Mm5 API of EdgeGallery 0.9.
func TestEdgeGalleryRules(t *testing.T) {
	s := newServer(t, mecapi.API{})
	const all = "/mepcfg/mec_app_config/v1/rules/app1/dns_rules"
	made := s.as(platform, 200, "POST "+all, rule1)
	rule := made.json.(map[string]any)
	id := rule["dnsRuleId"].(string)
	if len(id) != 36 || made.Header().Get("ETag") == "" {
		t.Errorf("created %s %v", made.Body, made.Header())
	}
	one := all + "/" + id
	if got := s.as(platform, 422, "POST "+all, rule1).detail(); !strings.HasPrefix(got, "Resource already exists") {
		t.Errorf("again: %q", got)
	}
	s.as(platform, 422, "POST /mepcfg/mec_app_config/v1/rules/app2/dns_rules",
		strings.Replace(rule1, "192.0.2.1", "192.0.2.2", 1))
	s.as(platform, 400, "POST "+all, strings.Replace(rule1, `,"state":"ACTIVE"`, "", 1))
	six := strings.NewReplacer("IP_V4", "IPv6", "192.0.2.1", "2001:db8::1").Replace(rule1)
	s.as(platform, 200, "POST "+all, six)
	off := strings.NewReplacer(`"r1"`, `"`+id+`"`, "ACTIVE", "INACTIVE").Replace(rule1)
	s.want(s.as(platform, 200, "PUT "+one, off).json, off)
	s.as(platform, 400, "PUT "+one, strings.Replace(off, "192.0.2.1", "192.0.2.2", 1))
	s.want(s.as(platform, 200, "GET "+one, "").json, off)
	if n := len(s.as(platform, 200, "GET "+all, "").json.([]any)); n != 2 {
		t.Errorf("%d rules, want 2", n)
	}
	s.want(s.as(platform, 200, "DELETE "+one, "").json, off)
	s.as(platform, 404, "DELETE "+one, "")
}

// task waits for the end of the task in a reply.
func (s *server) task(res response) map[string]any {
	s.t.Helper()
	task := res.json.(map[string]any)
	for end := time.Now().Add(10 * time.Second); task["configResult"] == "PROCESSING"; {
		if time.Now().After(end) {
			s.t.Fatalf("the task does not end: %v", task)
		}
		task = s.as(platform, 200, fmt.Sprintf("GET /mepcfg/app_lcm/v1/tasks/%s/appd_configuration", task["taskId"]),
			"").json.(map[string]any)
	}
	return task
}

func descriptor(name string, dnsRules ...string) string {
	return `{"appTrafficRule":[{"trafficRuleId":"t1","filterType":"FLOW","priority":1,
		"trafficFilter":[{"srcAddress":["192.0.2.0/24"]}],"action":"DROP","state":"ACTIVE"}],
		"appDNSRule":[` + strings.Join(dnsRules, ",") + `],"appSupportMp1":true,"appName":"` + name + `"}`
}

// TestEdgeGalleryTasks calls every operation of the Mm5 API of EdgeGallery since 1.0.1.
func TestEdgeGalleryTasks(t *testing.T) {
	s := newServer(t, mecapi.API{})
	const config = "/mepcfg/app_lcm/v1/applications/app1/appd_configuration"
	const all = "/mep/config/app1/dns_rules"
	expect := func(res response, result, phase string) string {
		t.Helper()
		task := s.task(res)
		if task["configResult"] != result || task["configPhase"] != phase || task["appInstanceId"] != "app1" {
			t.Fatalf("task %v, want %s at %s", task, result, phase)
		}
		return task["Detailed"].(string)
	}
	s.as(platform, 404, "GET "+config, "")
	s.as(platform, 404, "PUT "+config, descriptor("game", rule1))
	expect(s.as(platform, 200, "POST "+config, descriptor("game", rule1, rule2)), "SUCCESS", "100")
	s.want(s.as(platform, 200, "GET "+all, "").json, "["+rule1+","+rule2+"]")
	s.want(s.as(platform, 200, "GET "+config, "").json,
		`{"appTrafficRule":[],"appDNSRule":[`+rule1+","+rule2+`],"appSupportMp1":true,"appName":"game"}`)
	s.as(platform, 400, "POST "+config, descriptor("game", rule1))
	s.as(platform, 400, "POST "+strings.Replace(config, "app1", "app9", 1), descriptor("game"))

	expect(s.as(platform, 200, "PUT "+config, descriptor("game", rule1)), "SUCCESS", "100")
	s.want(s.as(platform, 200, "GET "+all, "").json, "["+rule1+"]")

	// A conflict with a rule of another application undoes the whole task.
	s.rule("app2", strings.Replace(rule1, "www", "taken", 1))
	taken := strings.NewReplacer("www", "taken", "192.0.2.1", "192.0.2.9", `"r1"`, `"r9"`).Replace(rule1)
	if why := expect(s.as(platform, 200, "PUT "+config, descriptor("game", rule2, taken)), "FAILURE",
		"0"); !strings.Contains(why, "taken.example.com") {
		t.Errorf("the task failed because of %q", why)
	}
	s.want(s.as(platform, 200, "GET "+all, "").json, "["+rule1+"]")

	expect(s.as(platform, 200, "DELETE "+config, "{}"), "SUCCESS", "100")
	s.want(s.as(platform, 200, "GET "+all, "").json, "[]")
	s.as(platform, 404, "DELETE "+config, "")
	expect(s.as(platform, 200, "POST "+config, descriptor("game")), "SUCCESS", "100")
	s.want(s.as(platform, 200, "GET "+config, "").json,
		`{"appTrafficRule":[],"appDNSRule":[],"appSupportMp1":true,"appName":"game"}`)
	s.as(platform, 404, "GET /mepcfg/app_lcm/v1/tasks/none/appd_configuration", "")
}

// TestEdgeGalleryOneTask checks that a second task of an application is refused while one runs.
func TestEdgeGalleryOneTask(t *testing.T) {
	s := openServer(t, mecapi.API{}, mec.Options{})
	const config = "/mepcfg/app_lcm/v1/applications/app1/appd_configuration"
	task := s.as(platform, 200, "POST "+config, descriptor("game", rule1)).json.(map[string]any)
	if task["configResult"] != "PROCESSING" || task["configPhase"] != "0" {
		t.Errorf("task %v", task)
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		s.as(platform, 403, method+" "+config, descriptor("game", rule1))
	}
	s.as(platform, 200, "POST "+strings.Replace(config, "app1", "app2", 1), descriptor("other"))
}

func TestEdgeGalleryBadConfigurations(t *testing.T) {
	s := newServer(t, mecapi.API{})
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprintf(
			`{"dnsRuleId":"r%d","domainName":"n%d.test","ipAddressType":"IP_V4","ipAddress":"192.0.2.1"}`, i, i))
	}
	traffic := strings.Repeat(`{"trafficRuleId":"t"},`, 17)
	tests := []struct{ name, body, field string }{
		{"33 rules", descriptor("a", many...), "appDNSRule"},
		{"no name", descriptor(""), "appName"},
		{"long name", descriptor(strings.Repeat("a", 64)), "appName"},
		{"17 traffic rules", `{"appName":"a","appTrafficRule":[` + traffic[:len(traffic)-1] + `]}`, "appTrafficRule"},
		{"traffic rule without id", `{"appName":"a","appTrafficRule":[{}]}`, "appTrafficRule[0].trafficRuleId"},
		{"traffic rule of strings", `{"appName":"a","appTrafficRule":["x"]}`, "appTrafficRule"},
		{"rule", descriptor("a", rule1, strings.Replace(rule2, "IP_V6", "IP_V4", 1)), "appDNSRule[1].ipAddress"},
		{"twice", descriptor("a", rule1, rule1), "appDNSRule[1].dnsRuleId"},
		{"long id", descriptor("a", strings.Replace(rule1, `"r1"`, `"`+strings.Repeat("r", 64)+`"`, 1)),
			"appDNSRule[0].dnsRuleId"},
		{"name is a number", `{"appName":1}`, "appName"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.as(platform, 400, "POST /mepcfg/app_lcm/v1/applications/app1/appd_configuration", tt.body)
			if !strings.HasPrefix(res.detail(), tt.field) {
				t.Errorf("detail %q does not name %s", res.detail(), tt.field)
			}
		})
	}
	if task := s.task(s.as(platform, 200, "POST /mepcfg/app_lcm/v1/applications/app1/appd_configuration",
		descriptor("a", many[:32]...))); task["configResult"] != "SUCCESS" {
		t.Errorf("32 rules: %v", task)
	}
	s.as(platform, 413, "POST /mepcfg/app_lcm/v1/applications/app2/appd_configuration",
		descriptor(strings.Repeat("a", 40_000)))
}

func TestEdgeGalleryTermination(t *testing.T) {
	s := newServer(t, mecapi.API{})
	s.rule("app1", rule1)
	s.want(s.as(platform, 200, "GET /mepcfg/mec_platform_config/v1/capabilities", "").json, `[{"capabilityId":"dns",
		"capabilityName":"DNS rules","status":"ACTIVE","version":"v1","consumers":[{"applicationInstanceId":"app1"}]}]`)
	for range 2 {
		s.as(platform, 200, "DELETE /mep/mec_app_support/v1/applications/app1/AppInstanceTermination", "")
	}
	s.want(s.as(platform, 200, "GET /mep/config/app1/dns_rules", "").json, "[]")
	s.want(s.as(platform, 200, "GET /mepcfg/mec_platform_config/v1/capabilities/dns", "").json, `{"capabilityId":"dns",
		"capabilityName":"DNS rules","status":"ACTIVE","version":"v1","consumers":[]}`)
	s.as(platform, 404, "GET /mepcfg/mec_platform_config/v1/capabilities/ntp", "")
	s.as(app1, 403, "DELETE /mep/mec_app_support/v1/applications/app1/AppInstanceTermination", "")
}
