package transfer

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/zone"
)

// Remote is the address of another name server.
type Remote struct {
	netip.AddrPort
	TLS  bool   // it is queried over TLS (RFC 9103)
	Name string // name in its certificate; empty: the certificate must have its address
}

// String returns the text that ParseMaster parses.
func (r Remote) String() string {
	switch {
	case !r.TLS:
		return r.AddrPort.String()
	case r.Name == "":
		return "tls://" + r.AddrPort.String()
	}
	return "tls://" + r.AddrPort.String() + "#" + r.Name
}

// UsualPort reports whether the server has the port of its protocol.
func (r Remote) UsualPort() bool { return r.Port() == 53 && !r.TLS || r.Port() == 853 && r.TLS }

// ParseMaster parses a master of a SECONDARY zone: an address, with a port if it is not 53; for TLS, as
// tls://192.0.2.1:853#ns1.example.org, where the port and the name can be left out. Names instead of addresses are
// refused: a server that controls the name could give us any zone.
func ParseMaster(s string) (Remote, error) {
	if strings.HasPrefix(s, "tls://") {
		r, err := resolve.ParseServer(s)
		if err == nil && r.Addr.Port() == 0 {
			err = fmt.Errorf("server %q: port 0 is not a port", s)
		}
		return Remote{netip.AddrPortFrom(r.Addr.Addr().Unmap(), r.Addr.Port()), true, r.Name}, err
	}
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return Remote{AddrPort: netip.AddrPortFrom(a.Unmap(), 53)}, nil
	}
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Port() == 0 {
		return Remote{},
			fmt.Errorf("%q is not an address, or an address with a port, such as 192.0.2.1 or 192.0.2.1:5353", s)
	}
	return Remote{AddrPort: netip.AddrPortFrom(a.Addr().Unmap(), a.Port())}, nil
}

// CheckMaster returns an error if a master has an address that its namer must not choose.
//
//   - A tenant must not name special addresses: a server in the inner network may give this server a zone that it would
//     not give to a tenant. Documentation addresses are allowed: no server has them, and examples use them.
//   - An administrator may name every address.
//   - Rows of older versions do not say who named the masters. The masters of an administrator must go on working, so
//     only the metadata services of clouds are refused: no zone comes from them.
func CheckMaster(m netip.Addr, by zone.Namer, special specialaddr.Table) error {
	refused := specialaddr.Metadata
	switch by {
	case zone.Tenant:
		refused = specialaddr.Special &^ specialaddr.Documentation
	case zone.Administrator:
		refused = 0
	}
	if c := special.Classes(m) & refused; c != 0 {
		return refuse("is %s; only an administrator may name it", c)
	}
	return nil
}
