package real_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/test/explain/real"
	"github.com/nameplane/nameplane/test/server"
)

// inside is the environment variable with the directory for the files of the servers. It is set inside the namespace.
const inside = "NAMEPLANE_REAL_DIR"

// TestMain builds nameplane and runs the tests in their own namespaces. The network namespace keeps packets inside,
// the process namespace ends all servers with the tests, and the mount namespace allows another resolv.conf.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if real.Missing() != nil {
		return m.Run() // every test reports what is missing
	}
	if os.Getenv(inside) != "" {
		code := m.Run()
		if current.running != nil {
			current.running.Stop()
		}
		return code
	}
	dir, err := os.MkdirTemp("", "explain-real-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	env, err := server.BuildEnv()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command("unshare", append([]string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"--", os.Args[0]}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(env, inside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// kind is a kind of environment.
type kind string

const (
	plain  kind = "plain"  // without signatures
	signed kind = "signed" // the resolvers validate
	ofLab  kind = "lab"    // the resolvers validate the domains of the lab
)

// current is the environment of all tests. The first test starts it, and a test that needs another kind replaces it.
var current struct {
	running *real.Environment
	lab     *lab.Lab // nil: the environment has none
	kind    kind
	err     error
}

// internet returns an environment without signatures, in which nameplane runs without options.
func internet(t *testing.T) *real.Environment {
	t.Helper()
	return start(t, plain)
}

// signedInternet returns an environment whose resolvers validate.
func signedInternet(t *testing.T) *real.Environment {
	t.Helper()
	return start(t, signed)
}

// labInternet returns an environment whose resolvers use the lab.
func labInternet(t *testing.T) (*real.Environment, *lab.Lab) {
	t.Helper()
	return start(t, ofLab), current.lab
}

func start(t *testing.T, k kind) *real.Environment {
	t.Helper()
	real.Need(t)
	if current.running != nil && current.kind != k {
		current.running.Stop()
		current.running = nil
	}
	if current.running == nil {
		current.kind, current.lab = k, nil
		dir := filepath.Join(os.Getenv(inside), "environment-"+string(k))
		if k == ofLab {
			current.running, current.lab, current.err = real.StartLab(dir)
		} else {
			current.running, current.err = real.Start(dir, k == signed)
		}
	}
	if current.err != nil {
		t.Fatal(current.err)
	}
	return current.running
}

// run runs nameplane as a user would, and returns its output and exit status.
func run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, server.Binary(t), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 3 || len(out) == 0) {
		t.Fatalf("nameplane %v: %v\n%s\n%s", args, err, out, stderr(err))
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func stderr(err error) []byte {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.Stderr
	}
	return nil
}

// scanReport returns the report of scan, analyze or compare. The environment has no registry.
func scanReport(t *testing.T, args ...string) *report.Report {
	t.Helper()
	args = append(args, "--no-registry", "-o", "json")
	if a := current.running.Anchors; a != "" {
		args = append(args, "--anchors", a)
	}
	out, _ := run(t, args...)
	r := new(report.Report)
	if err := json.Unmarshal([]byte(out), r); err != nil {
		t.Fatalf("nameplane %v: %v\n%s", args, err, out)
	}
	return r
}
