// Package must reads constants of tests, and panics at those that are wrong.
package must

import "github.com/nameplane/nameplane/kubernetes/internal/enforce"

// Pattern reads the name of a rule, also one that begins with "**.".
func Pattern(s string) enforce.Pattern {
	p, err := enforce.ParsePattern(s, enforce.PatternOptions{Deep: true})
	if err != nil {
		panic(err)
	}
	return p
}
