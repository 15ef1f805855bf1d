package alias

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// Policy is what an operator decides about targets: which addresses of outside ones are refused, how long the last
// good ones stay, and which zones are ours. Whoever owns a target could otherwise make names of ours lead into
// networks that trust them. Addresses in our own zones are their owners' to choose.
type Policy struct {
	Special      specialaddr.Table // classifies addresses
	AllowPrivate bool              // private, loopback, link-local and other special addresses, except cloud metadata
	AllowOwn     bool              // the addresses of this server
	Own          []netip.Addr      // which they are

	StaleLimit time.Duration // addresses are withdrawn when nothing newer came for that long; 0: they stay
	AllZones   bool          // the zones of all projects are ours, and not only those of the ALIAS's own
}

// Addresses of targets that are refused. Documentation addresses are not: they lead nowhere, and examples have them.
const (
	refusedByDefault = specialaddr.Special &^ specialaddr.Documentation
	refusedAlways    = specialaddr.Metadata // they give credentials to whoever asks, and no name needs them
)

// refuses is why an address is refused; empty: it is not. An IPv6 address that leads to one of IPv4 is refused as
// that one.
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

// refusesOne is refuses for any of several.
func (p Policy) refusesOne(addrs []netip.Addr) (follow.Cause, string) {
	for _, a := range addrs {
		if cause, detail := p.refuses(a); cause != "" {
			return cause, detail
		}
	}
	return "", ""
}

// refusesAny reports whether addresses of a record that came from elsewhere would be refused now.
func (p Policy) refusesAny(r Record) bool {
	return r.Outside != "" && slices.ContainsFunc(r.Families[:], func(f Family) bool {
		cause, _ := p.refusesOne(f.Addrs)
		return cause != ""
	})
}
