package archtest

import (
	"flag"
	"fmt"
	"go/doc"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of packages into ARCHITECTURE.md")

const (
	tableBegin = "<!-- Written by `go test ./internal/archtest -update` from its table and the comments of the " +
		"packages. -->\n"
	tableEnd = "<!-- End of the table. -->\n"
)

// TestArchitecture compares the table of packages in ARCHITECTURE.md with the layers and the comments of the packages.
func TestArchitecture(t *testing.T) {
	file := filepath.Join(root, "ARCHITECTURE.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	got, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("ARCHITECTURE.md has no lines %q and %q", tableBegin, tableEnd)
	}
	want := packageTable(t)
	if *update {
		if err := os.WriteFile(file, []byte(before+tableBegin+want+tableEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("run go test ./internal/archtest -update: ARCHITECTURE.md (-want +got):\n%s", diff)
	}
}

// packageTable returns the layers as Markdown, the highest first.
func packageTable(t *testing.T) string {
	ideas := map[string]string{}
	for _, s := range sources(t) {
		if s.file.Doc != nil && !s.isTest() {
			ideas[s.pkg] = idea(s.file.Doc.Text())
		}
	}
	var b strings.Builder
	b.WriteString("\n| package | what it does | also imports, of its own layer |\n|---|---|---|\n")
	for _, l := range slices.Backward(layers) {
		fmt.Fprintf(&b, "| **%s** | %s | |\n", l.name, l.idea)
		for _, pkg := range slices.Sorted(maps.Keys(l.packages)) {
			var beside []string
			for _, to := range l.packages[pkg] {
				beside = append(beside, "`"+short(to)+"`")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", short(pkg), ideas[pkg], strings.Join(beside, ", "))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// short returns the folder of a package without the "internal/" that most of them share.
func short(pkg string) string { return strings.TrimPrefix(pkg, "internal/") }

// idea returns the first sentence of a package comment, without the words "Package NAME".
func idea(comment string) string {
	words := strings.SplitN(new(doc.Package).Synopsis(comment), " ", 3)
	return strings.ReplaceAll(words[len(words)-1], "|", "\\|")
}
