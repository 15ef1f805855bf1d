package clients

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// TestOpenStackSDK lists more zones than fit on a page, from Python.
func TestOpenStackSDK(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, name := range []string{"one.test", "two.test", "three.test"} {
		s.Run("zone", "create", name)
	}
	const program = `
import openstack
cloud = openstack.connect()
print(*sorted(z.name for z in cloud.dns.zones(limit=2)))
zone = cloud.dns.find_zone("two.test.")
cloud.dns.create_recordset(zone, name="www.two.test.", type="A", records=["192.0.2.2"])
print(*[r.records[0] for r in cloud.dns.recordsets(zone, type="A")])
cloud.dns.delete_zone(cloud.dns.find_zone("one.test."))
print(cloud.dns.find_zone("one.test."))
made = cloud.create_zone("four.test.", email="admin@example.org")
print(made.status, cloud.get_zone("four.test.").status)
`
	// The URL of the server instead of that of its identity service, and no domains.
	env := environment("OS_AUTH_URL="+s.HTTP, "OS_USERNAME=admin", "OS_PASSWORD="+s.Token, "OS_PROJECT_NAME=admin")
	out := run(t, env, "/usr/bin/python3", "-W", "ignore", "-c", program)
	if want := "one.test. three.test. two.test.\n192.0.2.2\nNone\nPENDING ACTIVE\n"; out != want {
		t.Errorf("openstacksdk printed %q, want %q", out, want)
	}
	s.mustAnswer(t, "www.two.test.", dns.TypeA, "192.0.2.2")
}

// TestCurl calls the API with curl.
func TestCurl(t *testing.T) {
	s := start(t)
	curl := func(args ...string) string {
		t.Helper()
		return run(t, environment(), "curl", append([]string{"-sS", "--fail-with-body", "-H", "X-Auth-Token: " + s.Token,
			"-H", "Content-Type: application/json"}, args...)...)
	}
	if out := curl("-d", `{"name":"example.org.","email":"admin@example.org"}`, s.HTTP+"/v2/zones"); !strings.Contains(out,
		`"example.org."`) {
		t.Errorf("create: %s", out)
	}
	list := curl(s.HTTP + "/v2/zones?name=example.org.")
	_, rest, _ := strings.Cut(list, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	curl("-d", `{"name":"www.example.org.","type":"A","records":["192.0.2.1"]}`, s.HTTP+"/v2/zones/"+id+"/recordsets")
	host, port, _ := strings.Cut(s.DNS[0], ":")
	for _, transport := range []string{"+notcp", "+tcp"} {
		if got := run(t, environment(), "dig", "@"+host, "-p", port, transport, "+short", "www.example.org",
			"A"); got != "192.0.2.1\n" {
			t.Errorf("dig %s: %q", transport, got)
		}
	}
	if out, err := try(t, environment(), "curl", "-sS", "--fail-with-body", s.HTTP+"/v2/zones"); err == nil {
		t.Errorf("without a token: %s", out)
	}
	curl("-X", "DELETE", s.HTTP+"/v2/zones/"+id)
	s.mustAnswer(t, "www.example.org.", dns.TypeA, "REFUSED")
}

// waitAnswer waits for the result of a background task in the DNS.
func (s *node) waitAnswer(t *testing.T, name string, typ uint16, want string) {
	t.Helper()
	server.Eventually(t, name+" "+dns.TypeToString[typ]+" is "+want, func() bool { return s.answer(t, name, typ) == want })
}
