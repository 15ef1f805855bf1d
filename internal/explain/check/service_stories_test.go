package check_test

import (
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/rr"
)

const (
	routeMeta   = "metadata: {name: web, namespace: shop, generation: 3}"
	gatewayMeta = "metadata: {name: edge, namespace: infra}"
	webListener = "  - {name: web, port: 443, protocol: HTTPS, hostname: www.example.org"
	endOfRoutes = "---\napiVersion: v1\nkind: Service"
	listenerSet = `---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more, namespace: shop}
spec:
  parentRef: {name: edge, namespace: infra}
  listeners: [{name: more, port: 443, protocol: HTTPS, hostname: more.example.org, tls: {}}]
status: {conditions: [{type: Accepted, status: "False", reason: NotAllowed}]}
`
)

// objectStories are stories about objects.
func objectStories() []story {
	seen := `conditions: [{type: Accepted, status: "True", observedGeneration: 2}, {type: ResolvedRefs`
	changed := func(at time.Time) string {
		return `metadata: {name: web, namespace: shop, generation: 3, managedFields: [{time: "` + at.Format(time.RFC3339) +
			`"}, {subresource: status, time: "` + now.Format(time.RFC3339) + `"}]}`
	}
	old := `conditions: [{type: Accepted, status: "True"}, {type: ResolvedRefs`
	another := func(more string) string {
		return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: new, namespace: shop}\n" +
			"spec: {parentRefs: [{name: edge, namespace: infra}], hostnames: [www.example.org]" + more + "}\n" + endOfRoutes
	}
	wildcard := func(hostnames string) func(*explain.Facts) {
		return served(func(f *explain.Facts) { f.Service.Host = "*.example.org" }, "hostname: www.example.org",
			`hostname: "*.example.org"`, "hostnames: [www.example.org]", "hostnames: "+hostnames)
	}
	annotated := func(meta, key string) func(*explain.Facts) {
		return served(nil, meta, meta[:len(meta)-1]+", annotations: {"+key+": x.example}}")
	}
	http := "  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n" + webListener
	plain := func(status int, location string) func(*explain.Facts) {
		return served(func(f *explain.Facts) {
			c := connection(web)
			c.Addr, c.TLS = netip.AddrPortFrom(addr(web), 80), nil
			c.Page = &explain.Page{URL: "http://www.example.org/", Status: status, Location: location}
			f.Service.Connections = append(f.Service.Connections, c)
		}, webListener, http)
	}
	return []story{
		{"SVC04", "an hour ago", served(nil, old, seen, routeMeta, changed(now.Add(-time.Hour))), "fail error",
			"it may not be running"},
		{"SVC04", "a moment ago", served(nil, old, seen, routeMeta, changed(now.Add(-time.Second))), "unknown",
			"not yet judged"},
		{"SVC04", "nobody knows when", served(nil, old, seen), "unknown", "not yet judged"},
		{"SVC09", "a label", served(nil, "{from: All}", "{from: Selector, selector: {matchLabels: {team: web, zone: a}}}"),
			"fail critical", "kubectl label namespace shop team=web zone=a"},
		{"SVC14", "the same path", served(nil, endOfRoutes, another("")), "fail error", "both want the path / of"},
		{"SVC14", "another path", served(nil, endOfRoutes, another(", rules: [{matches: [{path: {value: /api}}]}]")), "pass",
			""},
		{"SVC14", "another header", served(nil, endOfRoutes,
			another(", rules: [{matches: [{headers: [{name: x-canary, value: a}]}]}]")), "pass", ""},
		{"SVC14", "another listener", served(nil, "parentRefs: [{name: edge, namespace: infra}]\n",
			"parentRefs: [{name: edge, namespace: infra, sectionName: web}]\n", webListener, http, endOfRoutes,
			"---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: new, namespace: shop}\n"+
				"spec: {parentRefs: [{name: edge, namespace: infra, sectionName: http}], hostnames: [www.example.org]}\n"+
				endOfRoutes), "pass", ""},
		{"SVC15", "a wildcard with the route", served(nil, webListener,
			`  - {name: exact, port: 443, protocol: HTTPS, hostname: www.example.org, tls: {}}
  - {name: web, port: 443, protocol: HTTPS, hostname: "*.example.org"`), "fail critical", "reach the listener exact"},
		{"SVC15", "another port", served(nil, webListener,
			`  - {name: exact, port: 8443, protocol: HTTPS, hostname: www.example.org, tls: {}}
  - {name: web, port: 443, protocol: HTTPS, hostname: "*.example.org"`), "pass", ""},
		{"SVC29", "of the route", annotated(routeMeta, service.NewTarget), "fail warning", "does not read it"},
		{"SVC29", "older prefix", annotated(gatewayMeta, service.OldTarget), "fail notice", "older prefix"},
		{"SVC29", "unknown prefix", annotated(gatewayMeta, "external-dns.example/target"), "fail warning", "does not know"},
		{"SVC29", "right", annotated(gatewayMeta, service.NewTarget), "pass", ""},
		{"SVC30", "no hostnames", wildcard("[]"), "fail warning", "publishes a wildcard record"},
		{"SVC30", "a hostname", wildcard(`["*.example.org"]`), "pass", ""},
		{"SVC02", "a ListenerSet that is not accepted", served(func(f *explain.Facts) { f.Service.Host = "more.example.org" },
			endOfRoutes, listenerSet+endOfRoutes), "fail critical", "ListenerSet shop/more is not accepted"},
		{"SVC06", "a Secret of another namespace", served(nil, "tls: {}",
			"tls: {certificateRefs: [{name: cert, namespace: certs}]}", `ResolvedRefs, status: "True"}]}]`,
			`ResolvedRefs, status: "False", reason: RefNotPermitted}]}]`), "fail critical",
			`"spec":{"from":[{"group":"gateway.networking.k8s.io","kind":"Gateway","namespace":"infra"}]`},
		{"SVC07", "two parents, of which one does not exist", served(nil, "parentRefs: [{name: edge, namespace: infra}]\n",
			"parentRefs: [{name: edge, namespace: infra}, {name: none}]\n"), "fail critical", "Gateway shop/none"},
		{"SVC09", "two parents, of which one accepts", served(nil, "parentRefs: [{name: edge, namespace: infra}]\n",
			"parentRefs: [{name: edge, namespace: infra}, {name: none}]\n"), "pass", "is accepted by Gateway infra/edge"},
		{"TLS12", "overlap", served(nil, `{type: Conflicted, status: "False"}`,
			`{type: Conflicted, status: "False"}, {type: OverlappingTLSConfig, status: "True", reason: OverlappingHostnames}`),
			"fail notice", "OverlappingHostnames"},
		{"HTTP07", "no listener", served(nil), "fail notice", "no listener with port 80"},
		{"HTTP07", "not asked", served(nil, webListener, http), "unknown", ""},
		{"HTTP07", "no redirect", plain(200, ""), "fail notice", "does not redirect"},
		{"HTTP07", "an error page", plain(404, ""), "unknown", ""},
		{"HTTP07", "redirect", plain(301, "https://www.example.org/"), "pass", ""},
	}
}

