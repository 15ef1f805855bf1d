package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// runCommand runs a command and returns its standard output.
func runCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// labUp starts a lab with the command lab up. It returns the output and a function that stops the lab.
func labUp(t *testing.T, dir string) (printed string, end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	from, to := io.Pipe()
	root := newRootCommand()
	root.SetOut(to)
	root.SetArgs([]string{"lab", "up", "--dir", dir, "--port", "0"})
	done := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		to.CloseWithError(io.EOF)
		done <- err
	}()
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		printed += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "The lab is up") {
			break
		}
	}
	return printed, func() error { cancel(); return <-done }
}

// TestLabStale checks that compare waits for a resolver that serves a stale answer. Such a resolver first tries to
// reach the authoritative servers, so its answer is slow.
func TestLabStale(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	_, end := labUp(t, dir)
	out, err := runCommand(t, "compare", "--lab="+dir, "--no-registry", "www.unreachable.test")
	if err == nil || !strings.Contains(out, "TTL08") || !strings.Contains(out, "servedStale") {
		t.Errorf("%v:\n%s", err, out)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestLab(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	_, err := runCommand(t, "lab", "list", "--dir", dir)
	if err == nil || !strings.Contains(err.Error(), "no lab is running") {
		t.Errorf("list before: %v", err)
	}
	printed, end := labUp(t, dir)
	for _, want := range []string{"DOMAIN", "bad.com", "nothing", "nameplane scan --lab=" + dir + " bad.com",
		" resolvers. Try"} {
		if !strings.Contains(printed, want) {
			t.Errorf("up does not print %q:\n%s", want, printed)
		}
	}
	_, err = runCommand(t, "lab", "up", "--dir", dir, "--port", "0")
	if err == nil || !strings.Contains(err.Error(), "running") {
		t.Errorf("a second lab in the same directory: %v", err)
	}
	list, err := runCommand(t, "lab", "list", "--dir", dir)
	if err != nil || list != printed[:strings.Index(printed, "The lab is up")] {
		t.Errorf("list differs from the output of up: %v\n%s", err, list)
	}
	labJSON(t, dir)
	out, err := runCommand(t, "lab", "flip", "www.example.com", "a", "93.184.10.99", "--dir", dir)
	if err != nil || out != "changed www.example.com. A on 2 servers\n" {
		t.Errorf("flip: %q, %v", out, err)
	}
	for _, args := range [][]string{
		{"www.example.com", "A", "nonsense"}, {"www.example.com", "NOTYPE"}, {"a..b", "A"}, {"www.example.com"},
	} {
		if out, err := runCommand(t, append([]string{"lab", "flip", "--dir", dir}, args...)...); err == nil {
			t.Errorf("flip %v: %q", args, out)
		}
	}
	if err := end(); err != nil {
		t.Errorf("up ended with %v", err)
	}
	if _, err := runCommand(t, "lab", "list", "--dir", dir); err == nil {
		t.Error("the lab is still there")
	}
}

// labJSON checks the output of lab list -o json.
func labJSON(t *testing.T, dir string) {
	t.Helper()
	out, err := runCommand(t, "lab", "list", "--dir", dir, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got labReply
	err = json.Unmarshal([]byte(out), &got)
	if err != nil || len(got.Domains) == 0 || len(got.Hints) != 2 || !strings.HasPrefix(got.Anchor, ".") {
		t.Errorf("list -o json: %v\n%.300s", err, out)
	}
	if !strings.HasPrefix(got.Addresses["8.8.8.8:53"], "127.53.0.") {
		t.Errorf("8.8.8.8 is at %q", got.Addresses["8.8.8.8:53"])
	}
}

func TestWithLabFlag(t *testing.T) {
	tests := []struct{ line, dir, want string }{
		{"nameplane scan bad.com", labDir, "nameplane scan --lab bad.com"},
		{"nameplane analyze www.six.test A", "/tmp/x", "nameplane analyze --lab=/tmp/x www.six.test A"},
		{"nameplane scan", labDir, "nameplane scan --lab"},
	}
	for _, tt := range tests {
		if got := withLabFlag(tt.line, tt.dir); got != tt.want {
			t.Errorf("withLabFlag(%q, %q) = %q, want %q", tt.line, tt.dir, got, tt.want)
		}
	}
}
