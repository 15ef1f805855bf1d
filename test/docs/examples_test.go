package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/zonefile"
	"github.com/nameplane/nameplane/test/need"
)

// TestExamples reads every file of examples with the code that users give it to.
func TestExamples(t *testing.T) {
	t.Run("zone", func(t *testing.T) {
		records := 0
		err := zonefile.Parse(strings.NewReader(text(t, "examples/example.org.zone")),
			zonefile.Options{Origin: dnsname.MustParse("example.org")}, func(zonefile.Record) error { records++; return nil })
		if err != nil || records != 11 {
			t.Errorf("%d records, %v", records, err)
		}
	})
	t.Run("descriptor", func(t *testing.T) {
		if rules, err := mec.ParseAppD([]byte(text(t, "examples/appd.yaml"))); err != nil || len(rules) != 1 {
			t.Errorf("%v, %v", rules, err)
		}
	})
	t.Run("compose", func(t *testing.T) {
		if _, err := config.Parse("nameplane.yaml", []byte(text(t, "examples/nameplane.yaml"))); err != nil {
			t.Error(err)
		}
		var c struct {
			Services map[string]struct {
				Image   string
				Volumes []string
			}
		}
		if err := yaml.Unmarshal([]byte(text(t, "examples/docker-compose.yaml")), &c); err != nil {
			t.Fatal(err)
		}
		if c.Services["primary"].Image != "nameplane" || c.Services["secondary"].Image == "" {
			t.Errorf("services: %+v", c.Services)
		}
		for name, s := range c.Services {
			for _, v := range s.Volumes {
				file, _, _ := strings.Cut(v, ":")
				if strings.HasPrefix(file, "./") {
					exists(t, name, filepath.Join("examples", file))
				}
			}
		}
	})
	t.Run("secondary", func(t *testing.T) {
		program, err := need.Installed("nsd-checkconf")
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, filepath.Join(root, "examples/nsd.conf")).CombinedOutput(); err != nil {
			t.Errorf("nsd-checkconf: %v\n%s", err, out)
		}
	})
	t.Run("kustomize", func(t *testing.T) {
		var k struct{ Resources []string }
		if err := yaml.Unmarshal([]byte(text(t, "examples/kustomize/kustomization.yaml")), &k); err != nil ||
			len(k.Resources) == 0 {
			t.Fatal(k, err)
		}
		for _, r := range k.Resources {
			exists(t, "kustomize", filepath.Join("examples/kustomize", r, "kustomization.yaml"))
		}
	})
}

func exists(t *testing.T, from, file string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, file)); err != nil {
		t.Errorf("%s refers to a file that does not exist: %v", from, err)
	}
}
