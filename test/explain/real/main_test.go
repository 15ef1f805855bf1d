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
	"github.com/nameplane/nameplane/test/explain/real"
	"github.com/nameplane/nameplane/test/server"
)

// inside names the directory for the files of the servers to the process in the namespace.
const inside = "NAMEPLANE_REAL_DIR"

// TestMain builds nameplane and runs the tests in namespaces of their own: network, so that nothing gets out; processes, so
// that all end with the tests; mounts, for a resolv.conf.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if real.Missing() != nil {
		return m.Run() // every test says what is missing
	}
	if os.Getenv(inside) != "" {
		code := m.Run()
		if world.running != nil {
			world.running.Stop()
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
	cmd := exec.Command("unshare", append([]string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--", os.Args[0]}, os.Args[1:]...)...)
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

// world is started by the first test that needs it, and is that of all until one needs the other kind.
var world struct {
	running *real.World
	signed  bool
	err     error
}

// internet is a world that is not signed, in which nameplane runs without options.
func internet(t *testing.T) *real.World {
	t.Helper()
	return worldOf(t, false)
}

// signedInternet is a world whose resolvers validate.
func signedInternet(t *testing.T) *real.World {
	t.Helper()
	return worldOf(t, true)
}

func worldOf(t *testing.T, signed bool) *real.World {
	t.Helper()
	real.Need(t)
	if world.running != nil && world.signed != signed {
		world.running.Stop()
		world.running = nil
	}
	if world.running == nil {
		world.signed = signed
		world.running, world.err = real.Start(filepath.Join(os.Getenv(inside), fmt.Sprintf("world-%v", signed)), signed)
	}
	if world.err != nil {
		t.Fatal(world.err)
	}
	return world.running
}

// run runs nameplane as anybody would, and returns what it wrote and its exit status.
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

// look is the report of scan, analyze or compare. There is no registry in this world.
func look(t *testing.T, args ...string) *report.Report {
	t.Helper()
	args = append(args, "--no-registry", "-o", "json")
	if a := world.running.Anchors; a != "" {
		args = append(args, "--anchors", a)
	}
	out, _ := run(t, args...)
	r := new(report.Report)
	if err := json.Unmarshal([]byte(out), r); err != nil {
		t.Fatalf("nameplane %v: %v\n%s", args, err, out)
	}
	return r
}
