// Package reference writes the generated parts of docs/reference, and compares them with the code.
//
// Start with Compare. A test that generates a part is beside the code that it describes, and calls Compare with its
// flag -update; `make generate` runs all of them.
package reference

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// CompareFile checks that a file has a text. With update it writes the file.
func CompareFile(t *testing.T, path, got string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// Compare checks that a part of a page is text. With update it writes the part. The part stands between the lines
// "<!-- begin generated: PART -->" and "<!-- end generated: PART -->", which the page must already have.
func Compare(t *testing.T, page, part, text string, update bool) {
	t.Helper()
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- begin generated: "+part+" -->\n", "<!-- end generated: "+part+" -->\n"
	before, rest, ok := strings.Cut(string(old), begin)
	got, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s does not have the lines %q and %q", page, begin, end)
	}
	text = "\n" + strings.Trim(text, "\n") + "\n\n"
	if update {
		if err := os.WriteFile(page, []byte(before+begin+text+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(text, got); diff != "" {
		t.Errorf("%s, part %s: run make generate (-code +page):\n%s", page, part, diff)
	}
}

// escape replaces the characters that Markdown would not show in the cell of a table.
var escape = strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "\n", " ")

// Text returns a text as the cell of a table.
func Text(s string) string { return escape.Replace(strings.Join(strings.Fields(s), " ")) }

// Code returns a text as code in the cell of a table; empty when the text is.
func Code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}

// Table returns a table in Markdown.
func Table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// maxColumns is the longest line that Prose writes. TestColumns of test/docs checks it for all pages.
const maxColumns = 120

// Prose returns a text as lines of Markdown: each sentence begins a line, and long ones are wrapped. first and rest are
// the beginnings of the first line and of the others, such as those of an item in a list.
func Prose(first, rest, text string) string {
	var b strings.Builder
	line := first
	flush := func() {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		line = rest
	}
	words := strings.Fields(text)
	for i, word := range words {
		if len([]rune(line+word)) > maxColumns {
			flush()
		}
		line += word + " "
		if i == len(words)-1 || endsSentence(word, words[i+1]) {
			flush()
		}
	}
	return b.String()
}

// endsSentence reports whether the next word begins a sentence. A sentence may end within quotes or parentheses.
func endsSentence(word, next string) bool {
	end := strings.TrimRight(word, "\"')")
	return strings.HasSuffix(end, ".") && len(end) > 2 && unicode.IsUpper([]rune(next)[0])
}
