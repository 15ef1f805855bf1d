package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestPage runs the shell blocks of docs/reference/egress.md in one shell. Package test/docs runs those of the other
// pages.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/egress.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := rig.Build(filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	script := "set -eux -o pipefail\n"
	for _, m := range shellBlock.FindAllStringSubmatch(string(page), -1) {
		script += m[1]
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "nameplane-egress-agent.crt: OK") ||
		!strings.Contains(string(out), "+ bin/nameplane-egress crds") {
		t.Errorf("the shell blocks of docs/reference/egress.md: %v\n%s", err, out)
	}
}
