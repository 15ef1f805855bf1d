// Package need checks whether a machine has what a test requires and cannot provide itself: root, and other programs.
// Start with OrSkip and OrFail.
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

// Programs maps names of programs to the Debian packages that contain them.
type Programs map[string]string

// Missing returns an error that names what is missing. Tests with programs run them in network namespaces, which need
// root.
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

// Installed returns the path of a program. Servers are in /usr/sbin, which is not in every user's PATH.
func Installed(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath(filepath.Join("/usr/sbin", name))
}

// OrFail fails the test when something is missing.
func OrFail(t testing.TB, programs Programs) {
	t.Helper()
	if err := Missing(programs); err != nil {
		t.Fatal(err)
	}
}

// OrSkip skips the test when something is missing. It is the only function of this tree that skips tests. It is for
// programs that not every machine can have. Where test/setup.sh could install them, it fails before the tests run.
func OrSkip(t testing.TB, programs Programs) {
	t.Helper()
	if err := Missing(programs); err != nil {
		t.Skip(err)
	}
}
