package cluster

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/test/need"
)

// Elsewhere is the variable of the environment with the folder of another OVN than the machine's, for a whole run of tests or
// measures: its programs are in bin and its schemas in share.
const Elsewhere = "NAMEPLANE_OVN"

// installed is the folder of the machine's.
const installed = "/usr"

// Later is the folder of the OVN that test/ovn.sh brings. The test is skipped where that could not be had.
func Later(t testing.TB) string {
	t.Helper()
	dir, err := cached("ovn")
	if err != nil {
		dir = filepath.Join(".cache", "ovn") // for the message
	}
	need.OrSkip(t, need.Programs{filepath.Join(dir, "bin", "ovn-northd"): "ovn-central of a later Debian, by test/ovn.sh"})
	return dir
}

// Version is that of the OVN that is used where nothing else is said.
func Version() (string, error) { return (&OVN{from: folder("")}).Version() }

// folder is where an OVN is.
func folder(from string) string { return cmp.Or(from, os.Getenv(Elsewhere), installed) }

// program finds a program of OVN.
func (o *OVN) program(name string) (string, error) {
	if o.from == installed {
		return need.Installed(name)
	}
	path := filepath.Join(o.from, "bin", name)
	_, err := os.Stat(path)
	return path, err
}

// schema is the file of a database's schema.
func (o *OVN) schema(name string) string { return filepath.Join(o.from, "share", name+".ovsschema") }
