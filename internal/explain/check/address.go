package check

import (
	"net/netip"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// special describes an address that cannot be reached from the internet; empty if it can. A lab is an internet of its
// own, and made of addresses that are special elsewhere. An AAAA record that holds an IPv4 address leads nowhere.
func special(f *explain.Facts, a netip.Addr) string {
	refused := specialaddr.Special | specialaddr.Mapped
	if f.Vantage.Name == "lab" || f.Vantage.Name == "sim" {
		refused &^= specialaddr.Loopback | specialaddr.Documentation | specialaddr.Benchmarking
	}
	if c := (specialaddr.Table{}).Classes(a) & refused; c != 0 {
		return c.String()
	}
	return ""
}
