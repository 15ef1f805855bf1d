package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "bin")+"/", "../../cmd/nameplane-egress")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
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
