package real

import (
	"testing"

	"github.com/nameplane/nameplane/test/need"
)

// programs are the programs that Start runs, with their Debian packages.
var programs = need.Programs{
	"ip": "iproute2", "unshare": "util-linux", "nsd": "nsd", "named": "bind9", "rndc": "bind9-utils", "unbound": "unbound",
	"unbound-control": "unbound",
	"pdns_recursor":   "pdns-recursor", "rec_control": "pdns-recursor", "kresd": "knot-resolver",
	"dnssec-keygen": "bind9-utils", "dnssec-signzone": "bind9-utils", "dnssec-dsfromkey": "bind9-utils",
}

// Need fails the test if Start cannot work: network namespaces need root and some programs.
func Need(t testing.TB) {
	t.Helper()
	need.OrFail(t, programs)
}

// Missing returns what Start lacks on this machine.
func Missing() error { return need.Missing(programs) }
