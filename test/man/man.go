// Package man compares the manual pages in docs/man with the commands of the programs, and writes them.
package man

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Compare checks that dir has the manual page of each command of a program, and no page of a command that is gone.
// With update it writes them instead.
func Compare(t *testing.T, root *cobra.Command, dir string, update bool) {
	t.Helper()
	want := map[string][]byte{}
	add(t, root, want)
	old, err := filepath.Glob(filepath.Join(dir, root.Name()+"*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		other := root.Name() == "nameplane" && strings.HasPrefix(filepath.Base(path), "nameplane-egress")
		if _, ok := want[filepath.Base(path)]; !ok && !other {
			t.Errorf("%s is the page of no command", path)
		}
	}
	for name, text := range want {
		path := filepath.Join(dir, name)
		if update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not the page of its command (%v): run make man", path, err)
		}
	}
}

// date is in the header of each page. It does not change with the commands, so that a page changes only with its text.
var date = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

// add renders the pages of a command and of those below it.
func add(t *testing.T, c *cobra.Command, to map[string][]byte) {
	t.Helper()
	c.DisableAutoGenTag = true
	c.InitDefaultHelpFlag()
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "nameplane",
		Manual: "nameplane manual", Date: &date}
	var text bytes.Buffer
	if err := doc.GenMan(c, header, &text); err != nil {
		t.Fatal(err)
	}
	to[name+".1"] = text.Bytes()
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			add(t, sub, to)
		}
	}
}
