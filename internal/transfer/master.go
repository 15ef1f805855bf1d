package transfer

import (
	"fmt"
	"net/netip"
	"strings"
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
