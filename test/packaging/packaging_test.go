// Package packaging tests the Debian package and the container image as an operator uses them.
//
// Start with TestDebianPackage and TestImage: each builds its artefact and runs a script of testdata in new namespaces.
package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/test/need"
)

const root = "../.."

// TestDebianPackage installs, uses, removes and purges the Debian package in a minimal system. The system has no init,
// so the script starts the server with the command of the systemd unit.
func TestDebianPackage(t *testing.T) {
	need.OrFail(t, need.Programs{"mmdebstrap": "mmdebstrap", "dig": "bind9-dnsutils", "unshare": "util-linux"})
	system, err := filepath.Abs(filepath.Join(root, ".cache/system.tar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run(t, root, "make", "deb")
	packages, err := filepath.Glob(filepath.Join(root, "dist", "nameplane_*.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("make deb wrote %v (%v), want one package", packages, err)
	}
	run(t, dir, "tar", "-xf", system, "--exclude=./dev")
	run(t, ".", "cp", packages[0], filepath.Join(dir, "nameplane.deb"))
	out := runScript(t, dir, "testdata/package.sh")
	for _, want := range []string{"ns1.localhost.", "purged"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output of the script does not contain %q:\n%s", want, out)
		}
	}
}

// TestImage builds the container image, starts it as an unprivileged user, and queries the server in it.
func TestImage(t *testing.T) {
	need.OrFail(t, need.Programs{"buildah": "buildah", "dig": "bind9-dnsutils", "unshare": "util-linux"})
	dir := t.TempDir()
	builder := "buildah --storage-driver vfs --root " + dir + "/root --runroot " + dir + "/run"
	run(t, root, "make", "image", "IMAGE=nameplane-test", "BUILDER="+builder)
	t.Setenv("BUILDER", builder)
	if out := runScript(t, dir, "testdata/image.sh"); !strings.Contains(out, `"status":"ok"`) {
		t.Errorf("the server in the container is not healthy:\n%s", out)
	}
}

// runScript runs a script in dir, in new namespaces for mounts, network and processes, and returns its output.
func runScript(t *testing.T, dir, script string) string {
	t.Helper()
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, dir, "unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "bash", "-c", string(text))
}

// run runs a command in dir and returns its output. It fails the test if the command fails.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command[0], err, out)
	}
	return string(out)
}
