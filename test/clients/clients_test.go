// Package clients manages a running server with the programs and libraries that users have: gophercloud, the openstack
// command line, openstacksdk and curl, and the libraries of PowerDNS clients and dnscontrol.
//
// Start with TestGophercloud in gophercloud_test.go, TestOpenStack in openstack_test.go and TestJoeig in
// powerdns_test.go.
package clients

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// node is a server with the helpers of this suite.
type node struct{ *server.Server }

func start(t *testing.T) *node {
	t.Helper()
	return &node{server.Start(t, server.Options{})}
}

// environment returns the environment of the test without variables that could lead a client to another server:
// proxies, and the clouds of the developer.
func environment(more ...string) []string {
	var out []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "OS_") && !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			out = append(out, v)
		}
	}
	return append(out, more...)
}

// run executes a program and returns its output.
func run(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	out, err := try(t, env, program, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

func try(t *testing.T, env []string, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = env
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, failed.String())
	}
	return string(out), err
}

// answer returns the answer of the server over UDP: the data of all records, or the response code of an error.
func (s *node) answer(t *testing.T, name string, typ uint16) string {
	t.Helper()
	r, err := server.Ask(s.DNS[0], name, typ)
	if err != nil {
		t.Fatal(err)
	}
	if r.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[r.Rcode]
	}
	var out []string
	for _, rr := range r.Answer {
		out = append(out, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	return strings.Join(out, " ")
}

func (s *node) mustAnswer(t *testing.T, name string, typ uint16, want string) {
	t.Helper()
	if got := s.answer(t, name, typ); got != want {
		t.Errorf("%s %s = %q, want %q", name, dns.TypeToString[typ], got, want)
	}
}
