package access

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/mec"
)

// TestAppIDs compares validApp with the rule of package mec for IDs of application instances, so that each instance can
// have a token.
func TestAppIDs(t *testing.T) {
	ids := []string{"", "a", "5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f", ".", "..", "...", "é", "a b", "a/b", `a\b`,
		"a\u00a0b", "a\u2028b", "\xff",
		strings.Repeat("a", 128), strings.Repeat("a", 129)}
	for c := range rune(0x180) {
		ids = append(ids, "x"+string(c))
	}
	for _, id := range ids {
		if got, want := validApp(id), mec.CheckApp(id) == nil; got != want {
			t.Errorf("validApp(%q) = %v, package mec says %v", id, got, want)
		}
	}
}
