//go:build built

package howto

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/nameplane/nameplane/test/need"
)

// TestBuiltPages runs the pages whose clients test/setup.sh builds.
func TestBuiltPages(t *testing.T) {
	need.OrFail(t, programs)
	bin, err := filepath.Abs(filepath.Join(root, ".cache/bin"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("TF_CLI_CONFIG_FILE", mirror(t, filepath.Join(bin, "terraform-provider-openstack")))
	run := maps.Clone(built)
	run["certificates-lego-pdns"] = []string{"lego"} // TestPages runs it with the older lego of Debian
	for name, clients := range run {
		t.Run(name, func(t *testing.T) {
			for _, client := range clients {
				if _, err := exec.LookPath(client); err != nil {
					t.Fatalf("%v: run test/setup.sh test-all", err)
				}
			}
			page := dir + "/" + name + ".md"
			script, _ := script(t, page)
			runPage(t, page, script)
		})
	}
}

// mirror returns a configuration of OpenTofu that takes the provider from a folder instead of the registry. The test
// has no network.
func mirror(t *testing.T, provider string) string {
	t.Helper()
	const version = "1.54.1" // as in test/tools/terraform-provider-openstack
	folder := filepath.Join(t.TempDir(), "mirror")
	target := filepath.Join(folder, "registry.opentofu.org/terraform-provider-openstack/openstack", version,
		runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-openstack_v"+version)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(provider, target); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tofurc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", folder)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