// proofStories are stories about the ownership.
func proofStories() []story {
	token := func(p *explain.Page) func(*explain.Facts) {
		return served(func(f *explain.Facts) {
			f.Service.Proof = nil
			f.Service.Token = &service.Token{URL: "http://www.example.org/t", Body: "abcdefgh"}
			f.Service.Tokens = []explain.Connection{{Addr: netip.AddrPortFrom(addr(web), 80), Page: p}}
		})
	}
	ns := func(all ...string) func(*explain.Facts) {
		return served(func(f *explain.Facts) { f.Service.Proof, f.Service.Nameservers = nil, names(all...) })
	}
	owned := func(misses int, missed time.Duration, records ...explain.Answer) func(*explain.Facts) {
		return served(func(f *explain.Facts) {
			f.Service.Records = records
			f.Service.Ownership = &service.Ownership{Verified: true, Seen: now.Add(-10 * days), Missed: now.Add(-missed),
				Misses: misses}
		})
	}
	right := []string{`"abcdefgh"`}
	return []story{
		{"OWN01", "at one server", proved(right, nil), "fail critical", "1 of 2 servers of the zone"},
		{"OWN01", "no reply", served(func(f *explain.Facts) { f.Service.Records = nil }), "unknown", ""},
		{"OWN01", "another proof", served(func(f *explain.Facts) {
			f.Service.Records = []explain.Answer{proofAt(one), proofAt(two)}
			f.Service.Nameservers = names("ns1.example.org", "ns2.example.net")
		}), "fail notice", "does not exist"},
		{"OWN01", "verified before", owned(0, 0, proofAt(one)), "fail notice", ""},
		{"OWN02", "a letter", proved([]string{`"abcdefgx"`}, []string{`"abcdefgx"`}), "fail critical",
			`character 8 is "x", not "h"`},
		{"OWN02", "a space", proved([]string{`"abcdefgh "`}, []string{`"abcdefgh "`}), "fail critical",
			"character 9 is U+0020, and nothing is expected there"},
		{"OWN03", "an old one", proved([]string{`"zyxwvuts"`}, []string{`"zyxwvuts"`}), "fail critical",
			"probably an older one"},
		{"OWN03", "beside", proved([]string{`"abcdefgh"`, `"zyxwvuts"`}, right), "fail notice", "older token beside"},
		{"OWN03", "of another service", proved([]string{`"abcdefgh"`, `"v=spf1 -all"`}, right), "pass", ""},
		{"OWN04", "right", token(&explain.Page{Status: 200, Body: "abcdefgh\n"}), "pass", ""},
		{"OWN04", "missing", token(&explain.Page{Status: 404}), "fail critical", "answers 404"},
		{"OWN04", "redirect", token(&explain.Page{Status: 302, Location: "https://x.example/"}), "fail critical",
			"not followed"},
		{"OWN04", "another text", token(&explain.Page{Status: 200, Body: "<html>"}), "fail critical", "character 1 is"},
		{"OWN04", "no reply", token(nil), "unknown", ""},
		{"OWN05", "still there", owned(0, 0, proofAt(one, right...)), "pass", ""},
		{"OWN05", "no reply", owned(2, 2*days), "unknown", ""},
		{"OWN05", "the first miss", owned(0, 0, proofAt(one)), "fail warning", "counts as verified until"},
		{"OWN05", "three misses in an hour", owned(2, time.Hour, proofAt(one)), "fail warning", "counts as verified until"},
		{"OWN05", "two misses in two days", owned(1, 2*days, proofAt(one)), "fail warning", "counts as verified until"},
		{"OWN05", "three misses in two days", owned(2, 2*days, proofAt(one)), "fail critical", "no longer verified"},
		{"OWN06", "one of two", ns("ns1.example.org"), "fail critical", "Only 1 of 2"},
		{"OWN06", "all", ns("ns1.example.org", "ns2.example.net", "ns3.example.net"), "pass", ""},
		{"OWN06", "not known", served(func(f *explain.Facts) {
			f.Zones, f.Service.Nameservers = nil, names("ns1.example.org")
		}), "unknown", ""},
	}
}

