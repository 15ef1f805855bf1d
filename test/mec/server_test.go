// Package mec drives a started server as edge applications, platforms and an EdgeGallery mepserver do, and asks it over DNS what
// came of it.
package mec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nameplane-mec-")
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

// patience is how long anything may take before it counts as hanging. It is not a promise of speed.
const patience = 30 * time.Second

// newDir is a folder that a server which gives up root can still enter.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nameplane-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// server is one process that serves a data directory.
type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	data   string
	output *buffer
	exited chan struct{} // closed when the process has ended
	client *http.Client
	admin  string

	DNS  []string
	HTTP string
	Apps string
	MEP  string
}

// buffer collects what a process writes while others read it.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// settings of all tests: every listener, and platforms on this machine without a token, as a mepserver comes.
const settings = `dns: {listen: ['127.0.0.1:0']}
http: {listen: '127.0.0.1:0'}
apps: {listen: '127.0.0.1:0'}
mep: {listen: '127.0.0.1:0', authentication: none}
`

// start starts a server with a configuration and more arguments, and waits until it serves.
func start(t *testing.T, data, config string, args ...string) *server {
	t.Helper()
	// What a killed server left there would be taken for the new one's.
	if err := os.Remove(filepath.Join(data, "addresses.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(data), "nameplane.yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, data: data, output: new(buffer), exited: make(chan struct{}),
		client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	s.cmd = exec.Command(binary, append([]string{"serve", "--data", data, "--config", file}, args...)...)
	s.cmd.Stderr = s.output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // how it ended is in ProcessState
		close(s.exited)
	}()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	s.wait()
	return s
}

func (s *server) wait() {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		if b, err := os.ReadFile(filepath.Join(s.data, "addresses.json")); err == nil {
			token, err := os.ReadFile(filepath.Join(s.data, "admin.token"))
			if err := errors.Join(err, json.Unmarshal(b, s)); err != nil {
				s.t.Fatal(err)
			}
			s.admin = strings.TrimSpace(string(token))
			return
		}
		select {
		case <-s.exited:
			s.t.Fatalf("the server ended at its start:\n%s", s.output)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server did not start:\n%s", s.output)
		}
	}
}

// end sends a signal and returns the exit status once the process is gone; -1 when a signal ended it.
func (s *server) end(sig syscall.Signal) int {
	_ = s.cmd.Process.Signal(sig) // it may have ended
	select {
	case <-s.exited:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		s.t.Errorf("the server did not end:\n%s", s.output)
		<-s.exited
	}
	s.client.CloseIdleConnections()
	return s.cmd.ProcessState.ExitCode()
}

// response is a reply, read whole.
type response struct {
	*http.Response
	body string
}

// call makes a request: "METHOD URL", a body, and headers as "Name: value".
func (s *server) call(call, body string, headers ...string) (response, error) {
	method, url, _ := strings.Cut(call, " ")
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return response{res, string(b)}, err
}

// want makes a call that must have this status.
func (s *server) want(status int, call, body string, headers ...string) response {
	s.t.Helper()
	r, err := s.call(call, body, headers...)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", call, err, s.output)
	}
	if r.StatusCode != status {
		s.t.Fatalf("%s %s = %d %s, want %d", call, body, r.StatusCode, r.body, status)
	}
	if r.StatusCode >= 400 {
		var p struct{ Status int }
		if err := json.Unmarshal([]byte(r.body), &p); err != nil || p.Status != r.StatusCode || r.Header.Get("Content-Type") != "application/problem+json" {
			s.t.Errorf("%s: %d is no problem document: %s %s", call, r.StatusCode, r.Header.Get("Content-Type"), r.body)
		}
	}
	return r
}

// appToken makes a token of an application instance, and returns it as a header.
func (s *server) appToken(app string) string {
	s.t.Helper()
	b, err := json.Marshal(map[string]string{"name": "app-" + app, "project": "admin", "role": "app", "app": app})
	if err != nil {
		s.t.Fatal(err)
	}
	r := s.want(201, "POST "+s.HTTP+"/access/v1/tokens", string(b), "X-Auth-Token: "+s.admin)
	var made struct{ Token struct{ Token string } }
	if err := json.Unmarshal([]byte(r.body), &made); err != nil || made.Token.Token == "" {
		s.t.Fatalf("token %s: %v", r.body, err)
	}
	return "Authorization: Bearer " + made.Token.Token
}

// ask asks the server over UDP.
func (s *server) ask(name string, typ uint16) *dns.Msg {
	s.t.Helper()
	c := dns.Client{Timeout: 5 * time.Second, UDPSize: 1232}
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), typ).SetEdns0(1232, false)
	r, _, err := c.Exchange(m, s.DNS[0])
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, dns.TypeToString[typ], err, s.output)
	}
	return r
}

// answer is what the server says to a question, as short text: addresses with the TTL, NODATA, or the error.
func (s *server) answer(name string, typ uint16) string {
	s.t.Helper()
	r := s.ask(name, typ)
	if r.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[r.Rcode]
	}
	if len(r.Answer) == 0 {
		return "NODATA"
	}
	var out []string
	for _, rr := range r.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			out = append(out, fmt.Sprint(rr.A, "/", rr.Hdr.Ttl))
		case *dns.AAAA:
			out = append(out, fmt.Sprint(rr.AAAA, "/", rr.Hdr.Ttl))
		default:
			out = append(out, rr.String())
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// says fails the test unless the server says this to "NAME TYPE".
func (s *server) says(question, want string) {
	s.t.Helper()
	name, typ, _ := strings.Cut(question, " ")
	if got := s.answer(name, dns.StringToType[typ]); got != want {
		s.t.Errorf("%s = %s, want %s", question, got, want)
	}
}

// rule is the JSON of a rule.
func rule(id, name, addr, more string) string {
	family := "IP_V4"
	if strings.Contains(addr, ":") {
		family = "IP_V6"
	}
	return fmt.Sprintf(`{"dnsRuleId":%q,"domainName":%q,"ipAddressType":%q,"ipAddress":%q%s}`, id, name, family, addr, more)
}
