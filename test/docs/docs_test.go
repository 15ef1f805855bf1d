// Package docs checks the documentation against the programs, so that it stays true. Start with TestShell, which runs
// the shell blocks of the pages.
package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/test/pages"
)

const root = "../.."

// guides are run in this order in one shell, as a reader would.
var guides = []string{
	"README.md",
	"docs/reference/zones-api.md", "docs/reference/server.md", "docs/reference/mec.md", "docs/reference/alias.md",
	"docs/reference/transfers.md", "docs/reference/explain.md", "docs/reference/lab.md",
	"docs/tutorials/first-zone.md", "docs/tutorials/apex-alias.md", "docs/tutorials/edge-application.md",
	"docs/tutorials/why-a-domain-fails.md", podTutorial,
	egressPage,
}

func blocks(t *testing.T, page string) []pages.Block {
	t.Helper()
	return pages.Blocks(t, root, page)
}

// TestShell runs every shell block of the pages in one shell, against the server that `make run` starts. It uses a
// copy of the tree and its own network namespace, so that the ports of the pages are free.
func TestShell(t *testing.T) {
	dir := t.TempDir()
	pages.Clone(t, root, dir)
	out, err := pages.Run(t, dir, session(t))
	if err != nil {
		t.Fatalf("the shell blocks of %v: %v\n%s", guides, err, out)
	}
	for _, want := range []string{"\n192.0.2.1\n", "restored example.org. at serial", "imported", "mail.example.org."} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not show %q:\n%s", want, out)
		}
	}
}

// session returns the script of all pages. The first block, with the two commands, is replaced by the start of the
// server. `make test` cannot run inside itself, so make only checks that the target exists.
func session(t *testing.T) string {
	var b strings.Builder
	b.WriteString(pages.Prologue)
	started := false
	for _, page := range guides {
		for _, bl := range blocks(t, page) {
			if bl.Lang != "sh" || page == egressPage { // which kubernetes/test/deploy.TestPage runs
				continue
			}
			if !started {
				if !strings.Contains(bl.Text, "make test") || !strings.Contains(bl.Text, "make run") {
					t.Fatalf("the first shell block of README.md is not the two commands:\n%s", bl.Text)
				}
				b.WriteString(startServer)
				started = true
				continue
			}
			b.WriteString(bl.Shell())
		}
	}
	return b.String()
}

const startServer = `make --dry-run test >/dev/null
make nameplane
bin/nameplane serve --data data --dns 127.0.0.1:5300 --http 127.0.0.1:8053 >server.log 2>&1 &
SERVER=$!
make --dry-run run | grep -x 'bin/nameplane serve --data data --dns 127.0.0.1:5300 --http 127.0.0.1:8053' >/dev/null
for i in $(seq 100); do
	curl -sf http://127.0.0.1:8053/readyz >/dev/null && break
	[ "$i" != 100 ] || { cat server.log; exit 1; }
	sleep 0.1
done
`

func allPages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			rel, _ := filepath.Rel(root, path)
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestData parses every YAML block as a configuration and every JSON block as JSON.
func TestData(t *testing.T) {
	seen := map[string]int{}
	for _, page := range guides {
		for _, b := range blocks(t, page) {
			seen[b.Lang]++
			switch b.Lang {
			case "yaml":
				if strings.Contains(b.Text, "\napiVersion: ") {
					continue // of Kubernetes; see TestEgressExample
				}
				if _, err := config.Parse(page, []byte(b.Text)); err != nil {
					t.Errorf("%s: %v in\n%s", page, err, b.Text)
				}
			case "json":
				if !json.Valid([]byte(b.Text)) {
					t.Errorf("%s: not JSON:\n%s", page, b.Text)
				}
			}
		}
	}
	if seen["yaml"] == 0 || seen["json"] == 0 || seen["sh"] == 0 {
		t.Errorf("blocks by language: %v; the test has nothing to parse", seen)
	}
}

var (
	link = regexp.MustCompile(`\]\(([^)#:]+)\)`)
	code = regexp.MustCompile("`[^`\n]*`") // patterns in code contain brackets that are no links
)

// TestLinks checks the links between the pages.
func TestLinks(t *testing.T) {
	for _, page := range allPages(t) {
		b, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(b), ""), -1) {
			target := filepath.Join(root, filepath.Dir(page), m[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}

var testName = regexp.MustCompile("`([a-z/-]+)\\.(Test[A-Za-z0-9_]+|Fuzz[A-Za-z0-9_]+)(/[^`]+)?`")

// TestNamedTests checks that every test that a page names exists in the named package, and that every subtest is
// named there.
func TestNamedTests(t *testing.T) {
	for page, least := range map[string]int{"docs/reference/conformance.md": 30, "docs/explanation/threats.md": 20} {
		b, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		names := testName.FindAllStringSubmatch(string(b), -1)
		if len(names) < least {
			t.Fatalf("%s names only %d tests", page, len(names))
		}
		for _, m := range names {
			files, _ := filepath.Glob(filepath.Join(root, m[1], "*_test.go"))
			has := func(text string) bool {
				return slices.ContainsFunc(files, func(f string) bool {
					b, err := os.ReadFile(f)
					return err == nil && strings.Contains(string(b), text)
				})
			}
			if !has("func " + m[2] + "(") {
				t.Errorf("%s: there is no %s in %s", page, m[2], m[1])
			}
			if sub := strings.TrimPrefix(m[3], "/"); sub != "" && !has(strconv.Quote(sub)) {
				t.Errorf("%s: %s in %s has no %q", page, m[2], m[1], sub)
			}
		}
	}
}

var number = regexp.MustCompile(`^[A-Z]?[0-9]+[a-z]?(, |$)`)

// TestConformanceRows checks that every row of docs/reference/conformance.md describes what is tested, without a number
// that a reader cannot look up, and names a test. The generated table of Designate's calls has a test of its own.
func TestConformanceRows(t *testing.T) {
	rows, generated := 0, false
	for line := range strings.Lines(text(t, "docs/reference/conformance.md")) {
		if strings.HasPrefix(line, "| ") && strings.HasSuffix(line, "| difference |\n") {
			generated = true
		}
		if generated = generated && strings.HasPrefix(line, "|"); generated {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), " | ")
		first := strings.TrimPrefix(cells[0], "| ")
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| test |\n") {
			continue
		}
		rows++
		if number.MatchString(first) {
			t.Errorf("the first cell is a number, not a description: %s", line)
		}
		if !testName.MatchString(cells[len(cells)-1]) {
			t.Errorf("the last cell names no test: %s", line)
		}
	}
	if rows < 200 {
		t.Errorf("found only %d rows", rows)
	}
}

func TestArchitectureIsShort(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\|`).FindAll(b, -1) // the tables have a row for each package
	if n := strings.Count(string(b), "\n") - len(rows); n > 130 {
		t.Errorf("ARCHITECTURE.md has %d lines beside its tables, more than 130: shorten it", n)
	}
}
