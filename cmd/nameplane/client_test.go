package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/cli"
)

// TestReplyError checks the messages and hints for error replies.
func TestReplyError(t *testing.T) {
	tests := []struct {
		name, body, location string
		status, code         int
		text, hint           string
	}{
		{name: "fields", status: 400, code: cli.ExitError,
			body: `{"code":400,"type":"invalid_object","message":"Provided object does not match schema",
				"errors":{"errors":[{"path":["changes",0,"records",1],"message":"not an address"},
				{"path":["ttl"],"message":"too small"}]}}`,
			text: "records[1]: not an address; ttl: too small"},
		{name: "message", status: 409, code: cli.ExitError, body: `{"message":"it exists at example.org."}`,
			text: "it exists at example.org."},
		{name: "keystone", status: 400, code: cli.ExitError, body: `{"error":{"message":"the other form"}}`,
			text: "the other form"},
		{name: "no json", status: 404, code: cli.ExitError, body: `<html>`, text: "the server answered 404 Not Found"},
		{name: "401", status: 401, code: cli.ExitError, body: `{"message":"x"}`, hint: "the token was read from the test;",
			text: "the server does not know this token, or it has expired or was revoked"},
		{name: "403", status: 403, code: cli.ExitError, body: `{"message":"no"}`, text: "no",
			hint: "the token from the test lacks the permission"},
		{name: "412", status: 412, code: cli.ExitError, body: `{"message":"changed"}`, text: "changed",
			hint: "another client changed the resource"},
		{name: "503", status: 503, code: cli.ExitError, body: `{"message":"disk full"}`, text: "disk full",
			hint: "see the log of the server"},
		{name: "500", status: 500, code: cli.ExitError, body: `{"message":"oops","request_id":"req-1"}`, text: "oops",
			hint: "req-1"},
		{name: "redirect", status: 302, code: cli.ExitError, location: "http://127.0.0.1:1/", hint: "set the final address",
			text: `answered with a redirect to "http://127.0.0.1:1/"`},
		{name: "not nameplane", status: 200, code: cli.ExitError, body: `hello`, text: "sent an unexpected reply",
			hint: "nameplane server"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", tt.location)
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			}))
			defer s.Close()
			c := clientOf(t, s)
			err := c.call(t.Context(), http.MethodGet, "/", nil, &struct{}{})
			f, ok := errors.AsType[*cli.Failure](err)
			if !ok {
				t.Fatalf("err = %v, want a failure", err)
			}
			if f.Code != tt.code || !strings.Contains(f.Text, tt.text) || !strings.Contains(f.Hint, tt.hint) {
				t.Errorf("got %d %q, hint %q; want %d %q, hint %q", f.Code, f.Text, f.Hint, tt.code, tt.text, tt.hint)
			}
		})
	}
}

// clientOf returns a client for a test server. It opens the client as the commands do.
func clientOf(t *testing.T, s *httptest.Server) *client {
	t.Helper()
	conn := &connection{server: s.URL}
	t.Setenv("NAMEPLANE_TOKEN", "np_test")
	c, err := conn.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.tokenFrom = "the test"
	return c
}

func TestHTTPS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"token":"`+r.Header.Get("X-Auth-Token")+`"}`)
	}))
	defer s.Close()
	s.Config.ErrorLog = nil
	ca := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NAMEPLANE_TOKEN", "np_test")

	var reply struct{ Token string }
	conn := &connection{server: s.URL, caFile: ca}
	c, err := conn.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.call(t.Context(), http.MethodGet, "/", nil, &reply); err != nil || reply.Token != "np_test" {
		t.Errorf("with --ca-file: %v, token %q", err, reply.Token)
	}

	conn.caFile = ""
	if c, err = conn.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = c.call(t.Context(), http.MethodGet, "/", nil, &reply)
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Code != cli.ExitUnknown || !strings.Contains(f.Hint, "--ca-file") {
		t.Errorf("without --ca-file: %v", err)
	}

	conn.caFile = "client_test.go"
	if _, err = conn.open(t.Context()); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Errorf("with a file that is not a certificate: %v", err)
	}
}

// TestPages checks that the client follows links to the last page, and ignores the host of the links.
func TestPages(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := map[string]string{"": "a", "a": "b", "b": ""}[r.URL.Query().Get("marker")]
		links := map[string]string{"self": "x"}
		if next != "" {
			links["next"] = "http://127.0.0.1:1/things?marker=" + next
		}
		json.NewEncoder(w).Encode(map[string]any{"things": []string{r.URL.Query().Get("marker")}, "links": links})
	}))
	defer s.Close()
	var got []string
	err := clientOf(t, s).pages(t.Context(), "/things", "things", func(items []json.RawMessage) error {
		for _, item := range items {
			got = append(got, string(item))
		}
		return nil
	})
	if want := `"" "a" "b"`; err != nil || strings.Join(got, " ") != want {
		t.Errorf("pages = %s, %v, want %s", got, err, want)
	}
}

// TestDownloadIncomplete checks that no file stays when a download ends early: an incomplete backup would be taken for
// a complete one.
func TestDownloadIncomplete(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(bytes.Repeat([]byte("x"), 1<<20))
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	c := clientOf(t, s)
	path := filepath.Join(t.TempDir(), "backup")
	_, err := writeFile(path, false, func(w io.Writer) (int64, error) {
		req, err := c.request(t.Context(), http.MethodGet, "/", nil)
		if err != nil {
			return 0, err
		}
		return c.download(req, w)
	})
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Code != cli.ExitUnknown || !strings.Contains(f.Text, "ended after 1.0 MB") {
		t.Errorf("err = %v, want an incomplete reply", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
}

// TestWriteFile checks that a file that another process creates during the write is overwritten only with force.
func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(text string, force bool, before func()) error {
		_, err := writeFile(path, force, func(w io.Writer) (int64, error) {
			before()
			n, err := io.WriteString(w, text)
			return int64(n), err
		})
		return err
	}
	other := func() { os.WriteFile(path, []byte("theirs"), 0o644) }
	if err := write("ours", false, other); err == nil {
		t.Error("a file that was created in the meantime was overwritten")
	}
	if b, _ := os.ReadFile(path); string(b) != "theirs" {
		t.Errorf("the file holds %q, want theirs", b)
	}
	if err := write("ours", true, other); err != nil {
		t.Error(err)
	}
	b, _ := os.ReadFile(path)
	info, err := os.Stat(path)
	if err != nil || string(b) != "ours" || info.Mode().Perm() != 0o600 {
		t.Errorf("the file holds %q with mode %v, want ours with 0600", b, info.Mode())
	}
}

func TestInterrupted(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := clientOf(t, s).call(ctx, http.MethodGet, "/", nil, nil)
	if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != cli.ExitUnknown || f.Text != "interrupted" {
		t.Errorf("err = %v, want interrupted", err)
	}
}
