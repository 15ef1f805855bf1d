package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/test/need"
)

// Programs of OVN and of the pods, and their Debian packages.
var programs = need.Programs{
	"ovsdb-server": "openvswitch-common", "ovs-vswitchd": "openvswitch-switch", "ovn-northd": "ovn-central",
	"ovn-controller": "ovn-host",
	"ip":             "iproute2", "nsenter": "util-linux", "ethtool": "ethtool", "ping": "iputils-ping",
}

// Need skips the test if StartOVN cannot work: network namespaces need root. The API server needs nothing that cannot
// be built everywhere, so a test without it fails.
func Need(t testing.TB) {
	t.Helper()
	need.OrSkip(t, programs)
}

// Missing returns the programs that OVN and its pods lack on this machine.
func Missing() error { return need.Missing(programs) }

// Tool returns the path of a program that test/setup.sh builds.
func Tool(name string) (string, error) { return cached(filepath.Join("bin", name)) }

// cached returns the path of a file that test/setup.sh puts into .cache, here or in a parent folder.
func cached(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ".cache", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not there: test/setup.sh makes it", name)
		}
	}
}
