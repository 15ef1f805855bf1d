package crds_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the top of the repository.
const root = "../../.."

// TestGenerated generates everything again in a copy of the tree and compares the result with the checked-in files.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "kubernetes/go.mod", "kubernetes/go.sum", "kubernetes/api",
		"test/tools/controller-gen", "deploy/kubernetes/egress", "deploy/kubernetes/service"} {
		if err := copyTo(filepath.Join(dir, name), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(dir, "kubernetes", "api", "generate.sh"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, folder := range []string{"kubernetes/api", "deploy/kubernetes/egress", "deploy/kubernetes/service"} {
		want, got := files(t, filepath.Join(dir, folder)), files(t, filepath.Join(root, folder))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is not what `make generate` makes (-generated +checked in):\n%s", folder, diff)
		}
	}
}

func copyTo(to, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// files returns the content of each file in a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		out[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
