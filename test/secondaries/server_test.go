// Package secondaries transfers zones between a started server and those that people run: BIND, Knot, NSD and PowerDNS.
package secondaries

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nameplane-secondaries-")
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

const (
	// patience is how long anything may take before it counts as hanging. It is not a promise of speed.
	patience = 60 * time.Second

	apex   = "example.org."
	poolID = "794ccc2c-d751-44fe-b57f-8894c9f5c842"
)

var (
	key   = peers.Key{Name: "transfer.example.", Secret: "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzISEhIQ=="}
	noKey peers.Key
)

// server is a started nameplane.
type server struct {
	t       *testing.T
	cmd     *exec.Cmd
	dir     string
	log     *buffer
	exited  chan struct{}
	token   string
	DNS     []string `json:"dns"`
	HTTP    string   `json:"http"`
	zoneIDs map[string]string
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

// start starts a server with a section transfer, and waits until it serves.
func start(t *testing.T, transfer string) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "nameplane-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dir: dir, log: new(buffer), zoneIDs: map[string]string{}}
	s.configure(transfer)
	s.run()
	return s
}

func (s *server) run() {
	s.t.Helper()
	_ = os.Remove(filepath.Join(s.dir, "data", "addresses.json"))
	s.exited = make(chan struct{})
	s.cmd = exec.Command(binary, "serve", "--config", filepath.Join(s.dir, "nameplane.yaml"))
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd, exited := s.cmd, s.exited
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	s.t.Cleanup(func() { s.stop() })
	s.eventually("a server that serves", func() bool {
		b, err := os.ReadFile(filepath.Join(s.dir, "data", "addresses.json"))
		if err != nil || json.Unmarshal(b, s) != nil {
			return false
		}
		token, err := os.ReadFile(filepath.Join(s.dir, "data", "admin.token"))
		s.token = strings.TrimSpace(string(token))
		return err == nil
	})
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.exited
	if s.t.Failed() {
		s.t.Logf("the server's log:\n%s", s.log)
	}
}

func (s *server) configure(transfer string) {
	s.t.Helper()
	dns := "127.0.0.1:0"
	if len(s.DNS) > 0 {
		dns = s.DNS[0]
	}
	text := fmt.Sprintf("data: data\ndns: {listen: ['%s']}\nhttp: {listen: '127.0.0.1:0'}\ntransfer:\n  max_per_client: 32\n%s", dns, transfer)
	if err := os.WriteFile(filepath.Join(s.dir, "nameplane.yaml"), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// reload changes the section transfer of a running server.
func (s *server) reload(transfer string) {
	s.t.Helper()
	before := strings.Count(s.log.String(), "reloaded configuration")
	s.configure(transfer)
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("a reloaded configuration", func() bool { return strings.Count(s.log.String(), "reloaded configuration") > before })
}

// eventually waits until something is so.
func (s *server) eventually(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	s.t.Fatalf("there is still not %s", what)
}

// call makes a request with the admin's token and returns the reply's body.
func (s *server) call(method, path string, body any, want int) map[string]any {
	s.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.HTTP+path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", s.token)
	req.Header.Set("X-Auth-All-Projects", "true")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		s.t.Fatalf("%s %s: %s %v, want %d\n%s", method, path, res.Status, err, want, b)
	}
	out := map[string]any{}
	_ = json.Unmarshal(b, &out)
	return out
}

func (s *server) createZone(name string) {
	s.t.Helper()
	z := s.call("POST", "/v2/zones", map[string]any{"name": name, "email": "admin@example.org", "ttl": 300}, 201)
	s.zoneIDs[name] = z["id"].(string)
}

func (s *server) createKey(k peers.Key, scope, resource string) {
	s.t.Helper()
	s.call("POST", "/v2/tsigkeys", map[string]any{"name": k.Name, "algorithm": "hmac-sha256", "secret": k.Secret, "scope": scope, "resource_id": resource}, 201)
}

// put makes a record set what it is given.
func (s *server) put(zone, name, typ string, data ...string) {
	s.t.Helper()
	cmd := exec.Command(binary, append([]string{"record", "set", zone, name, typ}, data...)...)
	cmd.Env = append(os.Environ(), "NAMEPLANE_SERVER="+s.HTTP, "NAMEPLANE_TOKEN="+s.token)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("record set: %v\n%s", err, out)
	}
}

// metric is the sum of the metrics that begin so.
func (s *server) metric(prefix string) (sum float64) {
	s.t.Helper()
	req, _ := http.NewRequestWithContext(s.t.Context(), "GET", s.HTTP+"/metrics", nil)
	req.Header.Set("X-Auth-Token", s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		s.t.Fatalf("metrics: %s %v\n%s", res.Status, err, b)
	}
	for _, m := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(prefix)+`[^ ]* ([0-9.e+]+)$`).FindAllStringSubmatch(string(b), -1) {
		v, _ := strconv.ParseFloat(m[1], 64)
		sum += v
	}
	return sum
}

// ask asks a server; nil for no answer.
func ask(addr, name string, typ uint16) *dns.Msg {
	c := dns.Client{Timeout: time.Second}
	r, _, err := c.Exchange(new(dns.Msg).SetQuestion(name, typ), addr)
	if err != nil {
		return nil
	}
	return r
}

func serial(addr, zone string) uint32 {
	r := ask(addr, zone, dns.TypeSOA)
	if r == nil || len(r.Answer) != 1 {
		return 0
	}
	if soa, ok := r.Answer[0].(*dns.SOA); ok {
		return soa.Serial
	}
	return 0
}

// answers are the data of a name at a server, sorted.
func answers(addr, name string, typ uint16) string {
	r := ask(addr, name, typ)
	if r == nil {
		return "no answer"
	}
	var out []string
	for _, rec := range r.Answer {
		f := strings.SplitN(rec.String(), "\t", 5)
		out = append(out, f[len(f)-1])
	}
	if len(out) == 0 {
		return dns.RcodeToString[r.Rcode]
	}
	return strings.Join(sorted(out), " ")
}
