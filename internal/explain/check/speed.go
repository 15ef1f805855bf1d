package check

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// slow is the reply time that users notice: a resolver waits for it at each level of the name.
const slow = 200 * time.Millisecond

// fast is check DEL17: The nameservers reply within 200 ms, and are not all in one network.
func fast(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		zone := text(z.Name)
		timed := slices.DeleteFunc(listed(f, z.Name), func(s explain.Server) bool { return s.RTT == 0 })
		// The slowest comes first. Stable, so that equal times are in the order of the zone.
		slices.SortStableFunc(timed, func(a, b explain.Server) int { return cmp.Compare(b.RTT, a.RTT) })
		for _, s := range timed {
			if s.RTT > slow {
				out = append(out, slowServer(f, z, s, timed[len(timed)-1]))
			}
		}
		out = append(out, oneNetwork(f, z)...)
		switch {
		case len(out) > 0:
			return out
		case len(timed) == 0:
			return unknown(zone, "The reply times of the servers of %s are not known.", zone)
		}
		return pass(zone, "The slowest server of %s, %s, replies in %s, as seen from here.", zone, server(timed[0]),
			words.Length(timed[0].RTT))
	})
}

// slowServer returns the finding for a slow server. It names the fastest server too, because resolvers soon prefer that
// one.
func slowServer(f *explain.Facts, z iterate.Zone, s, fastest explain.Server) explain.Finding {
	compared := fmt.Sprintf("the fastest, %s, takes %s", server(fastest), words.Length(fastest.RTT))
	if fastest.RTT > slow {
		compared = "no other server is fast, so every first visit waits this long"
	}
	x := fail("", actorFor(f, z.Name, explain.DNSHost), server(s),
		"%s, a server of %s, takes %s to reply, as seen from here; %s.", server(s), text(z.Name), words.Length(s.RTT),
		compared)
	return seen(x, s.Evidence)
}

// oneNetwork returns a finding for each list of nameservers that are all in one network: the smallest prefix that the
// internet routes separately, so that they become unreachable together. One vantage point cannot see whether that
// network is anycast.
func oneNetwork(f *explain.Facts, z iterate.Zone) (out []explain.Finding) {
	parent, _ := iterate.Join(z.ParentNS)
	child, _ := iterate.Join(z.ChildNS)
	for _, list := range nsLists(z, sorted(parent), sorted(child)) {
		addrs, complete := nsAddrs(z, list.ns)
		networks := networksOf(addrs)
		if !complete || len(networks) != 1 || len(addrs) < 2 {
			continue
		}
		x := fail("", actorFor(f, z.Name, explain.DNSHost), text(z.Name),
			"%s nameservers for %s whose addresses are all in one network, %s. Whether that network has several locations "+
				"(anycast) cannot be seen from here.", list.say, text(z.Name), networks[0])
		x.Fix = "Add a nameserver in another network: users who cannot reach this network cannot resolve any name of the " +
			"zone."
		out = append(out, x)
	}
	return out
}

// networksOf returns the networks of addresses. The internet routes no prefixes longer than /24 for IPv4 and /48 for
// IPv6.
func networksOf(addrs []netip.Addr) (out []netip.Prefix) {
	for _, a := range addrs {
		bits := 48
		if a.Unmap().Is4() {
			bits = 24
		}
		if p, err := a.Unmap().Prefix(bits); err == nil && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
