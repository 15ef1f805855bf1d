package real

import (
	"testing"

	"github.com/nameplane/nameplane/test/need"
)

// programs of the world, and the Debian packages they are in.
var programs = need.Programs{
	"ip": "iproute2", "unshare": "util-linux", "nsd": "nsd", "named": "bind9", "rndc": "bind9-utils", "unbound": "unbound", "unbound-control": "unbound",
	"pdns_recursor": "pdns-recursor", "rec_control": "pdns-recursor", "kresd": "knot-resolver",
	"dnssec-keygen": "bind9-utils", "dnssec-signzone": "bind9-utils", "dnssec-dsfromkey": "bind9-utils",
}

// Need ends the test where Start cannot work: without root there are no network namespaces.
func Need(t testing.TB) {
	t.Helper()
	need.OrFail(t, programs)
}

// Missing says what the world lacks on this machine.
func Missing() error { return need.Missing(programs) }
