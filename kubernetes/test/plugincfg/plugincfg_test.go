// Package plugincfg builds a CoreDNS as the plugin's README describes, with a line in plugin.cfg. Start with
// TestPluginCfg, its only test.
package plugincfg

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const readme = "../../plugin/dnsnameresolver/README.md"

// block returns the only block of the README in a language.
func block(t *testing.T, lang string) string {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?ms)^~~~ "+lang+"\n(.*?)^~~~$").FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 {
		t.Fatalf("the README has %d blocks of %s", len(found), lang)
	}
	return found[0][1]
}

// TestPluginCfg compiles the plugin into the release of CoreDNS that this module requires, with the commands of the
// README.
func TestPluginCfg(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "coredns")
	release := strings.TrimSpace(run(t, ".", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/coredns/coredns"))
	if err := os.CopyFS(dir, os.DirFS(release)); err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(top, filepath.Join(filepath.Dir(dir), "nameplane")); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, "plugin.cfg"), func(text string) string {
		return strings.Replace(text, "\ndns64:dns64\n", "\n"+block(t, "cfg")+"dns64:dns64\n", 1)
	})
	// The build must not depend on a checksum database: the sums of all modules are known here.
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, "go.sum"), func(text string) string { return text + string(sums) })
	out := strings.Split(run(t, dir, "bash", "-eu", "-c", block(t, "sh")), "\n")
	if !slices.Contains(out, "ocp_dnsnameresolver") || !slices.Contains(out, "forward") {
		t.Errorf("coredns -plugins prints %q", out)
	}
}

// edit changes a file.
func edit(t *testing.T, file string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(change(string(text))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run returns the standard output of a command. CoreDNS is not a module of this workspace.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, failed.String(), out)
	}
	return string(out)
}
