package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// otherService returns the service that the hostname leads to instead, in words, or "": another Gateway of the objects,
// or another host beside the target, which is how providers name the addresses of their customers.
func otherService(f *explain.Facts, p pointing) string {
	if !p.known || p.byName || len(p.right) > 0 {
		return ""
	}
	if w := otherGateway(f, p); w != "" {
		return w
	}
	// A typing mistake explains the difference better than another customer of the provider: SVC21 reports it.
	if _, _, slip := diagnosis(f); slip || len(f.Chain) == 0 || len(p.others) == 0 {
		return ""
	}
	for _, want := range f.Service.Targets.Hosts {
		to, parent := f.Chain[0].To, want.Parent()
		// Two names below a TLD have nothing in common. Names in the domain of the user belong to the user.
		if parent.NumLabels() > 1 && to != want && to != parent && to.IsIn(parent) && !to.IsIn(f.Domain) {
			return fmt.Sprintf("%s, another host of %s", text(to), text(parent))
		}
	}
	return ""
}

// otherGateway returns the Gateway of another hostname that the hostname leads to, in words.
func otherGateway(f *explain.Facts, p pointing) string {
	if f.Service.Objects == nil {
		return ""
	}
	at := attachments(f)
	for i := range f.Service.Objects.Gateways {
		g := &f.Service.Objects.Gateways[i]
		if slices.ContainsFunc(at, func(a service.Attachment) bool { return a.Gateway == g }) {
			continue
		}
		t := g.Targets()
		led := slices.ContainsFunc(f.Chain, func(h explain.Hop) bool { return slices.Contains(t.Hosts, h.To) })
		// Gateways may share a load balancer, so one common address is too little: all must be those of this Gateway.
		same := len(p.others) > 0 && len(without(p.others, t.Addrs)) == 0
		if led || same {
			return g.String()
		}
	}
	return ""
}

// ownService is check SVC27. A pass means that no other service is known: the objects of other clusters are not in the
// input.
func ownService(f *explain.Facts) []explain.Finding {
	if f.Service == nil {
		return nil
	}
	host, p := f.Service.Host, pointingOf(f)
	switch other := otherService(f, p); {
	case !p.known || p.missing(f):
		return nil
	case other != "":
		return []explain.Finding{withFix(f, fail("", explain.DNSHost, host,
			"%s leads to %s, and not to its own service.", host, other))}
	}
	return pass(host, "%s does not lead to another service that is known.", host)
}

// proxies are the names below which CDNs have the aliases of their customers, and how their servers call themselves.
// The ranges of their addresses are not listed: providers change them, and a list in a program is soon out of date.
// The header is needed beside the alias, because Cloudflare answers with its own addresses and without a CNAME.
var proxies = []struct {
	name    string
	domains []dnsname.Name
	header  string
}{
	{"Cloudflare", []dnsname.Name{dnsname.MustParse("cdn.cloudflare.net")}, "cloudflare"},
	{"Amazon CloudFront", []dnsname.Name{dnsname.MustParse("cloudfront.net")}, "CloudFront"},
	{"Fastly", []dnsname.Name{dnsname.MustParse("fastly.net"), dnsname.MustParse("fastlylb.net")}, "Fastly"},
	{"Akamai", []dnsname.Name{dnsname.MustParse("akamaiedge.net"), dnsname.MustParse("edgekey.net"),
		dnsname.MustParse("edgesuite.net")}, "AkamaiGHost"},
	{"the CDN of Azure", []dnsname.Name{dnsname.MustParse("azurefd.net"), dnsname.MustParse("azureedge.net")}, "Azure"},
	{"bunny.net", []dnsname.Name{dnsname.MustParse("b-cdn.net")}, "BunnyCDN"},
}

// proxyOf returns the CDN that the hostname leads to instead of the target, or "".
func proxyOf(f *explain.Facts, p pointing) string {
	if !p.known || p.byName || len(p.right) > 0 || len(p.others) == 0 {
		return ""
	}
	for _, x := range proxies {
		alias := slices.ContainsFunc(f.Chain, func(h explain.Hop) bool { return slices.ContainsFunc(x.domains, h.To.IsIn) })
		named := slices.ContainsFunc(pages(f), func(c explain.Connection) bool {
			return strings.HasPrefix(c.Page.Server, x.header)
		})
		if alias || named {
			return x.name
		}
	}
	return ""
}

