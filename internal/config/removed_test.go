package config

import (
	"strings"
	"testing"
)

// TestRemoved checks that a file with a setting of an older version is refused with the setting's name and what to do.
func TestRemoved(t *testing.T) {
	for key := range removed {
		text := ""
		for depth, part := range strings.Split(key, ".") {
			text += "\n" + strings.Repeat("  ", depth) + part + ":"
		}
		_, err := Parse("x.yaml", []byte(text+" 1\n"))
		if err == nil || !strings.Contains(err.Error(), key+": is no longer a setting: ") ||
			!strings.Contains(err.Error(), "remove the line") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
