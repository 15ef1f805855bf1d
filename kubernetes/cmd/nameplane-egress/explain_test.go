package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/agent"
	"github.com/nameplane/nameplane/test/reference"
)

func TestSplitDestination(t *testing.T) {
	tests := []struct {
		in, host string
		port     uint16
		ok       bool
	}{
		{"example.com", "example.com", 0, true},
		{"example.com:443", "example.com", 443, true},
		{"192.0.2.1", "192.0.2.1", 0, true},
		{"192.0.2.1:53", "192.0.2.1", 53, true},
		{"2001:db8::1", "2001:db8::1", 0, true},
		{"[2001:db8::1]", "2001:db8::1", 0, true},
		{"[2001:db8::1]:443", "2001:db8::1", 443, true},
		{"example.com:https", "", 0, false},
		{"example.com:0", "", 0, false},
		{"example.com:65536", "", 0, false},
		{"a:b:c", "", 0, false},
	}
	for _, tt := range tests {
		host, port, err := splitDestination(tt.in)
		if (err == nil) != tt.ok || host != tt.host || port != tt.port {
			t.Errorf("splitDestination(%q) = %q, %d, %v", tt.in, host, port, err)
		}
	}
}

// TestHostName checks text that a user may type for a name: it is read as intended, or rejected.
func TestHostName(t *testing.T) {
	tests := []struct{ in, want string }{
		{"api.example.com", "api.example.com."},
		{"API.Example.com.", "api.example.com."},
		{"bücher.example", "xn--bcher-kva.example."},
		{"BÜCHER.example.", "xn--bcher-kva.example."},
		{"_sip._tcp.example.com", "_sip._tcp.example.com."},
		{"com", "com."},
		{"192.0.2.300", ""},
		{"192.0.2.1.", ""},
		{"192.0.2.0/24", ""},
		{"2001:db8::/32", ""},
		{"*.example.com", ""},
		{"a b.example.com", ""},
		{"example.com/x", ""},
		{"b\xfccher.example", ""},
		{".", ""},
		{"", ""},
	}
	for _, tt := range tests {
		got, err := hostName(tt.in)
		if (err == nil) != (tt.want != "") || err == nil && got.String() != tt.want {
			t.Errorf("hostName(%q) = %s, %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

// TestExplainText compares the text output with a golden file.
func TestExplainText(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	rule := 0
	r := agent.Report{Namespace: "shop", Destination: "api.example.com. port 443 TCP", InForce: []string{"node1", "node2"},
		Silent: []string{"node3"}, Warnings: []string{"192.0.2.1: not programmed by the agent 192.0.2.11:9500"},
		Answers: []agent.Answer{
			{Address: "192.0.2.1", Action: "Allow", Rule: &rule, Text: "rule 0: Allow dnsName *.example.com. ports TCP/443",
				Name: "*.example.com.", Object: "ovn-kubernetes/dns-86b778d444",
				Learned: []agent.LearnedName{{Name: "api.example.com.", At: now.Add(-10 * time.Second),
					Until: now.Add(20 * time.Second)}, {Name: "old.example.com.", At: now.Add(-time.Hour),
					Until: now.Add(-time.Minute)},
					{Name: "gone.example.com.", At: now.Add(-time.Second), Until: now.Add(4 * time.Second),
						Failing: "NXDOMAIN since 2026-01-01T00:00:00Z"}},
				Nodes: []agent.NodeState{{Agent: "192.0.2.10:9500", Node: "node1", Programmed: true, Age: 9 * time.Second,
					Lease: 20 * time.Second},
					{Agent: "192.0.2.11:9500", Node: "node2"}, {Agent: "192.0.2.13:9500", Node: "node4", Age: 3 * time.Second},
					{Agent: "192.0.2.12:9500", Error: "connection refused"}}},
			{Address: "192.0.2.2", Action: "Deny", Rule: &rule, Text: "rule 3: Deny cidrSelector 0.0.0.0/0",
				Depends: []string{"rule 1: Allow dnsName www.example.com. ports TCP/80"}},
		}}
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		if err := (&explainFlags{output: cli.Format(format)}).print(&b, r, now); err != nil {
			t.Fatal(err)
		}
		reference.CompareFile(t, filepath.Join("testdata", "explain."+format), b.String(), *update)
	}
}

func TestAgentAndExplainNotUnderstood(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	tests := []struct {
		args []string
		code int
		says string
	}{
		{[]string{"explain", "shop"}, cli.ExitUsage, "too few arguments"},
		{[]string{"explain", "shop", "a..b"}, cli.ExitUsage, `"a..b" is neither an address nor a name`},
		{[]string{"explain", "shop", ""}, cli.ExitUsage, `"" is neither an address nor a name`},
		{[]string{"explain", "shop", "192.0.2.0/24"}, cli.ExitUsage,
			`"192.0.2.0/24" is neither an address nor a name: it is a network`},
		{[]string{"explain", "", "example.com"}, cli.ExitUsage, `"" is not the name of a namespace`},
		{[]string{"explain", "Shop", "example.com"}, cli.ExitUsage, `"Shop" is not the name of a namespace`},
		{[]string{"explain", "shop", "example.com", "--dns-name-resolver-namespace", ""}, cli.ExitUsage,
			`--dns-name-resolver-namespace "": must be the name of a namespace`},
		{[]string{"explain", "shop", "example.com", "--timeout", "0"}, cli.ExitUsage, "--timeout 0s: must be longer than 0s"},
		{[]string{"explain", "shop", "example.com", "--protocol", "icmp"}, cli.ExitUsage, "--protocol icmp"},
		{[]string{"explain", "shop", "example.com", "-o", "yaml"}, cli.ExitUsage,
			`invalid argument "yaml" for "-o, --output" flag`},
		{[]string{"explain", "shop", "example.com", "--agents", "127.0.0.1:1"}, cli.ExitUsage, "--agents needs --tls-cert"},
		{[]string{"explain", "shop", "example.com"}, cli.ExitUnknown, "no cluster: "},
		{[]string{"agent", "--nb", "/var/run/x"}, cli.ExitUsage, "--nb /var/run/x: must be unix:PATH"},
		{[]string{"agent", "--nb", "ssl:127.0.0.1:1"}, cli.ExitError, "--nb-cert, --nb-key, --nb-ca: "},
		{[]string{"agent", "--cluster-subnets", "10.0.0.0"}, cli.ExitUsage, "--cluster-subnets 10.0.0.0: must be a prefix"},
		{[]string{"agent", "--cluster-subnets", ""}, cli.ExitUsage, "--cluster-subnets is empty"},
		{[]string{"agent", "--zone", ""}, cli.ExitUsage, "--zone is empty"},
		{[]string{"agent", "--dns-name-resolver-namespace", ""}, cli.ExitUsage,
			`--dns-name-resolver-namespace "": must be the name of a namespace`},
		{[]string{"agent", "--refuse", "nodes"}, cli.ExitUsage, "--refuse nodes: must be a network"},
		{[]string{"agent", "--permit", "nodes,x"}, cli.ExitUsage,
			"--permit x: must be a network such as 192.0.2.0/24, or an address, or nodes, or services"},
		{[]string{"agent", "--listen", ":9500"}, cli.ExitUsage, "--listen :9500: must be one address of this node"},
		{[]string{"agent", "--listen", "0.0.0.0:9500"}, cli.ExitUsage,
			"--listen 0.0.0.0:9500: must be one address of this node"},
		{[]string{"agent", "--listen", "[::]:9500"}, cli.ExitUsage, "--listen [::]:9500: must be one address of this node"},
		{[]string{"agent", "--listen", "192.0.2.10"}, cli.ExitUsage, "--listen 192.0.2.10: must be one address of this node"},
		{[]string{"agent", "--keep-established", "-1s"}, cli.ExitUsage, "--keep-established -1s"},
		{[]string{"agent", "--listen", "127.0.0.1:0"}, cli.ExitUsage, "--listen needs --tls-cert"},
		{[]string{"agent", "--listen", "127.0.0.1:0", "--tls-cert", "x", "--tls-key", "x", "--tls-ca", "x"}, cli.ExitError,
			"the stream's certificate: "},
		{[]string{"agent", "--cluster-subnets", "10.128.0.0/14/23,fd00::/48", "--permit", "nodes,services,192.0.2.1",
			"--refuse", "198.51.100.0/24"}, cli.ExitUnknown, "no cluster: "},
	}
	for _, tt := range tests {
		code, _, stderr := try(tt.args...)
		if code != tt.code || !strings.Contains(stderr, "nameplane-egress: "+tt.says) ||
			!strings.Contains(stderr, "\nhint: ") {
			t.Errorf("%v = %d %s, want %d %s and a hint", tt.args, code, stderr, tt.code, tt.says)
		}
	}
}

// TestUndefined runs against a cluster without our custom resource definitions.
func TestUndefined(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		default:
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`,
				http.StatusNotFound)
		}
	}))
	defer s.Close()
	config := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" + s.URL +
		"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"explain", "shop", "192.0.2.1"}, cli.ExitUnknown},
		{[]string{"manager", "--leader-elect=false", "--metrics-addr", "0", "--health-addr", "0"}, cli.ExitError},
	} {
		code, _, stderr := try(append(tt.args, "--kubeconfig", config)...)
		if code != tt.code || !strings.Contains(stderr,
			"\nhint: the cluster lacks the definitions: nameplane-egress crds | kubectl apply -f -\n") {
			t.Errorf("%v = %d %s, want %d and what to do", tt.args, code, stderr, tt.code)
		}
	}
}
