package man

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/test/reference"
)

// CompareHelp compares the help of every command of a program with the files in testdata/help. It checks that each
// command has a description and an example, and that the lines fit a terminal. With update it writes the files.
func CompareHelp(t *testing.T, root *cobra.Command, update bool) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range Commands(root) {
		file := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".txt"
		seen[file] = true
		t.Run(c.CommandPath(), func(t *testing.T) {
			if c.Short == "" || c.Long == "" || c.Example == "" {
				t.Error("the command lacks a short or long description, or an example")
			}
			for line := range strings.Lines(c.Long) {
				if len(line) > 90 {
					t.Errorf("a line of %d bytes does not fit a terminal: %s", len(line), line)
				}
			}
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetArgs(append(strings.Fields(c.CommandPath())[1:], "--help"))
			if err := root.Execute(); err != nil {
				t.Fatal(err)
			}
			reference.CompareFile(t, filepath.Join("testdata/help", file), out.String(), update)
		})
	}
	files, err := os.ReadDir("testdata/help")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[f.Name()] {
			t.Errorf("testdata/help/%s belongs to no command", f.Name())
		}
	}
}

// Commands returns a command and all below it.
func Commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, Commands(sub)...)
	}
	return all
}
