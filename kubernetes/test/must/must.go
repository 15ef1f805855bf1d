// Package must parses constants in tests, and panics if they are invalid. Start with Pattern.
package must

import "github.com/nameplane/nameplane/kubernetes/internal/enforce"

// Pattern parses the name in a rule, including one that begins with "**.".
func Pattern(s string) enforce.Pattern {
	p, err := enforce.ParsePattern(s, enforce.PatternOptions{Deep: true})
	if err != nil {
		panic(err)
	}
	return p
}
