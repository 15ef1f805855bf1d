package mec_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/mec"
)

const jsonAppD = `{"appDId": "d1", "appName": "demo", "virtualComputeDescriptor": {"virtualCpu": {"numVirtualCpu": 2}},
 "appDNSRule": [
  {"dnsRuleId": "r1", "domainName": "www.example.com", "ipAddressType": "IP_V4", "ipAddress": "192.0.2.1", "ttl": 30,
   "later": [1]},
  {"dnsRuleId": "r2", "domainName": "www.example.com", "ipAddressType": "IP_V6", "ipAddress": "2001:db8::1"}]}`

const yamlAppD = `
# a descriptor
appDId: d1
appName: demo
appDNSRule:
  - dnsRuleId: 7
    domainName: www.example.com
    ipAddressType: IP_V4
    ipAddress: 192.0.2.1
    ttl: 30
  - {dnsRuleId: r2, domainName: "*.example.com", ipAddressType: IP_V6, ipAddress: "2001:db8::1", state: INACTIVE}
`

func TestParseAppD(t *testing.T) {
	rules, err := mec.ParseAppD([]byte(jsonAppD))
	if err != nil || len(rules) != 2 || rules[0].ID != "r1" || *rules[0].TTL != 30 || rules[1].TTL != nil ||
		rules[1].Addr.String() != "2001:db8::1" {
		t.Errorf("JSON: %+v, %v", rules, err)
	}
	rules, err = mec.ParseAppD([]byte(yamlAppD))
	if err != nil || len(rules) != 2 || rules[0].ID != "7" || *rules[0].TTL != 30 || rules[1].State != mec.Inactive {
		t.Errorf("YAML: %+v, %v", rules, err)
	}
	for _, doc := range []string{jsonAppD, yamlAppD} { // with EdgeGallery's spelling of the key
		rules, err := mec.ParseAppD([]byte(strings.Replace(doc, "appDNSRule", "appDnsRule", 1)))
		if err != nil || len(rules) != 2 {
			t.Errorf("appDnsRule: %+v, %v", rules, err)
		}
	}
	for _, none := range []string{`{"appDId": "d1"}`, `{"appDId": "d1", "appDNSRule": null}`, `{"appDNSRule": []}`,
		"appDNSRule: []\n", "appName: x\n"} {
		if rules, err := mec.ParseAppD([]byte(none)); err != nil || len(rules) != 0 {
			t.Errorf("%s = %v, %v, want no rules", none, rules, err)
		}
	}
}

func TestParseAppDRefuses(t *testing.T) {
	const good = `"dnsRuleId":"r","domainName":"www.example.com","ipAddressType":"IP_V4","ipAddress":"192.0.2.1"`
	wrap := func(rules ...string) string { return `{"appDNSRule":[{` + strings.Join(rules, "},{") + `}]}` }
	tests := []struct{ doc, field string }{
		{wrap(good, good), "appDNSRule[1].dnsRuleId"},
		{wrap(good + `,"ttl":"?"`), "appDNSRule[0].ttl"},
		{wrap(good + `,"ttl":""`), "appDNSRule[0].ttl"},
		{wrap(good + `,"ttl":"30"`), "appDNSRule[0].ttl"},
		{wrap(good + `,"ttl":3.5`), "appDNSRule[0].ttl"},
		{wrap(good + `,"ttl":true`), "appDNSRule[0].ttl"},
		{wrap(good + `,"state":["ACTIVE"]`), "appDNSRule[0].state"},
		{wrap(`"dnsRuleId":"r"`), "appDNSRule[0].domainName"},
		{"appDNSRule:\n- dnsRuleId: r\n  domainName: [a]\n", "appDNSRule[0].domainName"},
		{"appDNSRule:\n- dnsRuleId: r\n  domainName: a.example\n  ipAddressType: IP_V4\n  ipAddress: 192.0.2.1\n  ttl: '?'\n",
			"appDNSRule[0].ttl"},
		// a duplicate key: another parser may read the first value
		{wrap(good + `,"ttl":30,"ttl":31`), ""}, {wrap(good + `,"ipaddress":"192.0.2.2"`), ""},
		{`{"appDNSRule":[],"appDNSRule":[{` + good + `}]}`, ""}, {`{"appDNSRule":[],"appDnsRule":[{` + good + `}]}`, ""},
		{"appDNSRule: []\nappDNSRule: []\n", ""}, {"appDNSRule: []\nappDnsRule: []\n", ""},
		{"appDNSRule:\n- {dnsRuleId: r, domainName: a.example, ipAddressType: IP_V4, ipAddress: 192.0.2.1, " +
			"ttl: 30, ttl: 31}\n", ""},
		{"", ""}, {" \n", ""}, {"[]", ""}, {`{"appDNSRule":{}}`, ""}, {`{"appDNSRule":[`, ""}, {"a: [", ""},
		{"just text", ""},
		{"{}", ""}, {`{"appDNSRule": null}`, ""}, {"apiVersion: v1\nkind: ConfigMap\n", ""},
		{strings.Repeat(" ", 1<<20) + "{}", ""},
	}
	for _, tt := range tests {
		rules, err := mec.ParseAppD([]byte(tt.doc))
		if err == nil {
			t.Errorf("%.80q was taken as %v", tt.doc, rules)
			continue
		}
		if tt.field != "" {
			wantField(t, err, tt.field)
		}
	}
}

func FuzzParseAppD(f *testing.F) {
	f.Add([]byte(jsonAppD))
	f.Add([]byte(yamlAppD))
	f.Add([]byte("a: &a [*a]\nappDNSRule: *a"))
	f.Add([]byte("appDNSRule:\n- &r {dnsRuleId: r}\n- *r\n- <<: *r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rules, err := mec.ParseAppD(b)
		if err != nil && err.Error() == "" {
			t.Error("an error without text")
		}
		seen := map[string]bool{}
		for _, r := range rules {
			if r.Name.IsZero() || !r.Addr.IsValid() || r.ID == "" || seen[r.ID] {
				t.Errorf("rule %+v", r)
			}
			seen[r.ID] = true
		}
	})
}
