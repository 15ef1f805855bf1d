package check

import (
	"net/netip"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// special describes why an address cannot be reached from the internet, or returns "" if it can. A lab is an internet
// of its own, and uses addresses that are special elsewhere. An IPv4-mapped address in an AAAA record cannot be reached
// either, and no server can depend on the relays of 6to4 and Teredo. In an internal name space, private addresses are
// right.
func special(f *explain.Facts, a netip.Addr) string {
	refused := specialaddr.Special | specialaddr.Mapped
	if f.Vantage.Name == "lab" || f.Vantage.Name == "sim" {
		refused &^= specialaddr.Loopback | specialaddr.Documentation | specialaddr.Benchmarking
	}
	if f.Vantage.Private {
		refused &^= specialaddr.Private | specialaddr.Shared | specialaddr.Loopback
	}
	table := specialaddr.Table{NAT64: f.Vantage.NAT64}
	if c := table.Classes(a) & refused; c != 0 {
		return c.String()
	}
	if tunnel := specialaddr.Tunnel(a); tunnel != "" {
		return "a " + tunnel + " address"
	}
	return ""
}
