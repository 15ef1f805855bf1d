package real_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
)

// patience is for servers to start, and for scans.
const patience = 30 * time.Second

// TestIntercepted puts somebody on the way, who replies from the address at which there is no server. The command and the
// server, which asks public addresses only, must both see it, and say nothing of the kind when nobody is there.
func TestIntercepted(t *testing.T) {
	internet(t)
	s := serve(t)
	see := func(domain string, want explain.Status) {
		t.Helper()
		for who, r := range map[string]*report.Report{"command": look(t, "scan", domain), "server": s.scan(t, domain)} {
			i := slices.IndexFunc(r.Findings, func(f explain.Finding) bool { return f.ID == "VAN01" })
			if i < 0 || r.Findings[i].Status != want {
				t.Errorf("%s: VAN01 is not %s: %s", who, want, texts(r))
			}
		}
	}
	see("good.com", explain.Pass)
	end := intercept(t)
	see("live.com", explain.Fail) // the same scan within ten seconds would be shared
	end()
}

// intercept answers questions to 192.0.2.53, in the namespace.
func intercept(t *testing.T) (end func()) {
	t.Helper()
	if out, err := exec.Command("ip", "address", "replace", "192.0.2.53/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("ip: %v\n%s", err, out)
	}
	conn, err := net.ListenPacket("udp4", "192.0.2.53:53")
	if err != nil {
		t.Fatal(err)
	}
	answer := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(new(dns.Msg).SetReply(q)) })
	server := &dns.Server{PacketConn: conn, Handler: answer}
	done := make(chan error, 1)
	go func() { done <- server.ActivateAndServe() }()
	return func() {
		if err := errors.Join(server.Shutdown(), <-done, exec.Command("ip", "address", "del", "192.0.2.53/32", "dev", "lo").Run()); err != nil {
			t.Error(err)
		}
	}
}

// served is a server of nameplane, as it runs without any setting about what it asks.
type served struct{ url, token string }

func serve(t *testing.T) (s served) {
	t.Helper()
	dir := t.TempDir()
	config, data := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "data")
	if err := os.WriteFile(config, []byte("explain: {registry: false}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Getenv(inside), "serve", "--config", config, "--data", data, "--dns", "127.0.0.1:0", "--http", "127.0.0.1:0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	var at struct{ HTTP string }
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(data, "addresses.json")); err == nil && json.Unmarshal(text, &at) == nil {
			break
		}
		if time.Since(begun) > patience {
			t.Fatal("the server does not start")
		}
	}
	token, err := os.ReadFile(filepath.Join(data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	return served{url: at.HTTP, token: strings.TrimSpace(string(token))}
}

// scan is the report of a scan that the server makes.
func (s served) scan(t *testing.T, target string) *report.Report {
	t.Helper()
	var x struct{ ID, State string }
	s.ask(t, "POST", "/explain/v1/scans", `{"kind": "scan", "target": "`+target+`"}`, &x)
	for begun := time.Now(); x.State != "done"; time.Sleep(50 * time.Millisecond) {
		if s.ask(t, "GET", "/explain/v1/scans/"+x.ID, "", &x); time.Since(begun) > patience {
			t.Fatalf("the scan does not end: %+v", x)
		}
	}
	r := new(report.Report)
	s.ask(t, "GET", "/explain/v1/scans/"+x.ID+"/report", "", r)
	return r
}

func (s served) ask(t *testing.T, method, path, body string, out any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(out); err != nil || res.StatusCode >= 400 {
		t.Fatalf("%s %s: %s, %v", method, path, res.Status, err)
	}
}
