package archtest

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// source is one Go file of the tree.
type source struct {
	pkg  string // folder, from the top of the tree
	path string
	file *ast.File
	fset *token.FileSet
	text string
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// imports returns the import paths of the file.
func (s source) imports() []string {
	var out []string
	for _, imp := range s.file.Imports {
		out = append(out, strings.Trim(imp.Path.Value, `"`))
	}
	return out
}

// readSources parses the tree once for all tests.
var readSources = sync.OnceValues(func() ([]source, error) {
	var out []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			skip := slices.Contains([]string{"bin", "data", "testdata"}, d.Name()) || filepath.ToSlash(rel) == "test/tools"
			if skip || rel != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, source{filepath.ToSlash(filepath.Dir(rel)), filepath.ToSlash(rel), f, fset, string(text)})
		return nil
	})
	return out, err
})

// sources returns every Go file of the tree, except the programs that only tests start (test/tools).
func sources(t *testing.T) []source {
	t.Helper()
	out, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found only %d files: is %s the top of the tree?", len(out), root)
	}
	return out
}

// TestLayers checks every import against the table of layers.
func TestLayers(t *testing.T) {
	exists := map[string]bool{}
	used := map[[2]string]bool{}
	for _, s := range sources(t) {
		exists[s.pkg] = true
		at := layerOf(s.pkg)
		if at < 0 {
			t.Errorf("%s: package %s is in no layer; give it one", s.path, s.pkg)
			continue
		}
		if s.isTest() || at == len(layers) {
			continue // a test may import anything
		}
		for _, path := range s.imports() {
			to, ours := strings.CutPrefix(path, module)
			if !ours || layerOf(to) < at {
				continue
			}
			if !slices.Contains(layers[at].packages[s.pkg], to) {
				t.Errorf("%s imports %s: a package imports only lower layers, and the packages beside it in the table", s.path, to)
			}
			used[[2]string{s.pkg, to}] = true
		}
	}
	for _, l := range layers {
		for pkg, beside := range l.packages {
			if !exists[pkg] {
				t.Errorf("the layer of %s has %s, which does not exist", l.name, pkg)
			}
			for _, to := range beside {
				if !used[[2]string{pkg, to}] {
					t.Errorf("%s may import %s, and does not: remove the arrow", pkg, to)
				}
			}
		}
	}
	for _, pkg := range tests {
		if !exists[pkg] {
			t.Errorf("the list of tests has %s, which does not exist", pkg)
		}
	}
}

// TestFences checks which packages import the fenced libraries.
func TestFences(t *testing.T) {
	used := map[[2]string]bool{}
	for _, s := range sources(t) {
		if s.isTest() || layerOf(s.pkg) == len(layers) {
			continue
		}
		for _, path := range s.imports() {
			for lib, allowed := range fences {
				if path != lib && !strings.HasPrefix(path, lib+"/") {
					continue
				}
				if !slices.Contains(allowed, s.pkg) {
					t.Errorf("%s imports %s, which only %v may", s.path, path, allowed)
				}
				used[[2]string{lib, s.pkg}] = true
			}
		}
	}
	for lib, allowed := range fences {
		for _, pkg := range allowed {
			if !used[[2]string{lib, pkg}] {
				t.Errorf("%s may import %s, and does not: remove it from the fence", pkg, lib)
			}
		}
	}
}

// TestRootModule keeps Kubernetes and CoreDNS out of the module of the DNS server.
func TestRootModule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, lib := range []string{"k8s.io/", "github.com/coredns/", "github.com/ovn-kubernetes/", module + "kubernetes"} {
		if strings.Contains(string(text), lib) {
			t.Errorf("go.mod requires something of %s: put the code that needs it into the module kubernetes", lib)
		}
	}
}

// TestModules resolves every import of each module from its own go.mod and go.sum. In the workspace, a module without
// a requirement gets it from another module. It would fail only when built alone, as the Makefile and Dockerfiles do.
func TestModules(t *testing.T) {
	work, err := exec.Command("go", "work", "edit", "-json", filepath.Join(root, "go.work")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var modules struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal(work, &modules); err != nil || len(modules.Use) < 2 {
		t.Fatalf("go.work uses %v (%v)", modules.Use, err)
	}
	for _, m := range modules.Use {
		cmd := exec.Command("go", "list", "-mod=readonly", "-test", "-deps", "./...")
		cmd.Dir, cmd.Env = filepath.Join(root, m.DiskPath), append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("module %s: %v: run `GOWORK=off go mod tidy` there\n%s", m.DiskPath, err, out)
		}
	}
}
