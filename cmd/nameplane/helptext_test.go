package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/test/man"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestHelp(t *testing.T) { man.CompareHelp(t, newRootCommand(), *update) }

// TestFilePerCommand checks that each command has a file with its name: zone import is in zone_import.go.
func TestFilePerCommand(t *testing.T) {
	for _, c := range man.Commands(newRootCommand())[1:] {
		file := strings.Join(strings.Fields(c.CommandPath())[1:], "_") + ".go"
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s has no file of its own: %v", c.CommandPath(), err)
		}
	}
}
