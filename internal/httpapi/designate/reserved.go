package designate

import (
	"regexp"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// arpa is the domain of reverse zones and of other infrastructure of the internet (RFC 3172).
var arpa = dnsname.MustParse("arpa.")

// specialUse are the names of IANA's registry "Special-Use Domain Names" (RFC 6761), as updated on 2026-05-22:
// https://www.iana.org/assignments/special-use-domain-names/. They were compared with copies of the registry in public
// repositories. Hosts resolve such names by other protocols or not at all, so the owner of the zone would get queries
// meant for another service. The names in arpa are missing, because arpa is reserved as a whole: 6tisch, eap, eap-noob,
// home, ipv4only, resolver, service, and reverse zones.
//
// The names test, example, example.com, example.net and example.org are missing on purpose. Nobody depends on them,
// and the documentation and tests of this program and of its clients use them. ICANN reserved internal for private
// networks, and it is not in the registry: a private server may serve it.
var specialUse = []dnsname.Name{
	dnsname.MustParse("alt."),       // RFC 9476
	dnsname.MustParse("invalid."),   // RFC 6761 §6.4
	dnsname.MustParse("local."),     // RFC 6762
	dnsname.MustParse("localhost."), // RFC 6761 §6.3
	dnsname.MustParse("onion."),     // RFC 7686
}

// isSpecialUse reports whether a name is a special-use name or below one.
func isSpecialUse(n dnsname.Name) bool {
	return slices.ContainsFunc(specialUse, n.IsIn)
}

// tldsAbove reports how the listed TLDs apply to a name: whether it is one of them, whether it is below one, and
// whether names below none of them are refused. A TLD in arpa opens that part of arpa to tenants, but does not close
// other TLDs: otherwise the administrator would have to list all of these too.
func tldsAbove(v store.View, n dnsname.Name) (same, below, closed bool, err error) {
	err = store.EachOf(v, store.KindTLD, "", func(_ string, t tld) (bool, error) {
		name, err := dnsname.Parse(t.Name + ".") // compare names, not text: a label from a zone file may contain a dot
		same = same || n == name
		below = below || n != name && n.IsIn(name)
		closed = closed || !name.IsIn(arpa)
		return true, err
	})
	return same, below, closed, err
}

// checkTLDs refuses a zone outside the configured top-level domains, if there are any. Administrators are refused too,
// as in Designate: they can add the TLD.
func checkTLDs(v store.View, z zone.Zone) error {
	same, below, closed, err := tldsAbove(v, z.Name)
	switch {
	case err != nil:
		return err
	case same:
		return refuse("invalid_zone_name", "Zone name cannot be the same as a TLD")
	case closed && !below:
		return refuse("invalid_zone_name", "Invalid TLD: %s is not below a configured TLD", z.Name)
	}
	return nil
}

// checkBlacklists refuses names that a pattern matches, except to administrators. Case is ignored, as in names.
func (c *call) checkBlacklists(v store.View, z zone.Zone) error {
	if c.scope.caller.IsAdmin() {
		return nil
	}
	lists, err := store.ObjectsOf[blacklist](v, store.KindBlacklist)
	if err != nil {
		return err
	}
	for _, b := range lists {
		if re, err := regexp.Compile("(?i)" + b.Pattern); err == nil && re.MatchString(z.Name.String()) {
			return refuse("invalid_zone_name", "Blacklisted zone name")
		}
	}
	return nil
}

// checkReserved refuses zones of tenants that would take names from others who have no zone on this server. These are
// the platform's edge applications, the public below a suffix of a registry, the owner of an address, the services
// behind special-use names and, on a server that forwards, its clients. Administrators may create such zones, also for
// a project.
//
// A zone below an existing zone takes no names: the server answers for them already. Names of the platform are the
// exception, because an overlay can be more specific than the existing zone.
func (c *call) checkReserved(v store.View, z zone.Zone) error {
	if c.scope.caller.IsAdmin() {
		return nil
	}
	used, err := mec.UsesNames(v, z.Name)
	if err != nil {
		return err
	}
	if used {
		return reserved(z, "is, contains or is below a name that the edge platform uses")
	}
	if _, found := parentZone(v, z.Name); found {
		return nil
	}
	_, below, _, err := tldsAbove(v, z.Name)
	switch {
	case err != nil:
		return err
	case registry.IsSuffix(z.Name):
		return reserved(z, "is a public suffix, below which a registry registers names for everybody")
	case below:
		return nil
	case z.Name.IsIn(arpa):
		return reserved(z, "is in arpa, and no TLD of this server allows it")
	case isSpecialUse(z.Name):
		return reserved(z, "is a special-use name (RFC 6761), and no TLD of this server allows it")
	case c.settings.Forwards:
		return reserved(z, "is a name that this server resolves for its clients, and no TLD of this server allows it")
	}
	return nil
}

// reserved returns the error for a name that only administrators may create a zone for.
func reserved(z zone.Zone, why string) error {
	return refuse("invalid_zone_name", "%s %s. An administrator can create the zone for this project", z.Name, why)
}