// recordStories are stories about where the hostname leads.
func recordStories() []story {
	missing := func(f *explain.Facts) { f.Outcomes[0].Sets, f.Outcomes[1].Sets, f.Answers = nil, nil, nil }
	apex := func(with func(*explain.Facts)) func(*explain.Facts) {
		return served(func(f *explain.Facts) {
			f.Name, f.Service.Host = name("example.org"), "example.org"
			f.Service.Targets.Hosts = names("edge.example.net")
			with(f)
		})
	}
	led := func(to string) func(*explain.Facts) {
		return served(func(f *explain.Facts) {
			f.Service.Targets = service.Targets{Hosts: names("edge.example.net")}
			f.Service.Lookups = []explain.Lookup{found("edge.example.net", rr.TypeA, "203.0.113.77"),
				found("edge.example.net", rr.TypeAAAA)}
			h := explain.Hop{Servers: 2, Agree: 2}
			h.From, h.To, h.Type, h.Zone = f.Name, name(to), "CNAME", f.Zone
			f.Chain = []explain.Hop{h}
		})
	}
	return []story{
		{"SVC21", "as text", served(func(f *explain.Facts) {
			missing(f)
			f.Service.Lookups = append(f.Service.Lookups, found("www.example.org", rr.TypeTXT, `"`+web+`"`))
		}), "fail critical", "it has another type"},
		{"SVC22", "doubled", served(func(f *explain.Facts) {
			missing(f)
			f.Service.Lookups = append(f.Service.Lookups, found("www.example.org.example.org", rr.TypeA, web))
		}), "fail critical", "the form added it again"},
		{"SVC23", "CNAME", apex(func(f *explain.Facts) {
			f.Answers[0].Question.Name = f.Name
			f.Answers[0].Sets = []explain.Set{set("example.org", rr.TypeCNAME, 300, "edge.example.net.")}
		}), "fail critical", "is the apex of its zone and has a CNAME"},
		{"SVC23", "copies", apex(func(*explain.Facts) {}), "fail notice", "copies of the addresses of edge.example.net"},
		{"SVC23", "ALIAS", apex(func(f *explain.Facts) { f.Service.HasAlias = true }), "pass", ""},
		{"SVC24", "two labels", shown(func(c *explain.Connection) {
			c.Name, c.TLS.Names, c.TLS.Covers = "a.www.example.org", []string{"*.example.org"}, explain.No
		}), "fail critical", "stands for one label only"},
		{"SVC26", "IPv6 elsewhere", served(func(f *explain.Facts) {
			f.Service.Targets = service.Targets{Addrs: []netip.Addr{addr(web)}}
		}), "fail error", "over IPv6 it leads to"},
		{"SVC27", "another tenant", led("other.example.net"), "fail critical", "another host of example.net"},
		{"SVC28", "a CDN", led("d111.cloudfront.net"), "fail notice", "Amazon CloudFront"},
		{"SVC28", "a CDN without a page", served(func(f *explain.Facts) {
			led("d111.cloudfront.net")(f)
			f.Service.Connections = nil
		}), "unknown", ""},
		{"SVC33", "no authority", served(func(f *explain.Facts) { f.Service.Host = "www.example.org"; lame(f) }),
			"fail critical", "DEL04"},
		{"SVC34", "new", served(func(f *explain.Facts) {
			f.Caches, f.Past = nil, []explain.Past{{Name: f.Name, At: now.Add(-time.Minute), Absent: []rr.Type{rr.TypeA,
				rr.TypeAAAA}}}
		}), "fail warning", "remember that www.example.org does not exist"},
		{"SVC34", "old", served(func(f *explain.Facts) {
			f.Caches, f.Past = nil, []explain.Past{{Name: f.Name, At: now.Add(-10 * days), Sets: []explain.Set{
				f.Outcomes[0].Sets[0], f.Outcomes[1].Sets[0]}}}
		}), "pass", ""},
	}
}

