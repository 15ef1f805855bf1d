package docs

import (
	"regexp"
	"strings"
	"testing"
)

var sentenceEnd = regexp.MustCompile(`[a-z0-9)]\.(\s|$)`)

// TestBenchPages keeps the pages with measurements short: tables, commands, and at most five sentences. The reasons
// and what was tried belong in docs/designs.
func TestBenchPages(t *testing.T) {
	for _, page := range []string{"docs/bench.md", "docs/bench-egress.md", "docs/bench-explain.md"} {
		var prose strings.Builder
		code := false
		for line := range strings.Lines(text(t, page)) {
			switch {
			case strings.HasPrefix(line, "```"):
				code = !code
			case !code && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#"):
				prose.WriteString(line)
			}
		}
		if n := len(sentenceEnd.FindAllString(prose.String(), -1)); n == 0 || n > 5 {
			t.Errorf("%s has %d sentences beside its tables, want 1 to 5:\n%s", page, n, prose.String())
		}
	}
}
