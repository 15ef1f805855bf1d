package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	span     = regexp.MustCompile("`([^`\n]+)`")
	pathOnly = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$`)
	testFunc = regexp.MustCompile(`\.(Test|Fuzz|Benchmark|Example)[A-Z]`) // see TestNamedTests
)

// unbuilt are directories that make targets create, so a fresh copy of the tree does not have them.
var unbuilt = []string{"bin", "data", "dist"}

// TestPaths checks that every file or directory of the repository that a page names in backticks exists. A span is a
// path of the repository if it begins with the name of a top-level directory, or if it ends with ".go"; then it may
// lack the directories above.
func TestPaths(t *testing.T) {
	top := map[string]bool{}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		top[e.Name()] = e.IsDir() && !slices.Contains(unbuilt, e.Name())
	}
	goFiles := goFiles(t)
	found := 0
	for _, page := range everyPage(t) {
		for i, line := range strings.Split(text(t, page), "\n") {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				path := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(m[1], "./"), "..."), "/")
				first, _, nested := strings.Cut(path, "/")
				whole := nested && top[first]
				if !pathOnly.MatchString(path) || testFunc.MatchString(path) || !whole && filepath.Ext(path) != ".go" {
					continue
				}
				found++
				_, err := os.Stat(filepath.Join(root, path))
				if err != nil && (whole || !strings.Contains(goFiles, "/"+path+"\n")) {
					t.Errorf("%s:%d: %s does not exist", page, i+1, path)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("found only %d paths: is the pattern still right?", found)
	}
}

// goFiles returns the paths of all Go files of the tree, one in a line.
func goFiles(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, path := range walk(t, ".go") {
		b.WriteString("/" + path + "\n")
	}
	return b.String()
}

// everyPage returns the Markdown files of the tree, with those that only a forge reads.
func everyPage(t *testing.T) []string { return walk(t, ".md") }

// walk returns the files of the tree with an extension, except test data and the products of make.
func walk(t *testing.T, ext string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && (rel == ".git" || slices.Contains(unbuilt, rel) || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ext {
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
