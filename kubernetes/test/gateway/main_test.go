// Package gateway checks a service behind a real gateway: Traefik, with a real API server and the CRDs of the Gateway
// API. The nameplane program runs as released, in a network namespace with public addresses.
//
// Start with TestFaults in gateway_test.go: each case breaks one thing, and repairs it. rig_test.go starts the parts.
package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/server"
)

// definitions is the environment variable with the folder of the Gateway API. It is set inside the namespace.
const definitions = "NAMEPLANE_GATEWAY_API"

// programs are the programs of Debian that the tests need.
var programs = need.Programs{"ip": "iproute2", "unshare": "util-linux"}

// ready skips the test if no Traefik is built: that takes long, so only make test-gateway builds it. Nothing else is a
// reason to skip.
func ready(t *testing.T) {
	t.Helper()
	if _, err := cluster.Tool("traefik"); err != nil {
		need.OrSkip(t, need.Programs{".cache/bin/traefik": "Traefik, by make test-gateway"})
	}
	need.OrFail(t, programs)
}

// TestMain runs the tests in their own namespaces. The network namespace keeps packets inside, and the process
// namespace ends all servers with the tests.
func TestMain(m *testing.M) {
	_, err := cluster.Tool("traefik")
	if err != nil || need.Missing(programs) != nil || os.Getenv(definitions) != "" {
		os.Exit(m.Run()) // if something is missing, every test reports it
	}
	err = runInside()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(max(exit.ExitCode(), 1))
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runInside runs this test program again. What needs the go command is done before, because the namespace has no
// network.
func runInside() error {
	folder, err := gatewayAPI()
	if err != nil {
		return err
	}
	env, err := server.BuildEnv()
	if err != nil {
		return err
	}
	cmd := exec.Command("unshare", append([]string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"--", os.Args[0]}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(env, definitions+"="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}

// gatewayAPI returns the folder of the module of the Gateway API, in the version that Traefik is built with.
func gatewayAPI() (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", "sigs.k8s.io/gateway-api")
	cmd.Dir = "../../../test/tools/traefik"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("download the Gateway API: %w\n%s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", err
	}
	return module.Dir, nil
}
