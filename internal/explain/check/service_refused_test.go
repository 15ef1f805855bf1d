package check_test

import (
	"net/netip"

	"github.com/nameplane/nameplane/internal/explain"
)

// withRefused returns a story in which the hostname also has a listener that the controller does not serve.
func withRefused(with func(*explain.Facts), edit ...string) func(*explain.Facts) {
	return served(with, append([]string{webListener, "  - {name: extra, port: 8443, protocol: HTTPS, " +
		"hostname: www.example.org, tls: {}, allowedRoutes: {namespaces: {from: All}}}\n" + webListener,
		"listeners: [{name: web,", `listeners: [{name: extra, conditions: [{type: Accepted, status: "False", ` +
			`reason: PortUnavailable, message: no entry point}]}, {name: web,`}, edit...)...)
}

// refusedStories are stories of a listener that the controller does not serve, as Traefik reports it.
func refusedStories() []story {
	const parent = "parentRef: {name: edge, namespace: infra}"
	return []story{
		{"SVC05", "one of two listeners", withRefused(nil), "fail warning", "no entry point (PortUnavailable)"},
		{"SVC05", "another protocol", withRefused(nil, "port: 443, protocol: HTTPS", "port: 443, protocol: HTTP"),
			"fail critical", "no entry point (PortUnavailable)"},
		{"SVC09", "a listener that is not served", withRefused(nil, "parentRefs: [{name: edge, namespace: infra}]\n",
			"parentRefs: [{name: edge, namespace: infra, sectionName: web}, "+
				"{name: edge, namespace: infra, sectionName: extra}]\n", parent,
			"parentRef: {name: edge, namespace: infra, sectionName: extra}\n"+
				"    conditions: [{type: Accepted, status: \"False\", reason: NotAllowedByListeners}]\n"+
				"  - parentRef: {name: edge, namespace: infra, sectionName: web}"), "pass", ""},
		{"HTTP01", "the port of a listener that is not served", withRefused(func(f *explain.Facts) {
			c := connection(web)
			c.Addr, c.Connected = netip.AddrPortFrom(c.Addr.Addr(), 8443), explain.No
			f.Service.Connections = append(f.Service.Connections, c)
		}), "pass", ""},
	}
}
