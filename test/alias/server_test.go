// Package alias flattens ALIAS records by a started server, through an Unbound, from an authority that the tests script.
package alias

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
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
	dir, err := os.MkdirTemp("", "nameplane-alias-")
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
const patience = 60 * time.Second

// process is a program that runs.
type process struct {
	cmd    *exec.Cmd
	log    *buffer
	exited chan struct{}
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

func launch(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), log: new(buffer), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its log
		close(p.exited)
	}()
	t.Cleanup(func() { p.end(syscall.SIGTERM) })
	return p
}

func (p *process) end(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig)
	<-p.exited
}

// newDir is a folder that programs which give up root can enter.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nameplane-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("there is still not %s", what)
}

// authority is the server of example.net, which says what the test wants.
type authority struct {
	addr string

	mu      sync.Mutex // guards the following
	records []dns.RR
	broken  bool // says that it cannot answer
	asked   int
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	l, conn := listenBoth(t)
	a.addr = l.Addr().String()
	for _, s := range []*dns.Server{{PacketConn: conn, Handler: dns.HandlerFunc(a.serve)}, {Listener: l, Handler: dns.HandlerFunc(a.serve)}} {
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return a
}

// listenBoth binds one port for TCP and UDP. One that is free for the one may be taken for the other.
func listenBoth(t *testing.T) (net.Listener, net.PacketConn) {
	t.Helper()
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := net.ListenPacket("udp", l.Addr().String()); err == nil {
			return l, conn
		}
		_ = l.Close()
	}
	t.Fatal("no port is free for both TCP and UDP")
	return nil, nil
}

// set gives the zone these records and no others.
func (a *authority) set(lines ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records = nil
	for _, l := range lines {
		rec, err := dns.NewRR(l)
		if err != nil {
			panic(err)
		}
		a.records = append(a.records, rec)
	}
}

func (a *authority) breaks(broken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = broken
}

func (a *authority) serve(w dns.ResponseWriter, q *dns.Msg) {
	_ = w.WriteMsg(a.answer(q))
}

func (a *authority) answer(q *dns.Msg) *dns.Msg {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	m := new(dns.Msg).SetReply(q)
	if a.broken {
		m.Rcode = dns.RcodeServerFailure
		return m
	}
	m.Authoritative = true
	exists := false
	name := strings.ToLower(q.Question[0].Name)
	for _, rec := range a.records {
		if rec.Header().Name != name {
			continue
		}
		exists = true
		if t := rec.Header().Rrtype; t == q.Question[0].Qtype || t == dns.TypeCNAME {
			m.Answer = append(m.Answer, rec)
		}
	}
	if len(m.Answer) == 0 {
		soa, _ := dns.NewRR("example.net. 1 IN SOA ns.example.net. host.example.net. 1 3600 600 86400 1")
		m.Ns = []dns.RR{soa}
		if !exists && name != "example.net." && name != "." {
			m.Rcode = dns.RcodeNameError
		}
	}
	return m
}

