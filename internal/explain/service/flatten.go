package service

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// aliasHosts are the domains of the nameservers of DNS hosts that have a record type ALIAS or ANAME for any target:
// they look up the target and serve its addresses. Hosts whose aliases lead only to their own products are left out.
var aliasHosts = []dnsname.Name{
	dnsname.MustParse("dnsimple.com"), dnsname.MustParse("dnsimple-edge.com"), dnsname.MustParse("dnsmadeeasy.com"),
	dnsname.MustParse("constellix.com"), dnsname.MustParse("nsone.net"), dnsname.MustParse("easydns.com"),
	dnsname.MustParse("gandi.net"), dnsname.MustParse("porkbun.com"), dnsname.MustParse("registrar-servers.com"),
	dnsname.MustParse("vercel-dns.com"),
}

// HasAlias reports whether all nameservers of a zone are of DNS hosts that have the record type ALIAS.
func HasAlias(nameservers []dnsname.Name) bool {
	return len(nameservers) > 0 && !slices.ContainsFunc(nameservers, func(n dnsname.Name) bool {
		return !slices.ContainsFunc(aliasHosts, n.IsIn)
	})
}
