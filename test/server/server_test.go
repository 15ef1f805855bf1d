package server_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nameplane/nameplane/test/server"
)

// TestProcess starts one program twice: SIGTERM ends it first, then SIGKILL.
func TestProcess(t *testing.T) {
	p := &server.Process{Name: "sh", LogFile: filepath.Join(t.TempDir(), "log"), Env: []string{"WORD=ready"},
		Command: []string{"sh", "-c", `trap "exit 3" TERM; echo $WORD; while :; do sleep 0.01; done`}}
	if !p.Ended() {
		t.Error("a program that was never started runs")
	}
	for i, tt := range []struct {
		sig    syscall.Signal
		status int
	}{{syscall.SIGTERM, 3}, {syscall.SIGKILL, -1}} {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		server.Eventually(t, "a line in the log", func() bool { return strings.Count(p.Log(), "ready\n") == i+1 })
		if p.Ended() {
			t.Error("the program ended before its signal")
		}
		if status, err := p.End(tt.sig); status != tt.status || err != nil || !p.Ended() {
			t.Errorf("End(%v) = %d, %v; want %d", tt.sig, status, err, tt.status)
		}
	}
}

// TestServer starts a server, uses its API, kills it and starts it again on the same data.
func TestServer(t *testing.T) {
	s := server.Start(t, server.Options{})
	zone := s.CreateZone("example.org.")
	s.Run("record", "set", "example.org.", "www", "A", "192.0.2.1")
	pid := s.PID()
	s.Restart()
	if s.PID() == pid {
		t.Error("Restart did not start a new process")
	}
	var got struct{ Name string }
	s.Must("GET", zone, nil, &got)
	if got.Name != "example.org." {
		t.Errorf("after a restart the zone is %+v", got)
	}
	if r := s.Ask("www.example.org", 1); len(r.Answer) != 1 {
		t.Errorf("www.example.org A = %v", r)
	}
	if r, err := s.Call("GET", s.HTTP+"/v2/zones", nil); err != nil || r.Status != 401 {
		t.Errorf("a whole URL without a token: %d, %v, want 401", r.Status, err)
	}
	s.Reload(server.Listen + "log: {level: debug}\n")
	if n := s.Metric("go_goroutines"); n < 1 {
		t.Errorf("go_goroutines is %v", n)
	}
	if status := s.End(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
