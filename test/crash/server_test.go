// Package crash kills, fills, damages and attacks a running server, and checks that it kept what it promised.
package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nameplane-crash-")
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

// newDir is a folder that a server which gives up root can still enter; those of the testing package are closed to
// others.
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
	cmd    *exec.Cmd
	data   string
	began  time.Time
	output *buffer
	exited chan struct{} // closed when the process has ended

	dns, url, token string
	client          *http.Client
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

// launch starts a server and does not wait for it. Ports are picked by the system, unless args say otherwise.
func launch(t *testing.T, data string, args ...string) *server {
	t.Helper()
	// What a killed server left there would be taken for the new one's.
	if err := os.Remove(filepath.Join(data, "addresses.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if len(args) == 0 {
		args = []string{"--dns", "127.0.0.1:0", "--http", "127.0.0.1:0"}
	}
	s := &server{data: data, output: new(buffer), exited: make(chan struct{}), began: time.Now(),
		client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	s.cmd = exec.Command(binary, append([]string{"serve", "--data", data}, args...)...)
	s.cmd.Stderr = s.output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // how it ended is in ProcessState
		close(s.exited)
	}()
	t.Cleanup(func() { s.end(t, syscall.SIGKILL) })
	return s
}

// start starts a server and waits until it serves.
func start(t *testing.T, data string, args ...string) *server {
	t.Helper()
	s := launch(t, data, args...)
	s.wait(t)
	return s
}

func (s *server) wait(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		if b, err := os.ReadFile(filepath.Join(s.data, "addresses.json")); err == nil {
			s.learn(t, b)
			return
		}
		select {
		case <-s.exited:
			t.Fatalf("the server ended at its start, status %d:\n%s", s.cmd.ProcessState.ExitCode(), s.output)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server did not start:\n%s", s.output)
		}
	}
}

// learn takes the addresses, and the token that was written before them.
func (s *server) learn(t *testing.T, addresses []byte) {
	t.Helper()
	var at struct {
		DNS  []string
		HTTP string
	}
	if err := json.Unmarshal(addresses, &at); err != nil || len(at.DNS) == 0 {
		t.Fatalf("addresses.json %q: %v", addresses, err)
	}
	token, err := os.ReadFile(filepath.Join(s.data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	s.dns, s.url, s.token = at.DNS[0], at.HTTP, strings.TrimSpace(string(token))
}

// end sends a signal and returns the exit status once the process is gone; -1 when a signal ended it.
func (s *server) end(t *testing.T, sig syscall.Signal) int {
	t.Helper()
	_ = s.cmd.Process.Signal(sig) // it may have ended
	return s.ended(t)
}

// ended waits for the end of the process, and returns its exit status.
func (s *server) ended(t *testing.T) int {
	t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // it says what it waits for, and ends
		<-s.exited
		t.Errorf("the server did not end:\n%s", s.output)
	}
	s.client.CloseIdleConnections()
	return s.cmd.ProcessState.ExitCode()
}

func (s *server) running() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// response is a reply of the API, read whole.
type response struct {
	status int
	header http.Header
	body   []byte
}

func (r response) ok() bool { return r.status >= 200 && r.status < 300 }

// call sends a request with the admin token. An error means that it is not known what became of the request.
func (s *server) call(method, path string, in any) (response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return response{}, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, body)
	if err != nil {
		return response{}, err
	}
	req.Header.Set("X-Auth-Token", s.token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return s.send(req)
}

func (s *server) send(req *http.Request) (response, error) {
	r, err := s.client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return response{r.StatusCode, r.Header, b}, err
}

// must is call for requests that have to succeed; out gets the reply when it is not nil.
func (s *server) must(t *testing.T, method, path string, in, out any) response {
	t.Helper()
	r, err := s.call(method, path, in)
	if err != nil || !r.ok() {
		t.Fatalf("%s %s: %d %s %v\n%s", method, path, r.status, r.body, err, s.output)
	}
	if out != nil {
		if err := json.Unmarshal(r.body, out); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, r.body)
		}
	}
	return r
}

// zone of the API, as far as the tests look at it.
type zone struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Serial uint32 `json:"serial"`
}

// recordSet of the API, as far as the tests look at it.
type recordSet struct {
	ID      string   `json:"id,omitempty"`
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Records []string `json:"records"`
}

func (s *server) createZone(t *testing.T, name string) zone {
	t.Helper()
	var z zone
	s.must(t, http.MethodPost, "/v2/zones", map[string]string{"name": name, "email": "admin@example.org"}, &z)
	return z
}

// setsOf are the record sets of a zone by name; only of one type, so that names are unique.
func (s *server) setsOf(t *testing.T, z zone, typ string) map[string]recordSet {
	t.Helper()
	out := map[string]recordSet{}
	path := "/v2/zones/" + z.ID + "/recordsets?limit=1000&type=" + typ
	for path != "" {
		var page struct {
			RecordSets []recordSet `json:"recordsets"`
			Links      struct{ Next string }
		}
		s.must(t, http.MethodGet, path, nil, &page)
		for _, r := range page.RecordSets {
			out[r.Name] = r
		}
		path = strings.TrimPrefix(page.Links.Next, s.url)
	}
	return out
}

// asker asks one server over UDP.
type asker struct {
	conn   *dns.Conn
	client dns.Client
}

func newAsker(t *testing.T, addr string) *asker {
	t.Helper()
	conn, err := dns.DialTimeout("udp", addr, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &asker{conn: conn, client: dns.Client{Timeout: 5 * time.Second, UDPSize: 1232}}
}

func (a *asker) ask(name string, typ uint16) (*dns.Msg, error) {
	m := new(dns.Msg).SetQuestion(name, typ).SetEdns0(1232, false)
	r, _, err := a.client.ExchangeWithConn(m, a.conn)
	return r, err
}

// text is the TXT record of a name, "" when there is none.
func (a *asker) text(name string) (string, error) {
	r, err := a.ask(name, dns.TypeTXT)
	if err != nil {
		return "", err
	}
	switch {
	case r.Rcode == dns.RcodeNameError || r.Rcode == dns.RcodeSuccess && len(r.Answer) == 0:
		return "", nil
	case r.Rcode == dns.RcodeSuccess && len(r.Answer) == 1:
		return strings.Join(r.Answer[0].(*dns.TXT).Txt, ""), nil
	}
	return "", fmt.Errorf("%s TXT: %v", name, r)
}

// serial is the serial of the zone as it is served.
func (a *asker) serial(name string) (uint32, error) {
	r, err := a.ask(name, dns.TypeSOA)
	if err != nil {
		return 0, err
	}
	if len(r.Answer) != 1 {
		return 0, fmt.Errorf("%s SOA: %v", name, r)
	}
	return r.Answer[0].(*dns.SOA).Serial, nil
}

// mustText fails the test unless the server answers with the text.
func (s *server) mustText(t *testing.T, name, want string) {
	t.Helper()
	if got, err := newAsker(t, s.dns).text(name); err != nil || got != want {
		t.Errorf("%s TXT = %q, %v; want %q", name, got, err, want)
	}
}
