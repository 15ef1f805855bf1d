package main

import (
	"testing"

	"github.com/nameplane/nameplane/test/man"
)

func TestManualPages(t *testing.T) {
	man.Compare(t, newRootCommand(), "../../../docs/man", *update)
}
