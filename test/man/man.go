// Package man compares the manual pages in docs/man with the commands of the programs, or writes the pages.
//
// Start with Compare in man.go: the tests of all programs call it with their root command.
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

// Compare checks that dir has an up-to-date manual page for each command of a program, and no page without a command.
// With update it writes the pages instead of comparing them.
func Compare(t *testing.T, root *cobra.Command, dir string, update bool) {
	t.Helper()
	want := map[string][]byte{}
	section := sectionOf(root)
	add(t, root, section, want)
	old, err := filepath.Glob(filepath.Join(dir, root.Name()+"*."+section))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		// The pages of nameplane-egress match nameplane*, too.
		other := root.Name() == "nameplane" && strings.HasPrefix(filepath.Base(path), "nameplane-egress")
		if _, ok := want[filepath.Base(path)]; !ok && !other {
			t.Errorf("%s: there is no such command", path)
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
			t.Errorf("%s is not up to date (%v): run make generate", path, err)
		}
	}
}

// sectionOf returns the section of the pages of a program. Those of the daemon nameplane-service are in section 8:
// nameplane-service(1) is the page of the command nameplane service.
func sectionOf(root *cobra.Command) string {
	if root.Name() == "nameplane-service" {
		return "8"
	}
	return "1"
}

// date is the date in the header of each page. It is constant, so that a page changes only if its text changes.
var date = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

// add renders the pages of a command and its subcommands into pages, by file name.
func add(t *testing.T, c *cobra.Command, section string, pages map[string][]byte) {
	t.Helper()
	c.DisableAutoGenTag = true
	c.InitDefaultHelpFlag()
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: section, Source: "nameplane",
		Manual: "nameplane manual", Date: &date}
	var text bytes.Buffer
	if err := doc.GenMan(c, header, &text); err != nil {
		t.Fatal(err)
	}
	pages[name+"."+section] = text.Bytes()
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			add(t, sub, section, pages)
		}
	}
}
