// Package archtest holds the rules of the house as tests: who may import whom, and how large things may grow.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/nameplane/nameplane/"

// rows are the layers, lowest first. A package imports only packages of rows below its own; the arrows that are allowed
// within a row are in sideways.
var rows = [][]string{
	{"internal/dnsname", "internal/rr", "internal/zone", "kubernetes/api/v1", "kubernetes/api/v1alpha1", "kubernetes/api/dns/v1alpha1", "kubernetes/api/crds"}, // nouns
	{"internal/store", "internal/store/boltstore", "internal/store/storetest", "internal/lookup", "internal/zonefile",
		"internal/resolve", "internal/resolve/iterate", "internal/resolve/secure", "internal/registry", "internal/forward"},
	{"internal/publish", "internal/access", "internal/mec", "internal/update", "internal/transfer", "internal/follow",
		"internal/alias", "kubernetes/internal/enforce", "kubernetes/internal/enforce/match", "kubernetes/internal/enforce/learn", "internal/explain", "internal/explain/safeat",
		"internal/explain/check", "internal/explain/gather", "internal/explain/report", "internal/explain/resolvers", "internal/explain/scans"},
	{"internal/dnsserver", "internal/dnspeer", "internal/config", "internal/httpapi", "internal/httpapi/designate", "internal/httpapi/identity",
		"internal/httpapi/admin", "internal/httpapi/openapi", "internal/httpapi/mec", "internal/httpapi/servermgmt", "internal/httpapi/mecbody",
		"kubernetes/internal/enforce/ovn", "kubernetes/internal/enforce/hold", "kubernetes/internal/enforce/fetch", "kubernetes/internal/controller/manager", "kubernetes/internal/controller/resolver", "kubernetes/internal/controller/agent",
		"kubernetes/plugin/dnsnameresolver", "internal/httpapi/explain", "internal/simnet", "internal/lab"},
	{"internal/cli", "internal/explain/source", "internal/daemon"},
	{"cmd/nameplane", "kubernetes/cmd/nameplane-egress", "kubernetes/cmd/nameplane-coredns"},
	// Never linked into a program that users run.
	{"test/server",
		"internal/archtest", "internal/access/accesstest", "test/peers", "test/compare", "test/clients", "test/clients/openapi", "test/crash", "test/docs", "test/mec", "test/alias", "test/secondaries", "test/explain", "test/explain/real", "test/need", "kubernetes/test/cluster", "kubernetes/test/egress", "kubernetes/test/egress/rig", "kubernetes/test/egress/system", "deploy", "kubernetes/test/deploy", "bench", "kubernetes/bench/egress", "bench/explain"},
}

// sideways are the arrows within a row.
var sideways = map[string][]string{
	"internal/rr":                          {"internal/dnsname"},
	"internal/zone":                        {"internal/rr", "internal/dnsname"},
	"internal/store/boltstore":             {"internal/store"},
	"internal/store/storetest":             {"internal/store"},
	"internal/access":                      {"internal/publish"},
	"internal/transfer":                    {"internal/publish"},
	"internal/update":                      {"internal/publish"},
	"internal/mec":                         {"internal/publish"},
	"internal/alias":                       {"internal/publish", "internal/follow"},
	"internal/forward":                     {"internal/resolve"},
	"internal/resolve/iterate":             {"internal/resolve"},
	"internal/resolve/secure":              {"internal/resolve", "internal/resolve/iterate"},
	"internal/explain":                     {"internal/explain/safeat"},
	"internal/explain/check":               {"internal/explain", "internal/explain/safeat"},
	"internal/explain/gather":              {"internal/explain", "internal/explain/safeat", "internal/explain/resolvers", "internal/explain/scans"},
	"internal/explain/report":              {"internal/explain", "internal/explain/safeat", "internal/explain/check"},
	"internal/explain/scans":               {"internal/publish", "internal/explain", "internal/explain/check", "internal/explain/report"},
	"internal/lab":                         {"internal/simnet"},
	"internal/httpapi/explain":             {"internal/httpapi"},
	"kubernetes/internal/enforce/match":    {"kubernetes/internal/enforce"},
	"kubernetes/internal/enforce/learn":    {"kubernetes/internal/enforce"},
	"kubernetes/internal/controller/agent": {"kubernetes/internal/enforce/ovn", "kubernetes/internal/enforce/hold"},
	"kubernetes/plugin/dnsnameresolver":    {"kubernetes/internal/enforce/hold", "kubernetes/internal/enforce/fetch"},
	"kubernetes/test/cluster":              {"test/need"},
	"test/explain/real":                    {"test/need"},
	"kubernetes/test/egress":               {"kubernetes/test/cluster", "test/peers"},
	"kubernetes/test/egress/rig":           {"kubernetes/test/cluster"},
	"kubernetes/test/egress/system":        {"kubernetes/test/cluster", "kubernetes/test/egress/rig"},
	"kubernetes/bench/egress":              {"kubernetes/test/cluster", "kubernetes/test/egress/rig", "test/peers"},
	"internal/httpapi/mec":                 {"internal/httpapi", "internal/httpapi/mecbody"},
	"internal/httpapi/servermgmt":          {"internal/httpapi", "internal/httpapi/mecbody"},
	"internal/httpapi/designate":           {"internal/httpapi"},
	"internal/httpapi/identity":            {"internal/httpapi"},
	"internal/httpapi/admin":               {"internal/httpapi"},
	"internal/httpapi/openapi":             {"internal/httpapi"},
	"internal/dnspeer":                     {"internal/dnsserver"},
	"internal/daemon":                      {"internal/explain/source"},
	"test/compare":                         {"test/peers"},
	"test/secondaries":                     {"test/peers"},
	"bench":                                {"test/peers"},
}

