package mec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestAnswers checks over DNS that each change of a rule is served before it is acknowledged.
func TestAnswers(t *testing.T) {
	s := start(t, "", settings)
	all := s.MEP + "/mep/config/app1/dns_rules"
	create := func(r string) { t.Helper(); s.want(201, "POST "+all, r) }
	put := func(id, body string) { t.Helper(); s.want(200, "PUT "+all+"/"+id, body) }

	s.says("www.example.com A", "REFUSED")
	create(rule("a", "www.example.com", "192.0.2.1", `,"ttl":60`))
	s.says("www.example.com A", "192.0.2.1/60")
	s.says("WWW.example.com A", "192.0.2.1/60")
	s.says("www.example.com AAAA", "NODATA")
	s.says("other.example.com A", "REFUSED")
	create(rule("aaaa", "WWW.Example.COM.", "2001:db8::1", ""))
	s.says("www.example.com AAAA", "2001:db8::1/30")
	put("a", `{"state":"INACTIVE"}`)
	s.says("www.example.com A", "NODATA")
	s.says("www.example.com AAAA", "2001:db8::1/30")
	put("aaaa", `{"state":"INACTIVE"}`)
	s.says("www.example.com AAAA", "REFUSED")
	s.want(200, "PUT "+all, `{"state":"ACTIVE"}`)
	s.says("www.example.com A", "192.0.2.1/60")
	s.says("www.example.com AAAA", "2001:db8::1/30")

	create(rule("long", "long.example.com", "192.0.2.2", `,"ttl":4294967295`))
	s.says("long.example.com A", "192.0.2.2/2147483647")
	create(rule("idn", "b\u00fccher.example", "192.0.2.3", ""))
	s.says("xn--bcher-kva.example A", "192.0.2.3/30")
	create(rule("wild", "*.app.example", "192.0.2.4", ""))
	create(rule("sibling", "here.app.example", "2001:db8::5", ""))
	s.says("x.app.example A", "192.0.2.4/30")
	s.says("y.x.app.example A", "192.0.2.4/30")
	s.says("here.app.example A", "NODATA")
	s.says("app.example A", "REFUSED")
	label := strings.Repeat("a", 63)
	longest := strings.Repeat(label+".", 3) + strings.Repeat("a", 61)
	create(rule("longest", longest, "192.0.2.6", ""))
	s.says(longest+" A", "192.0.2.6/30")

	s.want(204, "DELETE "+all+"/a", "")
	s.says("www.example.com A", "NODATA")
	s.want(404, "DELETE "+all+"/a", "")
	s.want(204, "DELETE "+s.MEP+"/mep/config/app1", "")
	for _, name := range []string{"www.example.com AAAA", "x.app.example A", "long.example.com A", longest + " A"} {
		s.says(name, "REFUSED")
	}
}

// TestBadInput sends rules whose ttl is not a number, or whose type does not fit the address: each gets 400, and no
// answer changes.
func TestBadInput(t *testing.T) {
	s := start(t, "", settings)
	all := s.MEP + "/mep/config/app1/dns_rules"
	for _, body := range []string{
		`{"dnsRuleId":"dnsRule1","domainName":"www.example.com","ipAddressType":"IP_V6","ipAddress":"192.0.2.0","ttl":"?",` +
			`"state":"ACTIVE"}`,
		`{"dnsRuleId":"dnsRule1","domainName":"www.example.com","ipAddressType":"IP_V6","ipAddress":"192.0.2.0",` +
			`"state":"ACTIVE"}`,
		`{"dnsRuleId":"dnsRule1","domainName":"www.example.com","ipAddressType":"IP_V4","ipAddress":"192.0.2.0","ttl":"?",` +
			`"state":"ACTIVE"}`,
	} {
		r := s.want(400, "POST "+all, body)
		if !strings.Contains(string(r.Body), "ttl: ") && !strings.Contains(string(r.Body), "ipAddress: ") {
			t.Errorf("no field is named: %s", r.Body)
		}
		s.says("www.example.com A", "REFUSED")
	}
	if got := string(s.want(200, "GET "+all, "").Body); got != "[]\n" {
		t.Errorf("rules %s", got)
	}
}

