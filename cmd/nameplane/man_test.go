package main

import (
	"testing"

	"github.com/nameplane/nameplane/test/man"
)

func TestManualPages(t *testing.T) {
	man.Compare(t, newRootCommand(), "../../docs/man", *update)
}

func TestCommandLinePage(t *testing.T) {
	man.ComparePage(t, newRootCommand(), "../../docs/reference/command-line.md", *update)
}
