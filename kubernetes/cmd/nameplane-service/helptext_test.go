package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/kubernetes/api/crds"
	"github.com/nameplane/nameplane/test/man"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestHelp(t *testing.T) { man.CompareHelp(t, newRootCommand(), *update) }

// try runs a command line that ends by itself.
func try(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of the test
	code = cli.Report(&errs, root.Name(), root.Execute())
	return code, out.String(), errs.String()
}

func TestCRDs(t *testing.T) {
	if code, out, stderr := try("crds"); code != 0 || out != string(crds.Service()) {
		t.Errorf("crds = %d, %d bytes, %s", code, len(out), stderr)
	}
	if code, out, _ := try("crds", "--domains"); code != 0 || out != string(crds.Service())+string(crds.Domains()) {
		t.Errorf("crds --domains = %d, %d bytes", code, len(out))
	}
}

func TestNotUnderstood(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no command", nil, cli.ExitUsage, "a command is missing: "},
		{"argument", []string{"run", "now"}, cli.ExitUsage, `unexpected argument "now"`},
		{"format", []string{"run", "--log-format", "xml"}, cli.ExitUsage, "--log-format xml: must be text or json"},
		{"no namespace", []string{"run", "--namespace", ""}, cli.ExitUsage,
			`--namespace "": must be the name of a namespace, such as nameplane-service`},
		{"rate of zero", []string{"run", "--rate", "0"}, cli.ExitUsage, "--rate 0: must be 1 or more queries a second"},
		{"two roots", []string{"run", "--lab", "lab", "--hints", "x"}, cli.ExitUsage,
			"--hints and --anchors cannot be used with --lab"},
		{"cluster", []string{"run"}, cli.ExitUnknown, "no cluster: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, _, stderr := try(tt.args...)
			if code != tt.code || !strings.HasPrefix(stderr, "nameplane-service: "+tt.says) ||
				!strings.Contains(stderr, "\nhint: ") {
				t.Errorf("%v = %d %s, want %d %s and a hint", tt.args, code, stderr, tt.code, tt.says)
			}
		})
	}
}

// TestPrivate checks which addresses a tenant can make the program connect to with --private.
func TestPrivate(t *testing.T) {
	connected := errors.New("connected")
	dial := privateDial(func(context.Context, string, string) (net.Conn, error) { return nil, connected })
	for address, want := range map[string]error{
		"8.8.8.8:53":              connected,
		"10.1.2.3:443":            connected,
		"[fd00::1]:443":           connected,
		"100.64.0.1:80":           connected,
		"127.0.0.1:9490":          gather.ErrNotAllowed,
		"[::1]:80":                gather.ErrNotAllowed,
		"169.254.169.254:80":      gather.ErrNotAllowed,
		"[::ffff:127.0.0.1]:80":   gather.ErrNotAllowed,
		"[64:ff9b::7f00:1]:80":    gather.ErrNotAllowed,
		"[fd00:ec2::254]:80":      gather.ErrNotAllowed,
		"0.0.0.0:80":              gather.ErrNotAllowed,
		"[fe80::1]:443":           gather.ErrNotAllowed,
		"224.0.0.1:53":            gather.ErrNotAllowed,
		"[::ffff:10.0.0.1]:443":   connected,
		"[2001:4860:4860::]:8443": connected,
	} {
		if _, err := dial(t.Context(), "tcp", address); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
}

func TestManualPages(t *testing.T) { man.Compare(t, newRootCommand(), "../../../docs/man", *update) }

func TestCommandLinePage(t *testing.T) {
	man.ComparePage(t, newRootCommand(), "../../../docs/reference/command-line.md", *update)
}
