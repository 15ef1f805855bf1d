package archtest

import (
	"go/ast"
	"regexp"
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

var vagueFile = regexp.MustCompile(`(^|/)(misc|utils?|help|helpers?|common)(_test)?\.go$`)

// TestFileNames refuses names of files that do not say what is in them.
func TestFileNames(t *testing.T) {
	for _, s := range sources(t) {
		if vagueFile.MatchString(s.path) {
			t.Errorf("%s: name the file after its contents", s.path)
		}
	}
}

var startWith = regexp.MustCompile(`(?i)\bstart\s(with|in|at)\b`)

// TestPackageComments checks that each package says what it does, and where to start reading.
func TestPackageComments(t *testing.T) {
	comments := map[string]string{}
	for _, s := range sources(t) {
		comments[s.pkg] += s.file.Doc.Text()
	}
	for pkg, comment := range comments {
		switch {
		case comment == "":
			t.Errorf("package %s has no comment that says what it does", pkg)
		case !startWith.MatchString(comment):
			t.Errorf("package %s: the comment does not say which file or function to start with", pkg)
		}
	}
}

// withInit is the only file with an init function: CoreDNS finds its plugins through the init functions of packages.
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

// TestNoSkips prevents tests from passing without running. The only exception is need.go, which checks for what a
// test environment needs: root and packages, which not every machine has. make test fails earlier where it could have
// installed them.
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
