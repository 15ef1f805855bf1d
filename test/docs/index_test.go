package docs

import (
	"path/filepath"
	"strings"
	"testing"
)

// indexes lists the directories below docs, each with the pages that must link to all of its pages.
var indexes = map[string][]string{
	"docs":             {"docs/README.md"},
	"docs/tutorials":   {"docs/README.md"},
	"docs/how-to":      {"docs/how-to/README.md"},
	"docs/reference":   {"docs/README.md", "docs/reference/README.md"},
	"docs/explanation": {"docs/README.md"},
	"docs/designs":     {"docs/designs/README.md"},
}

// TestIndexes checks that a reader finds every page of docs in the index of its directory.
func TestIndexes(t *testing.T) {
	for _, page := range allPages(t) {
		if !strings.HasPrefix(page, "docs/") {
			continue
		}
		dir := filepath.Dir(page)
		if indexes[dir] == nil {
			t.Errorf("%s: the list of indexes does not have %s", page, dir)
		}
		for _, index := range indexes[dir] {
			rel, err := filepath.Rel(filepath.Dir(index), page)
			if err != nil {
				t.Fatal(err)
			}
			if page != index && !strings.Contains(text(t, index), "]("+rel+")") {
				t.Errorf("%s does not link to %s", index, page)
			}
		}
	}
}
