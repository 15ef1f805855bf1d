package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs of OVN and of the pods, and the Debian packages they are in.
var programs = map[string]string{
	"ovsdb-server": "openvswitch-common", "ovs-vswitchd": "openvswitch-switch", "ovn-northd": "ovn-central", "ovn-controller": "ovn-host",
	"ip": "iproute2", "nsenter": "util-linux", "ethtool": "ethtool", "ping": "iputils-ping",
}

// Need skips the test where StartOVN cannot work: without root there are no network namespaces. It is the only reason for
// which a test of this tree is skipped, and test/setup.sh fails before it comes to that where it can install things. The API
// server needs nothing that cannot be built everywhere, so without it a test fails.
func Need(t testing.TB) {
	t.Helper()
	if err := Missing(); err != nil {
		t.Skip(err)
	}
}

// Missing says what OVN and its pods lack on this machine.
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

// tool finds a program that test/setup.sh builds.
func tool(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ".cache", "bin", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not built: test/setup.sh builds it", name)
		}
	}
}
