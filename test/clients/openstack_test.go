package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// passwordEnv returns the variables of an openrc file, with the admin token as password.
func (s *node) passwordEnv() []string {
	return environment("OS_AUTH_URL="+s.HTTP+"/v3", "OS_USERNAME=admin", "OS_PASSWORD="+s.Token, "OS_PROJECT_NAME=admin",
		"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_IDENTITY_API_VERSION=3")
}

// stack runs the openstack command line and parses its output as JSON.
func stack[T any](t *testing.T, env []string, args ...string) (out T) {
	t.Helper()
	text := run(t, env, "openstack", append(args, "-f", "json")...)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("openstack %s: %v in %s", strings.Join(args, " "), err, text)
	}
	return out
}

type row = map[string]any

// TestOpenStack is a session of an operator with the openstack command line. A call takes a second or more, so each
// step is done once, and its result is checked over DNS where possible.
func TestOpenStack(t *testing.T) {
	t.Parallel()
	s := start(t)
	env := s.passwordEnv()
	if token := stack[row](t, env, "token", "issue"); token["id"] == "" || token["project_id"] == "" {
		t.Errorf("token issue: %v", token)
	}
	t.Run("zone", func(t *testing.T) { openstackZone(t, s, env) })
	t.Run("recordset", func(t *testing.T) { openstackRecordSet(t, s, env) })
	t.Run("export and import", func(t *testing.T) { openstackFiles(t, s, env) })
	t.Run("transfer", func(t *testing.T) {
		r := stack[row](t, env, "zone", "transfer", "request", "create", "example.org.")
		if r["key"] == "" || r["status"] != "ACTIVE" {
			t.Errorf("zone transfer request create: %v", r)
		}
	})
	t.Run("delete", func(t *testing.T) {
		if z := stack[row](t, env, "zone", "delete", "example.org."); z["action"] != "DELETE" {
			t.Errorf("zone delete: %v", z)
		}
		s.mustAnswer(t, "example.org.", dns.TypeSOA, "REFUSED")
	})
	t.Run("tld", func(t *testing.T) {
		if tld := stack[row](t, env, "tld", "create", "--name", "net"); tld["name"] != "net" {
			t.Errorf("tld create: %v", tld)
		}
		if out, err := try(t, env, "openstack", "zone", "create", "--email", "admin@example.org",
			"example.org."); err == nil {
			t.Errorf("zone create below an unknown TLD: %s", out)
		}
	})
}

func openstackZone(t *testing.T, s *node, env []string) {
	z := stack[row](t, env, "zone", "create", "--email", "admin@example.org", "example.org.")
	if z["name"] != "example.org." || z["type"] != "PRIMARY" || z["status"] != "PENDING" || z["action"] != "CREATE" {
		t.Errorf("zone create: %v", z)
	}
	z = stack[row](t, env, "zone", "set", "--ttl", "600", "--description", "ours", "example.org.")
	if z["ttl"] != 600.0 || z["description"] != "ours" {
		t.Errorf("zone set: %v", z)
	}
	if shown := stack[row](t, env, "zone", "show", "example.org."); shown["serial"] != z["serial"] ||
		shown["ttl"] != 600.0 || shown["status"] != "ACTIVE" || shown["action"] != "NONE" {
		t.Errorf("zone show: %v", shown)
	}
	// Other logins: the URL of the server, with and without domains, for a project or for the system; a nameplane token
	// instead of a password; no identity service at all.
	short := []string{"OS_AUTH_URL=" + s.HTTP, "OS_USERNAME=admin", "OS_PASSWORD=" + s.Token}
	for name, env := range map[string][]string{
		"URL of the server": environment(append(short, "OS_PROJECT_NAME=admin")...),
		"URL of the server, with domains and region": environment(append(short, "OS_PROJECT_NAME=admin",
			"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_ID=default", "OS_REGION_NAME=RegionOne")...),
		"system scope": environment(append(short, "OS_SYSTEM_SCOPE=all")...),
		"token":        environment("OS_AUTH_TYPE=v3token", "OS_AUTH_URL="+s.HTTP+"/v3", "OS_TOKEN="+s.Token),
		"admin token":  environment("OS_AUTH_TYPE=admin_token", "OS_ENDPOINT="+s.HTTP+"/v2", "OS_TOKEN="+s.Token),
	} {
		if l := stack[[]row](t, env, "zone", "list"); len(l) != 1 || l[0]["name"] != "example.org." {
			t.Errorf("zone list by %s: %v", name, l)
		}
	}
}

func openstackRecordSet(t *testing.T, s *node, env []string) {
	r := stack[row](t, env, "recordset", "create", "example.org.", "www", "--type", "A", "--record", "192.0.2.1", "--ttl",
		"60")
	s.mustAnswer(t, "www.example.org.", dns.TypeA, "192.0.2.1")
	id, _ := r["id"].(string)
	stack[row](t, env, "recordset", "set", "example.org.", id, "--record", "192.0.2.2", "--record", "192.0.2.3")
	if got := strings.Fields(s.answer(t, "www.example.org.", dns.TypeA)); len(got) != 2 {
		t.Errorf("www.example.org. A = %v, want two", got)
	}
	if out, err := try(t, env, "openstack", "recordset", "create", "example.org.", "bad", "--type", "A", "--record",
		"192.0.2.300"); err == nil || !strings.Contains(err.Error(), "192.0.2.300") {
		t.Errorf("a bad record: %s %v, want its text in the message", out, err)
	}
	if l := stack[[]row](t, env, "recordset", "list", "example.org."); len(l) != 3 { // with SOA and NS
		t.Errorf("recordset list: %v", l)
	}
	stack[row](t, env, "recordset", "delete", "example.org.", id)
	s.mustAnswer(t, "www.example.org.", dns.TypeA, "NXDOMAIN")
}

func openstackFiles(t *testing.T, s *node, env []string) {
	e := stack[row](t, env, "zone", "export", "create", "example.org.")
	id, _ := e["id"].(string)
	text := stack[row](t, env, "zone", "export", "showfile", id)
	file, _ := text["data"].(string)
	if _, err := dns.NewRR(firstRecord(file)); err != nil || !strings.Contains(file, "SOA") {
		t.Errorf("zone export showfile: %v in %v", err, text)
	}
	path := filepath.Join(t.TempDir(), "zone")
	zone := "$ORIGIN imported.test.\n$TTL 300\n@ SOA ns1.example.org. admin.example.org. 7 3600 600 86400 300\n@ NS " +
		"ns1.example.org.\nwww A 192.0.2.7\n"
	if err := os.WriteFile(path, []byte(zone), 0o600); err != nil {
		t.Fatal(err)
	}
	stack[row](t, env, "zone", "import", "create", path)
	s.waitAnswer(t, "www.imported.test.", dns.TypeA, "192.0.2.7")
}

// firstRecord returns the first line of a zone file that is neither empty nor a directive.
func firstRecord(file string) string {
	for line := range strings.Lines(file) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "$") && !strings.HasPrefix(line, ";") {
			return line
		}
	}
	return ""
}
