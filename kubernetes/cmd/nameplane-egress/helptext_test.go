package main

import (
	"bytes"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/cli"
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
