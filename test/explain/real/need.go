package real

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

// programs of the world, and the Debian packages they are in.
var programs = map[string]string{
	"ip": "iproute2", "unshare": "util-linux", "nsd": "nsd", "named": "bind9", "rndc": "bind9-utils", "unbound": "unbound", "unbound-control": "unbound",
	"pdns_recursor": "pdns-recursor", "rec_control": "pdns-recursor", "kresd": "knot-resolver",
}

// Need ends the test where Start cannot work: without root there are no network namespaces.
func Need(t testing.TB) {
	t.Helper()
	if err := Missing(); err != nil {
		t.Fatal(err)
	}
}

// Missing says what the world lacks on this machine.
func Missing() error {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root: run this test as root")
	}
	var lack []string
	for program, pkg := range programs {
		if _, err := installed(program); err != nil {
			lack = append(lack, fmt.Sprintf("%s (package %s)", program, pkg))
		}
	}
	if lack != nil {
		slices.Sort(lack)
		return fmt.Errorf("not installed: %s; test/setup.sh installs it", strings.Join(lack, ", "))
	}
	return nil
}

// installed finds a program. Servers live in sbin, which is not in everybody's PATH.
func installed(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath(filepath.Join("/usr/sbin", name))
}
