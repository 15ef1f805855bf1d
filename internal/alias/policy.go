package alias

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// Policy is the operator's policy about targets: which outside addresses are refused, how long the last good addresses
// are kept, and which zones count as ours. Without it, the owner of a target could make our names point into networks
// that trust them. Addresses in our own zones are not checked: their owners choose them.
type Policy struct {
	Special specialaddr.Table // classifies addresses
	// accept private, loopback, link-local and other special addresses, except cloud metadata
	AllowPrivate bool
	AllowOwn     bool         // accept the addresses of this server
	Own          []netip.Addr // the addresses of this server

	StaleLimit time.Duration // withdraw addresses when lookups failed for this long; 0: never
	AllZones   bool          // trust the zones of all projects, not only those of the project of the ALIAS
}

// Classes of refused addresses. Documentation addresses are accepted: they are not routed, and examples use them.
const (
	refusedByDefault = specialaddr.Special &^ specialaddr.Documentation
	refusedAlways    = specialaddr.Metadata // metadata services give credentials to any client, and no name needs them
)

// refuses returns why an address is refused, or an empty cause. An IPv6 address that leads to an IPv4 address is
// refused if that one is.
func (p Policy) refuses(a netip.Addr) (follow.Cause, string) {
	own := func(a netip.Addr) bool { return slices.Contains(p.Own, a) }
	if !p.AllowOwn && (own(a.Unmap()) || slices.ContainsFunc(p.Special.Ends(a), own)) {
		return causeOwn, fmt.Sprintf("%s is an address of this server", a)
	}
	refused := refusedByDefault
	if p.AllowPrivate {
		refused = refusedAlways
	}
	if c := p.Special.Classes(a) & refused; c != 0 {
		return causePrivate, fmt.Sprintf("%s is %s", a, c)
	}
	return "", ""
}

// refusesAddrs returns why one of several addresses is refused, or an empty cause.
func (p Policy) refusesAddrs(addrs []netip.Addr) (follow.Cause, string) {
	for _, a := range addrs {
		if cause, detail := p.refuses(a); cause != "" {
			return cause, detail
		}
	}
	return "", ""
}

// refusesRecord reports whether the policy refuses an outside address that the record already has.
func (p Policy) refusesRecord(r Record) bool {
	return r.Outside != "" && slices.ContainsFunc(r.Families[:], func(f Family) bool {
		cause, _ := p.refusesAddrs(f.Addrs)
		return cause != ""
	})
}
