package cluster

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/test/need"
)

// Elsewhere is the environment variable with the folder of another OVN than the machine's, for a whole run of tests or
// benchmarks. Its programs are in bin and its schemas in share.
const Elsewhere = "NAMEPLANE_OVN"

// installed is the folder of the machine's OVN.
const installed = "/usr"

// Later returns the folder of the OVN that test/ovn.sh provides. It skips the test if that is not available.
func Later(t testing.TB) string {
	t.Helper()
	dir, err := cached("ovn")
	if err != nil {
		dir = filepath.Join(".cache", "ovn") // for the message
	}
	need.OrSkip(t, need.Programs{filepath.Join(dir, "bin", "ovn-northd"): "ovn-central of a later Debian, by test/ovn.sh"})
	return dir
}

// Version returns the version of the default OVN.
func Version() (string, error) { return (&OVN{from: folder("")}).Version() }

// folder is the folder of an OVN.
func folder(from string) string { return cmp.Or(from, os.Getenv(Elsewhere), installed) }

// program returns the path of a program of OVN.
func (o *OVN) program(name string) (string, error) {
	if o.from == installed {
		return need.Installed(name)
	}
	path := filepath.Join(o.from, "bin", name)
	_, err := os.Stat(path)
	return path, err
}

// schema returns the path of a database schema.
func (o *OVN) schema(name string) string { return filepath.Join(o.from, "share", name+".ovsschema") }