// noProxy is check SVC28. The addresses of a proxy say nothing about the service behind it, but its page does.
func noProxy(f *explain.Facts) []explain.Finding {
	if f.Service == nil {
		return nil
	}
	host, p := f.Service.Host, pointingOf(f)
	proxy := proxyOf(f, p)
	switch {
	case !p.known || p.missing(f):
		return nil
	case proxy == "":
		return pass(host, "%s does not lead to a known proxy.", host)
	case len(pages(f)) == 0:
		return unknown(host, "%s leads to %s, whose addresses do not show whether the service is behind it.", host, proxy)
	}
	x := fail("", explain.You, host, "%s leads to %s, a proxy in front of the service: DNS shows only the addresses of "+
		"the proxy, so the page is judged instead.", host, proxy)
	// Most proxies are there on purpose. Removing one because of this finding could do harm.
	x.Fix = fmt.Sprintf("Do nothing if the proxy is there on purpose, and forwards to %s.", targetText(f))
	return []explain.Finding{x}
}

// targetText returns what the hostname must point to.
func targetText(f *explain.Facts) string {
	t := f.Service.Targets
	return words.Some(append(texts(t.Hosts), words.Each(t.Addrs, netip.Addr.String)...))
}

// nothingBlocks is check SVC33. It names other findings about the name that keep it from working. It judges again
// instead of reading earlier findings: a check depends on the facts only, and never on the order of the catalogue.
// Registration and mail are left out: visitors need neither, and a domain on hold already fails in the delegation.
func nothingBlocks(f *explain.Facts) []explain.Finding {
	if f.Service == nil {
		return nil
	}
	var ids []string
	worst := explain.Error
	for _, c := range slices.Concat(delegationChecks, serverChecks, soaChecks, nameChecks, answerChecks, cacheChecks,
		secureChecks, conductChecks) {
		if !slices.Contains(c.Kinds, explain.KindService) {
			continue
		}
		for _, x := range c.Judge(f) {
			// A name with warnings works.
			if x.Status != explain.Fail || !x.Severity.AtLeast(explain.Error) {
				continue
			}
			if x.Severity == explain.Critical {
				worst = explain.Critical
			}
			if !slices.Contains(ids, c.ID) {
				ids = append(ids, c.ID)
			}
		}
	}
	host := f.Service.Host
	switch {
	case len(ids) == 0 && len(f.Answers) == 0:
		return nil
	case len(ids) == 0:
		return pass(host, "No other fault of the name keeps %s from working.", host)
	}
	slices.Sort(ids)
	x := fail(worst, explain.DNSHost, host, "The name %s has %s that %s it from working: %s.", host,
		words.Verb(len(ids), "a fault", "faults"), words.Verb(len(ids), "keeps", "keep"), words.List(ids))
	x.Fix = fmt.Sprintf("Do what %s says; nameplane analyze %s shows the evidence.", words.List(ids), text(f.Name))
	return []explain.Finding{x}
}

// noneRemember is check SVC34. Earlier checks, or the user, show that the records are new. Without either, every TTL
// would be reported as a time to wait, even for records that are years old.
func noneRemember(f *explain.Facts) []explain.Finding {
	p := pointingOf(f)
	if f.Service == nil || !p.known || !p.byName && len(p.right) == 0 || !f.Change && len(f.Past) == 0 {
		return nil
	}
	host, safe := f.Service.Host, explain.Safe(f)
	switch {
	case safe.Verdict == safeat.Undetermined:
		return unknown(host, "When everyone sees the new records of %s is not known.", host)
	case !safe.At.After(f.At):
		return pass(host, "No resolver can have an older answer for %s.", host)
	}
	what := "have the older records of " + host
	if slices.ContainsFunc(explain.Links(f), func(l safeat.Link) bool {
		return slices.ContainsFunc(l.Before, func(v safeat.Version) bool { return v.Absent })
	}) {
		what = "remember that " + host + " does not exist"
	}
	x := fail("", explain.Nobody, host, "Resolvers that were asked before may %s, until %s.", what,
		words.Moment(safe.At, f.At))
	x.Visible = safe.At
	return []explain.Finding{x}
}
