package reference

import (
	"strings"
	"testing"
)

func TestProse(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for _, tt := range []struct{ text, want string }{
		{"One. Two, e.g. three.", "* One.\n  Two, e.g. three.\n"},
		{`It says "no." Then it ends.`, "* It says \"no.\"\n  Then it ends.\n"},
		{long, "* " + strings.TrimSpace(strings.Repeat("word ", 23)) + "\n  " +
			strings.TrimSpace(strings.Repeat("word ", 7)) + "\n"},
	} {
		if got := Prose("* ", "  ", tt.text); got != tt.want {
			t.Errorf("%q becomes\n%s\nwant\n%s", tt.text, got, tt.want)
		}
	}
}