// TestFight lets two applications claim one name.
func TestFight(t *testing.T) {
	s := start(t, "", settings)
	of := func(app string) string { return s.MEP + "/mep/config/" + app + "/dns_rules" }
	const name = "shop.example.com"
	s.want(201, "POST "+of("app1"), rule("r", name, "192.0.2.1", ""))
	s.want(409, "POST "+of("app2"), rule("r", name, "192.0.2.2", ""))
	s.want(422, "POST "+s.MEP+"/mepcfg/mec_app_config/v1/rules/app2/dns_rules",
		rule("", name, "192.0.2.2", `,"state":"ACTIVE"`))
	s.says(name+" A", "192.0.2.1/30")

	// The same address is no conflict, and is served until the last claim is deleted.
	s.want(201, "POST "+of("app2"), rule("r", name, "192.0.2.1", `,"ttl":10`))
	s.says(name+" A", "192.0.2.1/10")
	s.want(204, "DELETE "+of("app1")+"/r", "")
	s.says(name+" A", "192.0.2.1/10")

	// A name gets a new owner: the new rule is inactive until the old one is.
	s.want(201, "POST "+of("app1"), rule("r", name, "192.0.2.7", `,"state":"INACTIVE"`))
	s.want(409, "PUT "+of("app1")+"/r", `{"state":"ACTIVE"}`)
	s.want(200, "PUT "+of("app2")+"/r", `{"state":"INACTIVE"}`)
	s.want(200, "PUT "+of("app1")+"/r", `{"state":"ACTIVE"}`)
	s.says(name+" A", "192.0.2.7/30")

	// The application that is refused the name does not learn which application owns it.
	token := s.appToken("app2")
	r := s.want(409, "PUT "+s.Apps+"/applications/app2/dns_rules/r",
		rule("r", name, "192.0.2.1", `,"ttl":10,"state":"ACTIVE"`), token)
	if strings.Contains(string(r.Body), "app1") || !strings.Contains(string(r.Body), "another application") {
		t.Errorf("an application sees %s", r.Body)
	}

	// With loadBalance both addresses are served, in changing order.
	balanced := "lb.example.com"
	for i := range 2 {
		s.want(201, "POST "+of(fmt.Sprint("lb", i)), rule("r", balanced, fmt.Sprint("192.0.2.1", i), `,"loadBalance":true`))
	}
	s.says(balanced+" A", "192.0.2.10/30 192.0.2.11/30")
	first := map[string]bool{}
	for range 20 {
		first[s.Ask(balanced, dns.TypeA).Answer[0].(*dns.A).A.String()] = true
	}
	if len(first) != 2 {
		t.Errorf("twenty answers begin with %v", first)
	}
	s.want(409, "POST "+of("lb9"), rule("r", balanced, "192.0.2.19", ""))
}

// TestMostSpecific writes one name into two zones of the server management, and into a zone of the zones API.
func TestMostSpecific(t *testing.T) {
	s := start(t, "", settings)
	record := func(addr string) string {
		return `{"name":"www.example.com.","type":"A","class":"IN","ttl":30,"rData":["` + addr + `"]}`
	}
	records := s.MEP + "/mep/dns_server_mgmt/v1/rrecord"
	s.want(200, "POST "+records+"?zone=.", record("192.0.2.1"))
	s.says("www.example.com A", "192.0.2.1/30")
	s.want(200, "POST "+records+"?zone=example.com.", record("192.0.2.2"))
	s.says("www.example.com A", "192.0.2.2/30")
	s.want(200, "DELETE "+records+"/www.example.com./A?zone=example.com.", "{}")
	s.says("www.example.com A", "192.0.2.1/30")
	s.want(200, "DELETE "+records+"/www.example.com./A", "{}")
	s.says("www.example.com A", "REFUSED")
	s.want(404, "DELETE "+records+"/www.example.com./A", "{}")

	s.want(200, "POST "+records+"?zone=.", record("192.0.2.1"))
	admin := "X-Auth-Token: " + s.Token
	s.want(202, "POST "+s.HTTP+"/v2/zones", `{"name":"example.com.","email":"a@example.com"}`, admin)
	s.says("www.example.com A", "NXDOMAIN")
}
