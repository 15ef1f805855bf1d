package check

import (
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// twoServers is check DEL02: The zone has at least two nameservers at different addresses. Resolvers use the list of
// the parent zone first and that of the zone later, so each must be enough alone.
func twoServers(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone := text(z.Name)
		parent, _ := iterate.Join(z.ParentNS)
		child, _ := iterate.Join(z.ChildNS)
		most, known := 0, true
		for _, list := range nsLists(z, sorted(parent), sorted(child)) {
			addrs, complete := nsAddrs(z, list.ns)
			most = max(most, len(addrs))
			switch {
			case len(list.ns) == 0: // DEL03 and DEL19 report a missing list
			case len(list.ns) == 1:
				out = append(out, fail("", actorFor(f, z.Name, explain.DNSHost), zone, "%s only one nameserver for %s, %s.",
					list.say, zone, text(list.ns[0])))
			// Two names at one address are one machine, though a registry that counts names accepts it.
			case len(addrs) == 1 && complete:
				out = append(out, fail("", actorFor(f, z.Name, explain.DNSHost), zone,
					"%s for %s, but all of them have the same address, %s.", list.say+" "+words.Some(texts(list.ns)), zone, addrs[0]))
			case len(addrs) < 2:
				known = false
			}
		}
		for i := range out {
			out[i].Visible = nsVisible(f, z)
		}
		ns := sorted(slices.Concat(parent, child))
		switch {
		case len(out) > 0:
			return out
		case len(ns) == 0:
			return unknown(zone, "The nameservers of %s are not known.", zone)
		case !known:
			return unknown(zone, "The addresses of the nameservers of %s are not known.", zone)
		}
		return pass(zone, "%s has %d nameservers at %d addresses.", zone, len(ns), most)
	})
}

// nsList is a list of nameservers. say names the zones that have it: "org and example.org itself list".
type nsList struct {
	say string
	ns  []dnsname.Name
}

// nsLists returns the lists of the parent zone and of the zone: one if they are the same.
func nsLists(z iterate.Zone, parent, child []dnsname.Name) []nsList {
	if slices.Equal(parent, child) {
		return []nsList{{text(z.Parent) + " and " + text(z.Name) + " itself list", parent}}
	}
	return []nsList{{text(z.Parent) + " lists", parent}, {text(z.Name) + " itself lists", child}}
}

// nsAddrs returns the distinct addresses of nameservers of a zone, and whether no other address can be missing: each
// nameserver has one, or certainly has none. Without that, one slow lookup would be reported as missing redundancy.
func nsAddrs(z iterate.Zone, ns []dnsname.Name) (addrs []netip.Addr, complete bool) {
	complete = true
	for _, n := range ns {
		h, _ := find(z.Hosts, func(h iterate.Host) bool { return h.Name == n })
		addrs = append(addrs, h.Addrs()...)
		none := slices.Contains([]string{"no such name", "no address", "is an alias"}, h.Problem)
		complete = complete && (len(h.Addrs()) > 0 || none)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs), complete
}

// bothFamilies is check DEL20: The nameservers can be reached over IPv4 and IPv6. The lists of the parent zone and of
// the zone must each be enough alone.
func bothFamilies(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		parent, _ := iterate.Join(z.ParentNS)
		child, _ := iterate.Join(z.ChildNS)
		for _, list := range nsLists(z, sorted(parent), sorted(child)) {
			out = append(out, families(f, z, list)...)
		}
		return worst(out)
	})
}

// families returns the finding for one list of nameservers, or none if its addresses are not all known. The severities
// differ, because most resolvers have IPv4 and only a few have IPv6 alone.
func families(f *explain.Facts, z iterate.Zone, list nsList) []explain.Finding {
	zone, actor := text(z.Name), actorFor(f, z.Name, explain.DNSHost)
	addrs, complete := nsAddrs(z, list.ns)
	v4 := len(only(addrs, func(a netip.Addr) bool { return a.Unmap().Is4() }))
	var x explain.Finding
	switch {
	case len(addrs) == 0 || !complete:
		return nil // DEL11 reports nameservers without an address
	case v4 == 0:
		x = fail(explain.Error, actor, zone, "%s no nameserver with an IPv4 address for %s: resolvers without IPv6 cannot "+
			"resolve any name of the zone.", list.say, zone)
	case v4 == 1 && len(addrs) > 1:
		x = fail(explain.Warning, actor, zone, "%s nameservers for %s that have only one IPv4 address: resolvers without "+
			"IPv6 depend on that one machine.", list.say, zone)
	case v4 == len(addrs):
		x = fail(explain.Notice, actor, zone, "%s no nameserver with an IPv6 address for %s: resolvers without IPv4 cannot "+
			"resolve any name of the zone.", list.say, zone)
	default:
		return pass(zone, "The nameservers of %s have %d IPv4 and %d IPv6 addresses.", zone, v4, len(addrs)-v4)
	}
	x.Visible = nsVisible(f, z)
	return []explain.Finding{x}
}
