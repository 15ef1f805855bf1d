// Package server builds nameplane and runs it as a process, for the suites that test the program from outside.
//
// Start with Start in server.go. Process in process.go also runs the other servers of the suites and benchmarks.
package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Listen is a configuration with DNS and the management API on ports that the system chooses.
const Listen = "dns: {listen: ['127.0.0.1:0']}\nhttp: {listen: '127.0.0.1:0'}\n"

// Options configure the start of a server.
type Options struct {
	Dir    string   // contains the configuration and the data directory; a new temporary directory if empty
	Config string   // YAML; Listen if empty
	Args   []string // additional arguments of "nameplane serve"
	Runner []string // a command that starts nameplane; the nameplane command is appended to it; none if empty
}

// Addresses are the addresses of the listeners, as the server writes them into its data directory.
type Addresses struct {
	DNS   []string
	TLS   []string
	HTTPS []string // URLs
	QUIC  []string
	HTTP  string // URLs
	Apps  string
	MEP   string

	ExternalDNS string
}

// Server is a nameplane that serves a data directory.
type Server struct {
	*Process
	Addresses
	Dir    string
	Data   string
	Token  string // the administrator's
	Client *http.Client

	t testing.TB
}

// Launch starts a server and does not wait for it. The server ends with the test; its log is printed when the test
// fails.
func Launch(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = Dir(t)
	}
	if o.Config == "" {
		o.Config = Listen
	}
	s := &Server{Dir: o.Dir, Data: filepath.Join(o.Dir, "data"), t: t,
		Client: &http.Client{Timeout: Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	s.Configure(o.Config)
	s.Process = &Process{Name: "nameplane", LogFile: filepath.Join(t.TempDir(), "log"),
		Command: slices.Concat(o.Runner, []string{Binary(t), "serve", "--data", s.Data, "--config", s.configFile()}, o.Args)}
	s.start()
	t.Cleanup(func() {
		s.End(syscall.SIGTERM)
		if t.Failed() {
			t.Log(s.LogTail())
		}
	})
	return s
}

// Start starts a server and waits until it serves.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := Launch(t, o)
	s.Ready()
	return s
}

func (s *Server) start() {
	s.t.Helper()
	// A file left by a killed server would be mistaken for that of the new one.
	if err := os.Remove(s.addressFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	if err := s.Process.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) addressFile() string { return filepath.Join(s.Data, "addresses.json") }
func (s *Server) configFile() string  { return filepath.Join(s.Dir, "nameplane.yaml") }

// Ready waits until the server serves, and reads its addresses and the token, which the server writes before them.
func (s *Server) Ready() {
	s.t.Helper()
	for deadline := time.Now().Add(Patience); ; {
		text, err := os.ReadFile(s.addressFile())
		if err == nil {
			s.Addresses = Addresses{}
			token, err := os.ReadFile(filepath.Join(s.Data, "admin.token"))
			if err := errors.Join(err, json.Unmarshal(text, &s.Addresses)); err != nil || len(s.DNS) == 0 {
				s.t.Fatalf("addresses.json %q: %v", text, err)
			}
			s.Token = strings.TrimSpace(string(token))
			return
		}
		select {
		case <-s.Done():
			status, _ := s.Process.Wait()
			s.t.Fatalf("the server ended at its start, status %d\n%s", status, s.LogTail())
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server did not start\n%s", s.LogTail())
		}
	}
}

// Restart starts the server again with the same directory and arguments, and waits until it serves. It first kills a
// server that still runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.End(syscall.SIGKILL)
	s.start()
	s.Ready()
}

// End sends a signal and returns the exit status when the server has ended: -1 if a signal ended it.
func (s *Server) End(sig syscall.Signal) int {
	s.t.Helper()
	_ = s.Signal(sig) // it may have ended by itself
	return s.Wait()
}

// Wait returns the exit status when the server has ended.
func (s *Server) Wait() int {
	s.t.Helper()
	status, err := s.Process.Wait()
	if err != nil {
		s.t.Error(err)
	}
	s.Client.CloseIdleConnections()
	return status
}

// Configure replaces the configuration file. Everybody may read it, because a reload happens after the server dropped
// root.
func (s *Server) Configure(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.configFile(), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// Reload replaces the configuration of the running server.
func (s *Server) Reload(text string) {
	s.t.Helper()
	s.Configure(text)
	s.Hangup("reloaded configuration")
}

// Hangup sends SIGHUP and waits until the server logs a sentence.
func (s *Server) Hangup(sentence string) {
	s.t.Helper()
	n := strings.Count(s.Log(), sentence)
	if err := s.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
	Eventually(s.t, "the log says: "+sentence, func() bool { return strings.Count(s.Log(), sentence) > n })
}

// Run runs a command of nameplane as the administrator of this server, and returns its output.
func (s *Server) Run(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), Binary(s.t), args...)
	cmd.Env = append(os.Environ(), "NAMEPLANE_SERVER="+s.HTTP, "NAMEPLANE_TOKEN="+s.Token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("nameplane %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Dir returns a temporary directory that a program can enter after it dropped root. The directories of the testing
// package do not allow that.
func Dir(t testing.TB) string {
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

// Eventually waits until ok returns true.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}
