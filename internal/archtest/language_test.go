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
	`(?i:\(facts\b|\bfacts [A-Z]?[0-9]|\bthe seeds?\b|(\bstill the )?\bcases? [A-Z]?[0-9]+)`,
}, "|"))

// allowed are matches of privateWords that mean something else.
var allowed = regexp.MustCompile(`(?i)^(look(s|ed|ing)? up|no more than|still the case [0-9]+)$`)

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
				if n.Kind == token.STRING && isSentence(n.Value) {
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
				if n.Tag != nil { // the name of a field in JSON or YAML
					checkNameText(t, s.path, s.fset.Position(n.Tag.Pos()).Line, n.Tag.Value)
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

// isSentence reports whether a string is text for people. Fewer than three words are a key, a header or a fragment of
// a protocol.
func isSentence(text string) bool { return strings.Count(text, " ") >= 2 }

// TestDataLanguage keeps private words out of the files that people read and that are neither Go nor Markdown: the
// descriptions and names of fields in the OpenAPI documents, and the list of public resolvers, whose texts are printed.
func TestDataLanguage(t *testing.T) {
	specs, err := filepath.Glob(filepath.Join(root, "internal/httpapi/openapi/spec/*.json"))
	if err != nil || len(specs) == 0 {
		t.Fatalf("found the OpenAPI documents %v (%v)", specs, err)
	}
	for _, path := range append(specs, filepath.Join(root, "internal/explain/resolvers/public.txt")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(root, path)
		for i, line := range strings.Split(string(text), "\n") {
			if filepath.Ext(path) != ".json" {
				checkWords(t, rel, i+1, line)
				continue
			}
			for _, literal := range jsonString.FindAllString(line, -1) {
				if isSentence(literal) {
					checkWords(t, rel, i+1, literal)
				} else {
					checkNameText(t, rel, i+1, literal)
				}
			}
		}
	}
}

// jsonString finds the strings of a line of JSON. JSON has no strings of more than one line.
var jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

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
	checkNameText(t, s.path, s.fset.Position(name.Pos()).Line, name.Name)
}

// checkNameText reports private words in an identifier, or in a text with identifiers.
func checkNameText(t *testing.T, path string, line int, text string) {
	t.Helper()
	for _, part := range camel.FindAllString(strings.ReplaceAll(text, "application/octet-stream", ""), -1) {
		if slices.Contains(privateNames, strings.ToLower(part)) {
			t.Errorf("%s:%d: private word in the name %s (docs/glossary.md)", path, line, text)
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
