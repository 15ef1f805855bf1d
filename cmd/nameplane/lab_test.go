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

// labRun runs a command and returns what it prints.
func labRun(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// labUp starts a lab with the command, and returns what it printed and a func that ends it.
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

// TestLabStale sees that the commands wait in the lab for a resolver that answers with what it once knew, after it has
// tried to ask.
func TestLabStale(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	_, end := labUp(t, dir)
	out, err := labRun(t, "compare", "--lab="+dir, "--no-registry", "www.unreachable.test")
	if err == nil || !strings.Contains(out, "TTL08") || !strings.Contains(out, "servedStale") {
		t.Errorf("%v:\n%s", err, out)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestLab(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	if _, err := labRun(t, "lab", "list", "--dir", dir); err == nil || !strings.Contains(err.Error(), "no lab is running") {
		t.Errorf("list before: %v", err)
	}
	printed, end := labUp(t, dir)
	for _, want := range []string{"DOMAIN", "bad.com", "nothing", "nameplane scan --lab=" + dir + " bad.com", " resolvers. Try"} {
		if !strings.Contains(printed, want) {
			t.Errorf("up does not print %q:\n%s", want, printed)
		}
	}
	if _, err := labRun(t, "lab", "up", "--dir", dir, "--port", "0"); err == nil || !strings.Contains(err.Error(), "running") {
		t.Errorf("a second one in the same folder: %v", err)
	}
	list, err := labRun(t, "lab", "list", "--dir", dir)
	if err != nil || list != printed[:strings.Index(printed, "The lab is up")] {
		t.Errorf("list differs from what up printed: %v\n%s", err, list)
	}
	labJSON(t, dir)
	if out, err := labRun(t, "lab", "flip", "www.example.com", "a", "93.184.10.99", "--dir", dir); err != nil || out != "changed www.example.com. A at 2 servers\n" {
		t.Errorf("flip: %q, %v", out, err)
	}
	for _, args := range [][]string{{"www.example.com", "A", "nonsense"}, {"www.example.com", "NOTYPE"}, {"a..b", "A"}, {"www.example.com"}} {
		if out, err := labRun(t, append([]string{"lab", "flip", "--dir", dir}, args...)...); err == nil {
			t.Errorf("flip %v: %q", args, out)
		}
	}
	if err := end(); err != nil {
		t.Errorf("up ended with %v", err)
	}
	if _, err := labRun(t, "lab", "list", "--dir", dir); err == nil {
		t.Error("the lab is still there")
	}
}

func labJSON(t *testing.T, dir string) {
	t.Helper()
	out, err := labRun(t, "lab", "list", "--dir", dir, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got labReply
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Domains) == 0 || len(got.Hints) != 2 || !strings.HasPrefix(got.Anchor, ".") {
		t.Errorf("list -o json: %v\n%.300s", err, out)
	}
	if !strings.HasPrefix(got.Places["8.8.8.8:53"], "127.53.0.") {
		t.Errorf("8.8.8.8 is at %q", got.Places["8.8.8.8:53"])
	}
}

func TestInLab(t *testing.T) {
	tests := []struct{ line, dir, want string }{
		{"nameplane scan bad.com", labDir, "nameplane scan --lab bad.com"},
		{"nameplane analyze www.six.test A", "/tmp/x", "nameplane analyze --lab=/tmp/x www.six.test A"},
		{"nameplane scan", labDir, "nameplane scan --lab"},
	}
	for _, tt := range tests {
		if got := inLab(tt.line, tt.dir); got != tt.want {
			t.Errorf("inLab(%q, %q) = %q, want %q", tt.line, tt.dir, got, tt.want)
		}
	}
}
