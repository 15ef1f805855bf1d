package need_test

import (
	"os"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/test/need"
)

func TestMissing(t *testing.T) {
	err := need.Missing(need.Programs{"sh": "dash", "no-such-program": "no-such-package", "nor-this-one": "other"})
	switch {
	case err == nil:
		t.Error("a program that does not exist is not missing")
	case os.Geteuid() != 0:
		if !strings.Contains(err.Error(), "root") {
			t.Errorf("without root: %v", err)
		}
	case !strings.Contains(err.Error(), "no-such-program (package no-such-package), nor-this-one (package other)") ||
		strings.Contains(err.Error(), "dash"):
		t.Error(err)
	}
	if _, err := need.Installed("sh"); err != nil {
		t.Error(err)
	}
}
