package hostile

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// squatter is a tenant or an application that wants names of other tenants.
type squatter struct {
	*server.Server
	t       *testing.T
	token   string
	project string // ID of its project
}

// newSquatter creates a token and, for a tenant, its project.
func newSquatter(t *testing.T, s *server.Server, token map[string]string) squatter {
	t.Helper()
	if token["role"] == "member" {
		s.Must(http.MethodPost, "/access/v1/projects", map[string]string{"name": token["project"]}, nil)
	}
	var made struct {
		Token struct {
			Token   string
			Project string `json:"project_id"`
		}
	}
	s.Must(http.MethodPost, "/access/v1/tokens", token, &made)
	return squatter{s, t, made.Token.Token, made.Token.Project}
}

// want makes a call as the squatter and checks its status.
func (q squatter) want(status int, method, url string, body any, headers ...string) server.Response {
	q.t.Helper()
	if strings.HasPrefix(url, "/") {
		url = q.HTTP + url
	}
	r, err := q.Call(method, url, body, append(headers, "Authorization: Bearer "+q.token)...)
	if err != nil || r.Status != status {
		q.t.Fatalf("%s %s %v = %d %s, %v; want %d", method, url, body, r.Status, r.Body, err, status)
	}
	return r
}

// refused tries to create a zone with every API, and checks that the server gives the reason.
func (q squatter) refused(name, why string) {
	q.t.Helper()
	for _, body := range []map[string]any{{"name": name, "email": "a@example.org"},
		{"name": name, "type": "SECONDARY", "masters": []string{"203.0.113.1"}}} {
		if r := q.want(http.StatusBadRequest, http.MethodPost, "/v2/zones", body); !strings.Contains(string(r.Body), why) {
			q.t.Errorf("zone %s: %s, want %q in it", name, r.Body, why)
		}
	}
	for _, body := range []map[string]any{{"name": name, "kind": "Native"},
		{"name": name, "kind": "Slave", "masters": []string{"203.0.113.1"}}} {
		r := q.want(http.StatusUnprocessableEntity, http.MethodPost, powerDNSZones, body)
		if !strings.Contains(string(r.Body), why) {
			q.t.Errorf("zone %s by the PowerDNS API: %s, want %q in it", name, r.Body, why)
		}
	}
	file := fmt.Sprintf("%s 60 IN SOA ns1.example.net. a.example.net. 1 3600 600 86400 60\n"+
		"%[1]s 60 IN NS ns1.example.net.\n", name)
	r := q.want(http.StatusAccepted, http.MethodPost, "/v2/zones/tasks/imports?replace=true", file,
		"Content-Type: text/dns")
	var task struct{ ID, Status, Message string }
	server.Eventually(q.t, "the import of "+name+" ends", func() bool {
		if err := json.Unmarshal(r.Body, &task); err != nil {
			q.t.Fatalf("import: %v in %s", err, r.Body)
		}
		r = q.want(http.StatusOK, http.MethodGet, "/v2/zones/tasks/imports/"+task.ID, nil)
		return task.Status != "PENDING"
	})
	if task.Status != "ERROR" || !strings.Contains(task.Message, why) {
		q.t.Errorf("import of %s: %s, want %q in it", name, r.Body, why)
	}
}

// address returns the address that the server answers for a name, or the error.
func (q squatter) address(name string) string {
	q.t.Helper()
	r := q.Ask(name, dns.TypeA)
	if len(r.Answer) != 1 {
		return dns.RcodeToString[r.Rcode]
	}
	return r.Answer[0].(*dns.A).A.String()
}

// TestShadowedNames has a tenant claim names of the internet, of reverse zones, of local networks, and of the edge
// platform.
func TestShadowedNames(t *testing.T) {
	s := server.Start(t, server.Options{Config: server.Listen + "mep: {listen: '127.0.0.1:0', authentication: none}\n"})
	tenant := newSquatter(t, s, map[string]string{"name": "mallory", "project": "mallory", "role": "member"})
	rules := s.MEP + "/mep/config/game-1/dns_rules"
	for id, state := range map[string]string{"lobby": "ACTIVE", "spare": "INACTIVE"} {
		s.Must(http.MethodPost, rules, map[string]string{"dnsRuleId": id, "domainName": id + ".example.com", "state": state,
			"ipAddressType": "IP_V4", "ipAddress": "192.0.2.10"}, nil)
	}
	tenant.refused("lobby.example.com.", "edge platform")
	tenant.refused("spare.example.com.", "edge platform") // the rule would be silenced when it is switched on
	tenant.refused("example.com.", "edge platform")
	tenant.refused("co.uk.", "public suffix")
	tenant.refused("2.0.192.in-addr.arpa.", "arpa")
	tenant.refused("printer.local.", "special-use")
	tenant.refused("x.home.arpa.", "arpa")
	if got := tenant.address("lobby.example.com."); got != "192.0.2.10" {
		t.Errorf("lobby.example.com is %s", got)
	}
	s.Restart()
	tenant.refused("spare.example.com.", "edge platform")

	// An administrator allows reverse zones for tenants, and a suffix for this one.
	s.Must(http.MethodPost, "/v2/tlds", map[string]string{"name": "in-addr.arpa"}, nil)
	tenant.want(http.StatusAccepted, http.MethodPost, "/v2/zones",
		map[string]string{"name": "2.0.192.in-addr.arpa.", "email": "a@example.org"})
	s.Must(http.MethodPost, "/v2/zones", map[string]string{"name": "co.uk.", "email": "a@example.org"}, nil,
		"X-Auth-Sudo-Project-Id: "+tenant.project)
	tenant.want(http.StatusAccepted, http.MethodPost, "/v2/zones",
		map[string]string{"name": "www.co.uk.", "email": "a@example.org"})
}

