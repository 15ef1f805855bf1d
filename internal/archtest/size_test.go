package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

// Hard limits. Aim for half of them (CONTRIBUTING.md).
const (
	maxFileLines = 600
	maxFuncLines = 80
)

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		if n := strings.Count(s.text, "\n"); n > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: split it by reason to change", s.path, n, maxFileLines)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.isTest() {
				continue
			}
			n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			if n > maxFuncLines {
				t.Errorf("%s: %s has %d lines, more than %d", s.path, f.Name.Name, n, maxFuncLines)
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	has := map[string]bool{}
	for _, s := range sources(t) {
		if _, seen := has[s.pkg]; !seen && !s.isTest() {
			has[s.pkg] = false
		}
		if s.file.Doc != nil {
			has[s.pkg] = true
		}
	}
	for pkg, ok := range has {
		if !ok {
			t.Errorf("package %s has no comment that says its one idea", pkg)
		}
	}
}

// withInit is the one file with an init function: CoreDNS knows its plugins by those of the packages it imports.
const withInit = "kubernetes/plugin/dnsnameresolver/setup.go"

// TestNoInit keeps the start of the programs visible in main.
func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		if s.path == withInit {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function", s.path)
			}
		}
	}
}

// TestNoSkips keeps a test from passing by not running. The exception is the one place that finds out what a rig needs: root
// and packages, which not every machine has; make test fails before that where it could have installed them.
func TestNoSkips(t *testing.T) {
	for _, s := range sources(t) {
		if s.pkg == "internal/archtest" || s.path == "test/need/need.go" {
			continue
		}
		for _, word := range []string{"t.Skip(", "t.Skipf(", "t.SkipNow(", "b.Skip("} {
			if strings.Contains(s.text, word) {
				t.Errorf("%s skips a test with %s", s.path, word)
			}
		}
	}
}
