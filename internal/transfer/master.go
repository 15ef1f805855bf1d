package transfer

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/zone"
)

// ParseMaster parses a master of a SECONDARY zone: an address, with a port if it is not 53. Names are refused: a server
// that controls the name could give us any zone.
func ParseMaster(s string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return netip.AddrPortFrom(a.Unmap(), 53), nil
	}
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Port() == 0 {
		return netip.AddrPort{},
			fmt.Errorf("%q is not an address, or an address with a port, such as 192.0.2.1 or 192.0.2.1:5353", s)
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
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