// freePort is a port of loopback that nobody has at the moment.
func freePort(t *testing.T) string {
	t.Helper()
	l, conn := listenBoth(t)
	defer l.Close()
	defer conn.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// unbound starts a caching resolver that asks the authority for everything, and nobody else for anything.
func unbound(t *testing.T, a *authority) string {
	t.Helper()
	dir, port := newDir(t), freePort(t)
	stub := strings.Replace(a.addr, ":", "@", 1)
	config := fmt.Sprintf(`server:
  interface: 127.0.0.1@%[1]s
  outgoing-interface: 127.0.0.1
  directory: "%[2]s"
  chroot: ""
  username: ""
  pidfile: "%[2]s/pid"
  use-syslog: no
  do-daemonize: no
  do-ip6: no
  do-not-query-localhost: no
  module-config: "iterator"
  num-threads: 1
  infra-host-ttl: 1
  infra-keep-probing: yes
stub-zone:
  name: "example.net."
  stub-addr: %[3]s
stub-zone:
  name: "."
  stub-addr: %[3]s
remote-control:
  control-enable: no
`, port, dir, stub)
	file := filepath.Join(dir, "unbound.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "unbound", "-d", "-c", file)
	addr := "127.0.0.1:" + port
	eventually(t, "an Unbound that answers", func() bool {
		select {
		case <-p.exited:
			t.Fatalf("unbound ended:\n%s", p.log)
		default:
		}
		c := dns.Client{Timeout: 200 * time.Millisecond}
		r, _, err := c.Exchange(new(dns.Msg).SetQuestion("ready.example.net.", dns.TypeA), addr)
		return err == nil && r.Rcode == dns.RcodeNameError
	})
	return addr
}

// server is a started nameplane.
type server struct {
	*process
	t     *testing.T
	dir   string
	token string
	DNS   []string `json:"dns"`
	HTTP  string   `json:"http"`
}

func startServer(t *testing.T, resolvers ...string) *server {
	t.Helper()
	s := &server{t: t, dir: newDir(t)}
	quoted := make([]string, len(resolvers))
	for i, r := range resolvers {
		quoted[i] = "'" + r + "'"
	}
	config := fmt.Sprintf("data: data\ndns: {listen: ['127.0.0.1:0']}\nhttp: {listen: '127.0.0.1:0'}\ntransfer: {allow: [127.0.0.0/8]}\n"+
		"follow: {resolvers: [%s], interval: 10s, ttl_floor: 1s, timeout: 500ms}\n", strings.Join(quoted, ", "))
	if err := os.WriteFile(filepath.Join(s.dir, "nameplane.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	s.run()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.log)
		}
	})
	return s
}

func (s *server) run() {
	s.t.Helper()
	_ = os.Remove(filepath.Join(s.dir, "data", "addresses.json"))
	s.process = launch(s.t, binary, "serve", "--config", filepath.Join(s.dir, "nameplane.yaml"))
	eventually(s.t, "a server that serves", func() bool {
		b, err := os.ReadFile(filepath.Join(s.dir, "data", "addresses.json"))
		if err != nil || json.Unmarshal(b, s) != nil {
			return false
		}
		token, err := os.ReadFile(filepath.Join(s.dir, "data", "admin.token"))
		s.token = strings.TrimSpace(string(token))
		return err == nil
	})
}

// do makes a request; the error is the connection's.
func (s *server) do(method, path, body string) (int, map[string]any, error) {
	req, err := http.NewRequest(method, s.HTTP+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-Auth-Token", s.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	var out map[string]any
	if json.Unmarshal(b, &out) != nil {
		out = map[string]any{"text": string(b)}
	}
	return res.StatusCode, out, err
}

// must is do for what must succeed.
func (s *server) must(method, path, body string) map[string]any {
	s.t.Helper()
	code, out, err := s.do(method, path, body)
	if err != nil || code/100 != 2 {
		s.t.Fatalf("%s %s = %d %v %v", method, path, code, out, err)
	}
	return out
}

func (s *server) zone(name string) string {
	s.t.Helper()
	return "/v2/zones/" + s.must("POST", "/v2/zones", fmt.Sprintf(`{"name":%q,"email":"a@example.org"}`, name))["id"].(string)
}

func (s *server) alias(zone, name, target string) string {
	s.t.Helper()
	out := s.must("POST", zone+"/recordsets", fmt.Sprintf(`{"name":%q,"type":"ALIAS","ttl":300,"records":[%q]}`, name, target))
	return zone + "/recordsets/" + out["id"].(string)
}

// answer is the answers to a question, in order.
func (s *server) answer(name string, t uint16) string {
	s.t.Helper()
	c := dns.Client{Timeout: 5 * time.Second}
	r, _, err := c.Exchange(new(dns.Msg).SetQuestion(name, t), s.DNS[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return texts(r.Answer)
}

// texts is records as name, TTL and address, in order.
func texts(records []dns.RR) string {
	var out []string
	for _, rec := range records {
		h := rec.Header()
		switch r := rec.(type) {
		case *dns.A:
			out = append(out, fmt.Sprintf("%s %d %s", h.Name, h.Ttl, r.A))
		case *dns.AAAA:
			out = append(out, fmt.Sprintf("%s %d %s", h.Name, h.Ttl, r.AAAA))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// transfer is a whole zone.
func (s *server) transfer(zone string) []dns.RR {
	s.t.Helper()
	tr := new(dns.Transfer)
	ch, err := tr.In(new(dns.Msg).SetAxfr(zone), s.DNS[0])
	if err != nil {
		s.t.Fatal(err)
	}
	var out []dns.RR
	for e := range ch {
		if e.Error != nil {
			s.t.Fatal(e.Error)
		}
		out = append(out, e.RR...)
	}
	return out
}
