// Package need finds out whether a machine has what a test cannot do without, and cannot bring along: root, and programs of other
// people.
package need

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Programs are names of programs, and the Debian packages they are in.
type Programs map[string]string

// Missing says what there is not. Tests that need programs put them into network namespaces, for which they need root.
func Missing(programs Programs) error {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root: run this test as root")
	}
	var lack []string
	for program, pkg := range programs {
		if _, err := Installed(program); err != nil {
			lack = append(lack, fmt.Sprintf("%s (package %s)", program, pkg))
		}
	}
	if lack != nil {
		slices.Sort(lack)
		return fmt.Errorf("not installed: %s; test/setup.sh installs it", strings.Join(lack, ", "))
	}
	return nil
}

// Installed finds a program. Servers live in sbin, which is not in everybody's PATH.
func Installed(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath(filepath.Join("/usr/sbin", name))
}

// OrFail fails the test where something is missing.
func OrFail(t testing.TB, programs Programs) {
	t.Helper()
	if err := Missing(programs); err != nil {
		t.Fatal(err)
	}
}

// OrSkip skips the test where something is missing. It is the only place in which a test of this tree is skipped: for programs that
// not every machine can have, where test/setup.sh fails before it comes to that if it could have installed them.
func OrSkip(t testing.TB, programs Programs) {
	t.Helper()
	if err := Missing(programs); err != nil {
		t.Skip(err)
	}
}