// fenced are the libraries that only some packages may know, so that they can be replaced, and so that no program links
// what it does not use.
var fenced = map[string][]string{
	"go.etcd.io/bbolt":               {"internal/store/boltstore", "bench"},
	"go.etcd.io/etcd":                {},
	"github.com/miekg/dns":           {"internal/rr", "internal/resolve", "internal/resolve/iterate", "internal/resolve/secure", "internal/forward", "internal/follow", "internal/transfer", "internal/dnsserver", "internal/dnspeer", "internal/simnet", "internal/lab", "test/explain", "test/explain/real", "bench/explain", "kubernetes/internal/enforce/learn", "kubernetes/internal/controller/resolver", "kubernetes/plugin/dnsnameresolver", "test/compare", "test/peers", "kubernetes/test/cluster", "kubernetes/test/egress", "kubernetes/test/egress/rig", "kubernetes/test/egress/system", "bench", "kubernetes/bench/egress",
		"test/server"},
	"github.com/golang-jwt/jwt":      {"internal/access"},
	"k8s.io/":                        kubernetes,
	"sigs.k8s.io/":                   kubernetes,
	"github.com/coredns/":            {"kubernetes/plugin/dnsnameresolver", "kubernetes/cmd/nameplane-coredns"},
	"github.com/ovn-kubernetes/":     {"kubernetes/internal/enforce/ovn"},
	"github.com/go-json-experiment/": {"kubernetes/internal/enforce/fetch"},
	"github.com/spf13/":              {"internal/cli", "cmd/nameplane", "kubernetes/cmd/nameplane-egress"},
	"go.yaml.in/yaml/v3":             {"internal/config", "internal/mec"},
	"golang.org/x/crypto/":           {"internal/access"},
	"golang.org/x/sys/unix":          {"internal/dnsserver", "internal/store/boltstore", "bench", "test/peers", "kubernetes/test/cluster"},
}

// kubernetes are the packages that may know of Kubernetes.
var kubernetes = []string{
	"kubernetes/api/v1", "kubernetes/api/v1alpha1", "kubernetes/api/dns/v1alpha1",
	"kubernetes/internal/enforce/fetch", "kubernetes/internal/controller/manager", "kubernetes/internal/controller/resolver", "kubernetes/internal/controller/agent",
	"kubernetes/plugin/dnsnameresolver", "kubernetes/cmd/nameplane-egress", "kubernetes/cmd/nameplane-coredns", "kubernetes/test/cluster", "kubernetes/test/egress", "kubernetes/test/egress/rig", "kubernetes/test/egress/system", "kubernetes/bench/egress",
}

// source is one Go file of the tree.
type source struct {
	pkg  string // folder, from the top of the repository
	path string
	file *ast.File
	fset *token.FileSet
	text string
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			// test/tools are modules of their own.
			if rel != "." && strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "data", "testdata"}, d.Name()) || rel == "test/tools" {
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
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found only %d files: looked in the wrong place", len(out))
	}
	return out
}

func rowOf(pkg string) int {
	return slices.IndexFunc(rows, func(r []string) bool { return slices.Contains(r, pkg) })
}

func TestLayers(t *testing.T) {
	for _, s := range sources(t) {
		row := rowOf(s.pkg)
		if row < 0 {
			t.Errorf("%s: package %s has no row in the table of layers; give it one", s.path, s.pkg)
			continue
		}
		if s.isTest() {
			continue // a test may stand on anything
		}
		for _, imp := range s.file.Imports {
			to, ok := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module)
			if ok && rowOf(to) >= row && !slices.Contains(sideways[s.pkg], to) {
				t.Errorf("%s imports %s: arrows only go down", s.path, to)
			}
		}
	}
}

func TestFences(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		for _, imp := range s.file.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			for lib, allowed := range fenced {
				if (path == lib || strings.HasPrefix(path, strings.TrimSuffix(lib, "/")+"/")) && !slices.Contains(allowed, s.pkg) {
					t.Errorf("%s imports %s, which is fenced to %v", s.path, path, allowed)
				}
			}
		}
	}
}
