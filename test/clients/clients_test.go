// Package clients manages a started server with the programs and libraries that people have: gophercloud, the openstack
// command line, openstacksdk and curl.
package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

// binary is the server, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nameplane-clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "nameplane")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/nameplane").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// server is a started server and its admin token.
type server struct {
	*peers.Server
	token string
}

func start(t *testing.T) *server {
	t.Helper()
	s, err := peers.Nameplane(binary).Start(t.Context(), nil, peers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	token, err := s.Token()
	if err != nil {
		t.Fatal(err)
	}
	return &server{s, token}
}

// environment is ours without what could lead a client elsewhere: proxies, and clouds that somebody works with.
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

// run executes a program and returns what it printed.
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

// answer is what the server says over UDP: the data of all records, or the code when it is no success.
func (s *server) answer(t *testing.T, name string, typ uint16) string {
	t.Helper()
	client := dns.Client{Timeout: 5 * time.Second}
	r, _, err := client.Exchange(new(dns.Msg).SetQuestion(name, typ), s.Addr)
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

func (s *server) mustAnswer(t *testing.T, name string, typ uint16, want string) {
	t.Helper()
	if got := s.answer(t, name, typ); got != want {
		t.Errorf("%s %s = %q, want %q", name, dns.TypeToString[typ], got, want)
	}
}
