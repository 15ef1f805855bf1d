package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestHelp compares the help of every command with testdata/help. It checks that each command has a description and an
// example, and that the lines fit a terminal.
func TestHelp(t *testing.T) {
	root := newRootCommand()
	seen := map[string]bool{}
	for _, c := range commandsOf(root) {
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
			golden(t, filepath.Join("testdata/help", file), out.String())
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

// TestFilePerCommand checks that each command has a file with its name: zone import is in zone_import.go.
func TestFilePerCommand(t *testing.T) {
	for _, c := range commandsOf(newRootCommand())[1:] {
		file := strings.Join(strings.Fields(c.CommandPath())[1:], "_") + ".go"
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s has no file of its own: %v", c.CommandPath(), err)
		}
	}
}

// commandsOf returns a command and its subcommands without serve, whose help has no golden file.
func commandsOf(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.Name() != "serve" {
			all = append(all, commandsOf(sub)...)
		}
	}
	return all
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
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
