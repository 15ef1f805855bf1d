package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/kubernetes/api/crds"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestHelp compares the help of every command with testdata/help, and checks that each has a description and an
// example.
func TestHelp(t *testing.T) {
	root := newRootCommand()
	seen := map[string]bool{}
	for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
		file := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".txt"
		seen[file] = true
		t.Run(c.CommandPath(), func(t *testing.T) {
			if c.Short == "" || c.Long == "" || c.Example == "" {
				t.Error("the command lacks a short or long description, or an example")
			}
			for line := range strings.Lines(c.Long) {
				if len(line) > 90 {
					t.Errorf("a line of %d bytes does not fit a terminal: %s", len(line), line)
				}
			}
			_, out, _ := try(append(strings.Fields(c.CommandPath())[1:], "--help")...)
			golden(t, filepath.Join("testdata/help", file), out)
		})
	}
	files, err := os.ReadDir("testdata/help")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[f.Name()] {
			t.Errorf("testdata/help/%s is of no command", f.Name())
		}
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

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
	for _, tt := range []struct {
		args []string
		want []byte
	}{
		{[]string{"crds"}, crds.YAML()},
		{[]string{"crds", "--deep-wildcards"}, crds.DeepYAML()},
	} {
		if code, out, stderr := try(tt.args...); code != 0 || out != string(tt.want) {
			t.Errorf("%v = %d, %d bytes, %s", tt.args, code, len(out), stderr)
		}
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
		{"other command", []string{"run"}, cli.ExitUsage, `"run" is not a command of nameplane-egress; did you mean `},
		{"argument", []string{"manager", "now"}, cli.ExitUsage, `unexpected argument "now"`},
		{"flag", []string{"manager", "--fast"}, cli.ExitUsage, "unknown flag: --fast"},
		{"format", []string{"manager", "--log-format", "xml"}, cli.ExitUsage, "--log-format xml: must be text or json"},
		{"no namespace", []string{"manager", "--namespace", ""}, cli.ExitUsage,
			`--namespace "": must be the name of a namespace, such as ovn-kubernetes`},
		{"no namespace of objects", []string{"resolver", "--dns-name-resolver-namespace", ""}, cli.ExitUsage,
			`--dns-name-resolver-namespace "": must be`},
		{"no namespace of CoreDNS", []string{"resolver", "--coredns-namespace", ""}, cli.ExitUsage,
			`--coredns-namespace "": must be`},
		{"no service", []string{"resolver", "--coredns-service-name", ""}, cli.ExitUsage, "--coredns-service-name is empty"},
		{"no port", []string{"resolver", "--coredns-port", "0"}, cli.ExitUsage, "--coredns-port 0: must be from 1"},
		{"rate of zero", []string{"resolver", "--rate", "0"}, cli.ExitUsage, "--rate 0: must be 1 or more lookups a second"},
		{"negative rate", []string{"resolver", "--rate", "-5"}, cli.ExitUsage,
			"--rate -5: must be 1 or more lookups a second"},
		{"cluster", []string{"manager"}, cli.ExitUnknown, "no cluster: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, _, stderr := try(tt.args...)
			if code != tt.code || !strings.HasPrefix(stderr, "nameplane-egress: "+tt.says) ||
				!strings.Contains(stderr, "\nhint: ") {
				t.Errorf("%v = %d %s, want %d %s and a hint", tt.args, code, stderr, tt.code, tt.says)
			}
		})
	}
}
