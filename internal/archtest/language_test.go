package archtest

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const maxColumns = 120

// TestColumns keeps lines readable beside a second window.
func TestColumns(t *testing.T) {
	for _, s := range sources(t) {
		for i, line := range strings.Split(s.text, "\n") {
			if n := utf8.RuneCountInString(line); n > maxColumns && !ast.IsGenerated(s.file) {
				t.Errorf("%s:%d has %d columns, more than %d", s.path, i+1, n, maxColumns)
			}
		}
	}
}

// privateWords are words that once had a meaning of their own in this project, and grammar that makes people read a
// sentence twice. docs/glossary.md has the words to use instead.
var privateWords = regexp.MustCompile(strings.Join([]string{
	`(?i:\boctets?\b)`,
	`(?i:\b(tell|tells|telling|told)\b)`,
	`(?i:\b(look|looks|looked|looking)\b)( up\b)?`, // "look up" is the verb of "lookup": see allowed
	`(?i:\b(sights?|vigils?|lessons?|shelf|shelves|doors?|books?|crowds?|crowded)\b)`,
	`(?i:\b(air|fly|flies|flew|land|lands|landed|landing|strikes?)\b)`,
	`(?i:\b(ways?|places?|along|anew)\b)`,
	`\b[Pp]osts?\b`,
	`(?i:\bno more\b)( than\b)?`,
	`(?i:\bat last\b)`,
	`(?i:\b(the|a) world\b)`,
	`(?i:\bwho (asks?|has it|is told)\b)`,
	`(?i:\b(whoever|whom|whomever)\b)`,
	`(?i:\b(made of|comes? to be|but for|is well|as said|of the which)\b)`,
	`\bshall\b`,
	// What a reader of the repository cannot open.
	`(?i:\(facts\b|\bfacts [A-Z]?[0-9]|\bthe seeds?\b|\bcases? [A-Z]?[0-9]+)`,
}, "|"))

// allowed are matches of privateWords that mean something else.
var allowed = regexp.MustCompile(`(?i)^(look(s|ed|ing)? up|no more than)$`)

// privateNames are parts of identifiers that once had a meaning of their own in this project.
var privateNames = []string{"octet", "octets", "tell", "tells", "told", "vigil", "anew", "strike", "strikes", "shelf",
	"lesson", "lessons", "crowd", "crowded", "door", "doors", "sight", "sights", "way", "ways", "place", "places", "look",
	"looks", "book", "books", "land", "lands", "landed", "air", "world", "along", "whom"}

// TestLanguage keeps private words out of comments, of the sentences that programs print, and of the documentation.
func TestLanguage(t *testing.T) {
	for _, s := range sources(t) {
		if s.pkg == "internal/archtest" {
			continue
		}
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				checkWords(t, s.path, s.fset.Position(c.Pos()).Line, c.Text)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				// Fewer than three words are a key, a header or a fragment of a protocol.
				if n.Kind == token.STRING && !s.isTest() && strings.Count(n.Value, " ") >= 2 {
					checkWords(t, s.path, s.fset.Position(n.Pos()).Line, n.Value)
				}
			case *ast.Ident:
				if n.Obj != nil && n.Obj.Pos() == n.Pos() {
					checkName(t, s, n)
				}
			case *ast.FuncDecl:
				checkName(t, s, n.Name)
			case *ast.Field:
				for _, name := range n.Names {
					checkName(t, s, name)
				}
			}
			return true
		})
	}
	for _, path := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		code := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			} else if !code {
				checkWords(t, path, i+1, line)
			}
		}
	}
}

// checkWords reports private words in a text that begins at a line of a file.
func checkWords(t *testing.T, path string, line int, text string) {
	t.Helper()
	for i, part := range strings.Split(text, "\n") {
		for _, word := range privateWords.FindAllString(part, -1) {
			if !allowed.MatchString(word) {
				t.Errorf("%s:%d: private word %q (docs/glossary.md)", path, line+i, word)
			}
		}
	}
}

// camel finds the words of an identifier.
var camel = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

func checkName(t *testing.T, s source, name *ast.Ident) {
	t.Helper()
	for _, part := range camel.FindAllString(name.Name, -1) {
		if slices.Contains(privateNames, strings.ToLower(part)) {
			line := s.fset.Position(name.Pos()).Line
			t.Errorf("%s:%d: private word in the name %s (docs/glossary.md)", s.path, line, name.Name)
		}
	}
}

// pages returns the Markdown files of the tree.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && rel != "." && (d.Name()[0] == '.' || d.Name() == "bin" || d.Name() == "data" || d.Name() == "dist"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("found only %d pages: is %s the top of the tree?", len(out), root)
	}
	return out
}