// lame makes all servers of the zone refuse.
func lame(f *explain.Facts) {
	for i := range f.Servers {
		if f.Servers[i].Zone == f.Zone {
			f.Servers[i].Class = "lame-refused"
		}
	}
}

// certificateStories are stories about certificates and their issuers.
func certificateStories() []story {
	permits := func(data ...string) func(*explain.Facts) {
		return served(func(f *explain.Facts) { f.Service.Lookups = []explain.Lookup{found("www.example.org", caa, data...)} })
	}
	challenge := func(c *explain.Connection) func(*explain.Facts) {
		return served(func(f *explain.Facts) {
			x := service.Challenge{}
			x.Spec.Type, x.Spec.Host = "HTTP-01", "www.example.org"
			f.Service.Objects.Challenges = []service.Challenge{x}
			if c != nil {
				c.Addr, c.Name = netip.AddrPortFrom(addr(web), 80), "www.example.org"
				f.Service.Challenges = []explain.Connection{*c}
			}
		}, webListener, "  - {name: http, port: 80, protocol: HTTP}\n"+webListener)
	}
	page := func(status int, location string) *explain.Connection {
		return &explain.Connection{Connected: explain.Yes, Page: &explain.Page{Status: status, Location: location}}
	}
	renewed := func(from, until time.Time) func(*explain.Facts) {
		return served(func(f *explain.Facts) {
			f.Service.Objects.Certificates[0].Status.NotBefore = from
			f.Service.Objects.Certificates[0].Status.NotAfter = until
		})
	}
	return []story{
		{"TLS06", "another CA", permits(`0 issue "digicert.com"`), "fail warning", "cannot be renewed"},
		{"TLS06", "no CA", permits(`0 issue ";"`), "fail warning", "permit no CA"},
		{"TLS06", "a critical property that no CA knows", permits(`128 future "x"`), "fail warning", "permit no CA"},
		{"TLS06", "no CA, and no certificate", served(func(f *explain.Facts) {
			f.Service.Connections, f.Service.Lookups = nil, []explain.Lookup{found("www.example.org", caa, `0 issue ";"`)}
		}), "fail critical", "permit no CA"},
		{"TLS06", "no TLS", served(func(f *explain.Facts) {
			f.Service.Connections, f.Service.Lookups = nil, []explain.Lookup{found("www.example.org", caa, `0 issue ";"`)}
		}, "port: 443, protocol: HTTPS", "port: 80, protocol: HTTP"), "", ""},
		{"TLS06", "a wildcard", served(func(f *explain.Facts) {
			f.Service.Host = "*.example.org"
			f.Service.Lookups = []explain.Lookup{found("example.org", caa, `0 issue "letsencrypt.org"`, `0 issuewild ";"`)}
		}), "fail warning", "permit no CA"},
		{"TLS06", "an unknown CA", served(func(f *explain.Facts) {
			f.Service.Connections[0].TLS.Issuer, f.Service.Connections[1].TLS.Issuer = "CN=My CA", "CN=My CA"
		}), "unknown", "CN=My CA"},
		{"TLS06", "only contacts", permits(`0 iodef "mailto:x@example.org"`), "pass", ""},
		{"TLS08", "not found", challenge(page(404, "")), "pass", ""},
		{"TLS08", "to HTTPS", challenge(page(301, "https://www.example.org/x")), "pass", ""},
		{"TLS08", "forbidden", challenge(page(403, "")), "fail error", "answers 403"},
		{"TLS08", "elsewhere", challenge(page(302, "https://login.example/")), "fail error", "redirects"},
		{"TLS08", "refused", challenge(&explain.Connection{Connected: explain.No}), "fail error", "port 80"},
		{"TLS08", "not asked", challenge(nil), "unknown", ""},
		{"TLS10", "older", renewed(now.Add(-2*time.Hour), now.Add(89*days)), "fail warning", "still shows a certificate"},
		{"TLS10", "just renewed", renewed(now.Add(-time.Hour), now.Add(89*days)), "unknown", "just have been renewed"},
		{"TLS10", "newest", renewed(now.Add(-days), now.Add(80*days)), "pass", ""},
		{"TLS11", "old", shown(func(c *explain.Connection) { c.TLS.Version = "TLS 1.1" }), "fail notice", "only TLS 1.1"},
		{"TLS11", "no HTTP/2", shown(func(c *explain.Connection) { c.TLS.HTTP2 = explain.No }), "fail notice",
			"does not offer HTTP/2"},
		{"TLS09", "with DNS beside it", served(nil, `{type: Ready, status: "True"}`,
			`{type: Ready, status: "False", reason: Pending}`), "fail error",
			"The records of www.example.org lead to the service."},
		{"HTTP04", "another host", shown(func(c *explain.Connection) {
			c.Page.Status, c.Page.Location = 301, "https://example.net/"
		}), "fail notice", "to the host example.net"},
		{"HTTP05", "IPv4 is dead", shown(func(c *explain.Connection) { c.Connected = explain.No }), "fail error",
			"works over IPv6, but not over IPv4"},
		{"HTTP05", "another status", shown(func(c *explain.Connection) { c.Page.Status = 503 }), "fail error",
			"answers 503 over IPv4"},
	}
}
