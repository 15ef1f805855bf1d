package docs

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the width of lines in Go files, too (internal/archtest).
const maxColumns = 120

var longURL = regexp.MustCompile(`https?://\S+`)

// TestColumns keeps lines of Markdown readable beside a second window. A row of a table cannot be wrapped, and neither
// can a URL; code blocks are exempt, because some show the output of programs.
func TestColumns(t *testing.T) {
	for _, page := range everyPage(t) {
		inCode := false
		for i, line := range strings.Split(text(t, page), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				inCode = !inCode
			}
			n := utf8.RuneCountInString(longURL.ReplaceAllString(line, ""))
			if n > maxColumns && !inCode && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d has %d columns, more than %d", page, i+1, n, maxColumns)
			}
		}
	}
}
