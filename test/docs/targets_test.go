package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testTargets are the targets of the Makefile that run tests, in the order of the columns of CONTRIBUTING.md.
var testTargets = []string{"quick", "test", "test-all"}

// TestMakeTargets compares the packages that have tests, the packages that each target of the Makefile runs, and the
// table of CONTRIBUTING.md. A target runs each package at most once.
func TestMakeTargets(t *testing.T) {
	packages := testedPackages(t)
	if len(packages) < 60 {
		t.Fatalf("found only %d packages with tests", len(packages))
	}
	table := targetTable(t)
	for i, target := range testTargets {
		ran := ranBy(t, target, packages)
		for pkg := range packages {
			row, ok := rowFor(table, pkg)
			if !ok {
				t.Errorf("CONTRIBUTING.md: no row says what runs the tests of %s", pkg)
				continue
			}
			want := 0
			if row[i] {
				want = 1
			}
			if ran[pkg] != want {
				t.Errorf("make %s runs the tests of %s %d times, CONTRIBUTING.md says %d", target, pkg, ran[pkg], want)
			}
		}
	}
}

// testedPackages returns the folder of every package with tests, and the folder of its module.
func testedPackages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") ||
			slices.Contains([]string{"testdata", "bin", "data"}, d.Name())) {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			found[filepath.Dir(rel)] = moduleOf(filepath.Dir(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func moduleOf(dir string) string {
	for dir != "." {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

var ruleRow = regexp.MustCompile("(?m)^\\| ((?:`[^`]+`(?:, )?)+) \\| (yes|no) \\| (yes|no) \\| (yes|no) \\|")

// targetTable reads the table of CONTRIBUTING.md: for each pattern of packages, the targets that run them.
func targetTable(t *testing.T) map[string][]bool {
	t.Helper()
	out := map[string][]bool{}
	for _, m := range ruleRow.FindAllStringSubmatch(text(t, "CONTRIBUTING.md"), -1) {
		for pattern := range strings.SplitSeq(m[1], ", ") {
			out[strings.Trim(pattern, "`")] = []bool{m[2] == "yes", m[3] == "yes", m[4] == "yes"}
		}
	}
	if len(out) == 0 {
		t.Fatal("CONTRIBUTING.md has no table of packages and targets")
	}
	return out
}

// rowFor returns the row of the longest pattern that a package matches.
func rowFor(table map[string][]bool, pkg string) (row []bool, ok bool) {
	longest := -1
	for pattern, r := range table {
		if n := len(pattern); matches(".", pattern, pkg) && n > longest {
			row, ok, longest = r, true, n
		}
	}
	return row, ok
}

// matches reports whether a pattern of the go command, used in a folder, names a package.
func matches(dir, pattern, pkg string) bool {
	prefix, all := strings.CutSuffix(pattern, "/...")
	path := filepath.Join(dir, prefix)
	return path == pkg || all && (path == "." || strings.HasPrefix(pkg, path+"/"))
}

var goTest = regexp.MustCompile(`(?m)^(?:cd (\S+) && )?go test (.*)$`)

// ranBy counts how often a target runs each package.
func ranBy(t *testing.T, target string, packages map[string]string) map[string]int {
	t.Helper()
	cmd := exec.Command("make", "--no-print-directory", "--dry-run", "GO=go", target)
	cmd.Dir = root
	// make may have started this test. Its flags must not reach this make.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") ||
			strings.HasPrefix(v, "MFLAGS")
	})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make --dry-run %s: %v\n%s", target, err, out)
	}
	ran := map[string]int{}
	for _, m := range goTest.FindAllStringSubmatch(string(out), -1) {
		if strings.Contains(m[2], "-tags ") {
			continue // more tests of a package that another line runs
		}
		dir := filepath.Clean(m[1])
		for pkg, module := range packages {
			if module == dir && slices.ContainsFunc(strings.Fields(m[2]),
				func(arg string) bool { return strings.HasPrefix(arg, ".") && matches(dir, arg, pkg) }) {
				ran[pkg]++
			}
		}
	}
	return ran
}