// TestForwardedNames has a tenant of a resolver claim a name that its clients resolve.
func TestForwardedNames(t *testing.T) {
	tcp, udp, err := server.ListenBoth()
	if err != nil {
		t.Fatal(err)
	}
	upstream := &dns.Server{PacketConn: udp, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		r := new(dns.Msg).SetReply(q)
		a, _ := dns.NewRR(q.Question[0].Name + " 0 IN A 198.51.100.1")
		r.Answer = []dns.RR{a}
		_ = w.WriteMsg(r) // if it is lost, the server queries again
	})}
	go upstream.ActivateAndServe()
	t.Cleanup(func() { udp.Close(); tcp.Close() })
	s := server.Start(t, server.Options{Config: server.Listen +
		fmt.Sprintf("forward: {upstreams: [%q], clients: [127.0.0.0/8]}\n", udp.LocalAddr())})
	tenant := newSquatter(t, s, map[string]string{"name": "mallory", "project": "mallory", "role": "member"})
	tenant.refused("bank.example.com.", "resolves for its clients")
	tenant.refused("example.com.", "resolves for its clients")
	if got := tenant.address("www.bank.example.com."); got != "198.51.100.1" {
		t.Errorf("www.bank.example.com is %s", got)
	}
	s.Must(http.MethodPost, "/v2/tlds", map[string]string{"name": "tenants.example.net"}, nil)
	tenant.want(http.StatusAccepted, http.MethodPost, "/v2/zones",
		map[string]string{"name": "m.tenants.example.net.", "email": "a@example.org"})
	tenant.refused("bank.example.com.", "Invalid TLD")
}

// TestNeighbours has a tenant claim names inside and around the zone of another tenant, and leave a trap in a zone that
// it transfers.
func TestNeighbours(t *testing.T) {
	s := server.Start(t, server.Options{})
	victim := newSquatter(t, s, map[string]string{"name": "victim", "project": "victim", "role": "member"})
	tenant := newSquatter(t, s, map[string]string{"name": "mallory", "project": "mallory", "role": "member"})
	zone := func(name string) map[string]string { return map[string]string{"name": name, "email": "a@example.org"} }
	victim.want(http.StatusAccepted, http.MethodPost, "/v2/zones", zone("shop.example.org."))
	for name, status := range map[string]int{"www.shop.example.org.": 403, "example.org.": 403, "SHOP.example.org.": 409} {
		tenant.want(status, http.MethodPost, "/v2/zones", zone(name))
		tenant.want(status, http.MethodPost, "/v2/zones",
			map[string]any{"name": name, "type": "SECONDARY", "masters": []string{"203.0.113.1"}})
	}
	var bait struct{ ID string }
	r := tenant.want(http.StatusAccepted, http.MethodPost, "/v2/zones", zone("bait.example.net."))
	if err := json.Unmarshal(r.Body, &bait); err != nil {
		t.Fatal(err)
	}
	tenant.want(http.StatusAccepted, http.MethodPost, "/v2/zones", zone("www.bait.example.net."))
	var offer struct{ ID, Key string }
	r = tenant.want(http.StatusCreated, http.MethodPost, "/v2/zones/"+bait.ID+"/tasks/transfer_requests", nil)
	if err := json.Unmarshal(r.Body, &offer); err != nil {
		t.Fatal(err)
	}
	victim.want(http.StatusForbidden, http.MethodPost, "/v2/zones/tasks/transfer_accepts",
		map[string]string{"key": offer.Key, "zone_transfer_request_id": offer.ID})
}

// TestApplicationsClaimNothing has an application change its rule into one for names that the platform did not grant.
func TestApplicationsClaimNothing(t *testing.T) {
	s := server.Start(t, server.Options{Config: server.Listen +
		"apps: {listen: '127.0.0.1:0'}\nmep: {listen: '127.0.0.1:0', authentication: none}\n"})
	rule := func(domain, address, state string) map[string]string {
		return map[string]string{"dnsRuleId": "r", "domainName": domain, "ipAddressType": "IP_V4", "ipAddress": address,
			"state": state}
	}
	s.Must(http.MethodPost, s.MEP+"/mep/config/camera-1/dns_rules", rule("camera.example.com", "192.0.2.1", "ACTIVE"), nil)
	app := newSquatter(t, s, map[string]string{"name": "camera", "project": "admin", "role": "app", "app": "camera-1"})
	own := s.Apps + "/mec_app_support/v2/applications/camera-1/dns_rules/r"
	for _, claim := range []map[string]string{rule("*.com", "192.0.2.66", "ACTIVE"),
		rule("bank.example.com", "192.0.2.1", "ACTIVE"),
		rule("camera.example.com", "192.0.2.66", "ACTIVE")} {
		app.want(http.StatusForbidden, http.MethodPut, own, claim)
	}
	for name, want := range map[string]string{"bank.example.com.": "REFUSED", "camera.example.com.": "192.0.2.1"} {
		if got := app.address(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	app.want(http.StatusOK, http.MethodPut, own, rule("camera.example.com", "192.0.2.1", "INACTIVE"))

	granted := rule("camera.example.com", "192.0.2.1", "ACTIVE")
	granted["grantedDomain"] = "camera.example.com"
	s.Must(http.MethodPut, s.MEP+"/mep/config/camera-1/dns_rules/r", granted, nil)
	app.want(http.StatusOK, http.MethodPut, own, rule("one.camera.example.com", "192.0.2.2", "ACTIVE"))
	app.want(http.StatusForbidden, http.MethodPut, own, rule("example.com", "192.0.2.2", "ACTIVE"))
	if got := app.address("one.camera.example.com."); got != "192.0.2.2" {
		t.Errorf("one.camera.example.com is %s", got)
	}
}
