package check_test

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// objects are the objects of a healthy service at www.example.org.
const objects = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
status: {conditions: [{type: Accepted, status: "True"}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: edge
  listeners:
  - {name: web, port: 443, protocol: HTTPS, hostname: www.example.org, tls: {},
	allowedRoutes: {namespaces: {from: All}}}
status:
  addresses: [{value: 203.0.113.1}]
  conditions: [{type: Accepted, status: "True"}, {type: Programmed, status: "True"}]
  listeners: [{name: web, conditions: [{type: Conflicted, status: "False"}, {type: ResolvedRefs, status: "True"}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop, generation: 3}
spec:
  parentRefs: [{name: edge, namespace: infra}]
  hostnames: [www.example.org]
  rules: [{backendRefs: [{name: web, port: 80}]}]
status:
  parents:
  - parentRef: {name: edge, namespace: infra}
    conditions: [{type: Accepted, status: "True"}, {type: ResolvedRefs, status: "True"}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, namespace: infra}
spec: {dnsNames: [www.example.org]}
status: {conditions: [{type: Ready, status: "True"}]}
`

// served returns a story of a service: edit changes its objects, and with the facts.
func served(with func(*explain.Facts), edit ...string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		text := objects
		for i := 0; i+1 < len(edit); i += 2 {
			if !strings.Contains(text, edit[i]) {
				panic("the objects have no " + edit[i])
			}
			text = strings.Replace(text, edit[i], edit[i+1], 1)
		}
		o, err := service.Parse(strings.NewReader(text))
		if err != nil {
			panic(err)
		}
		f.Kind = explain.KindService
		f.Service = &explain.Service{Host: "www.example.org", Objects: o,
			Targets: service.Targets{Addrs: []netip.Addr{addr(web), addr(web6)}},
			Proof:   &service.Record{Owner: name("_t.www.example.org"), Type: rr.TypeTXT, Data: []string{`"abcdefgh"`}},
			Lookups: []explain.Lookup{found("www.example.org", caa), found("example.org", caa, `0 issue "letsencrypt.org"`),
				found("_t.www.example.org", rr.TypeTXT, `"abcdefgh"`), found("edge.example.net", rr.TypeA, web),
				found("edge.example.net", rr.TypeAAAA)},
			Records:     []explain.Answer{proofAt(one, `"abcdefgh"`), proofAt(two, `"abcdefgh"`)},
			Connections: []explain.Connection{connection(web), connection(web6)}}
		if with != nil {
			with(f)
		}
	}
}

// proofAt returns the answer of a server to the question for the proof of ownership.
func proofAt(server string, data ...string) explain.Answer {
	a := explain.Answer{Question: ask("_t.www.example.org", rr.TypeTXT), Zone: name("example.org"), Server: addr(server),
		Class: iterate.NXDomain}
	if len(data) > 0 {
		a.Class, a.Sets = iterate.Answer, []explain.Set{set("_t.www.example.org", rr.TypeTXT, 300, data...)}
	}
	return a
}

// proved returns a story with these values of the proof at the two servers.
func proved(first, second []string) func(*explain.Facts) {
	return served(func(f *explain.Facts) {
		f.Service.Records = []explain.Answer{proofAt(one, first...), proofAt(two, second...)}
	})
}

// connection returns a connection to a healthy address.
func connection(at string) explain.Connection {
	return explain.Connection{Addr: netip.AddrPortFrom(addr(at), 443), Name: "www.example.org", Connected: explain.Yes,
		TLS: &explain.Handshake{Done: explain.Yes, Version: "TLS 1.3", HTTP2: explain.Yes, Subject: "CN=www.example.org",
			Names: []string{"www.example.org"}, Issuer: "CN=R11,O=Let's Encrypt,C=US", From: now.Add(-days),
			Until: now.Add(80 * days), Covers: explain.Yes, Trusted: explain.Yes},
		Page: &explain.Page{URL: "https://www.example.org/", Status: 200, Body: "hello"}}
}

// shown returns a story in which the first connection is changed.
func shown(change func(*explain.Connection)) func(*explain.Facts) {
	return served(func(f *explain.Facts) { change(&f.Service.Connections[0]) })
}

func serviceStories() []story {
	class := `status: {conditions: [{type: Accepted, status: "True"}]}`
	parents := "parentRefs: [{name: edge, namespace: infra}]"
	all := []story{
		{"SVC01", "another class", served(nil, "gatewayClassName: edge", "gatewayClassName: other"), "fail critical",
			"which does not exist"},
		{"SVC01", "not accepted", served(nil, class, strings.Replace(class, `"True"`, `"False", reason: Unsupported`, 1)),
			"fail critical", "Unsupported"},
		{"SVC01", "no status", served(nil, class, "status: {}"), "unknown", "no condition Accepted"},
		{"SVC02", "not accepted", served(nil, `[{type: Accepted, status: "True"}, {type: Prog`,
			`[{type: Accepted, status: "False", reason: Invalid}, {type: Prog`), "fail critical", "Invalid"},
		{"SVC02", "other listeners", served(nil, `[{type: Accepted, status: "True"}, {type: Prog`,
			`[{type: Accepted, status: "False", reason: ListenersNotValid}, {type: Prog`), "fail warning", "Some listeners"},
		{"SVC03", "no address", served(nil, "addresses: [{value: 203.0.113.1}]", "addresses: []"), "fail critical",
			"no address yet"},
		{"SVC05", "conflict", served(nil, `Conflicted, status: "False"`,
			`Conflicted, status: "True", reason: HostnameConflict`),
			"fail critical", "HostnameConflict"},
		{"SVC05", "not accepted", served(nil, `{type: Conflicted, status: "False"}`,
			`{type: Accepted, status: "False", reason: PortUnavailable}`), "fail critical", "PortUnavailable"},
		{"SVC05", "not programmed", served(nil, `{type: Conflicted, status: "False"}`,
			`{type: Programmed, status: "False", reason: Invalid}`), "fail critical", "Invalid"},
		{"SVC06", "refused", served(nil, `ResolvedRefs, status: "True"}]}]`,
			`ResolvedRefs, status: "False", reason: RefNotPermitted}]}]`),
			"fail critical", "RefNotPermitted"},
		{"SVC07", "another gateway", served(nil, parents, "parentRefs: [{name: egde, namespace: infra}]"), "fail critical",
			"did you mean infra/edge?"},
		{"SVC08", "another section", served(nil, parents, "parentRefs: [{name: edge, namespace: infra, sectionName: api}]"),
			"fail critical", "the listeners are web"},
		{"SVC09", "another namespace", served(nil, "{from: All}", "{from: Same}"), "fail critical", "namespace shop"},
		{"SVC09", "a newer version", served(nil, `conditions: [{type: Accepted, status: "True"}, {type: ResolvedRefs`,
			`conditions: [{type: Accepted, status: "False", observedGeneration: 2}, {type: ResolvedRefs`), "unknown",
			"no current condition"},
		{"SVC10", "another hostname", served(nil, "hostname: www.example.org", "hostname: api.example.org"), "fail critical",
			"listeners have api.example.org"},
		{"SVC11", "no service", served(nil, "kind: Service\nmetadata: {name: web", "kind: Service\nmetadata: {name: api"),
			"fail critical", "does not exist"},
		{"SVC12", "rules left out", served(nil, `{type: ResolvedRefs, status: "True"}]`+"\n---\napiVersion: v1",
			`{type: PartiallyInvalid, status: "True", reason: UnsupportedValue}]`+"\n---\napiVersion: v1"), "fail error",
			"UnsupportedValue"},
		{"SVC13", "no route", served(nil, "hostnames: [www.example.org]", "hostnames: [api.example.org]"), "fail critical",
			"No route uses the hostname www.example.org"},
		{"SVC16", "an address", served(func(f *explain.Facts) { f.Service.Host = "192.0.2.1" }), "fail critical",
			"is an address"},
		{"SVC16", "an underscore", served(func(f *explain.Facts) { f.Service.Host = "my_app.example.org" }), "fail critical",
			"cannot have"},
		{"SVC20", "no record", served(func(f *explain.Facts) { f.Outcomes[0].Sets, f.Outcomes[1].Sets = nil, nil }),
			"fail critical", "host www, type A, value 203.0.113.1"},
		{"SVC20", "no target", served(func(f *explain.Facts) { f.Service.Targets = service.Targets{} }), "unknown",
			"must point to"},
		{"SVC21", "elsewhere", served(func(f *explain.Facts) {
			f.Service.Targets = service.Targets{Addrs: []netip.Addr{addr("203.0.113.200")}}
		}), "fail critical", "does not lead to the service"},
		{"SVC25", "half", served(func(f *explain.Facts) {
			f.Outcomes[0].Sets[0].Data = []string{web, "203.0.113.99"}
		}), "fail error", "1 of 3 addresses"},
		{"SVC25", "one family", served(func(f *explain.Facts) {
			f.Service.Targets = service.Targets{Addrs: []netip.Addr{addr(web)}}
		}), "", ""},
		{"SVC31", "documentation", served(nil), "fail error", "which is"},
		{"SVC31", "public", served(func(f *explain.Facts) {
			f.Outcomes = []explain.Outcome{outcome(rr.TypeA, "93.184.10.1")}
		}), "pass", ""},
		{"SVC32", "no address", served(func(f *explain.Facts) {
			f.Service.Targets.Hosts = names("edge.example.net")
			f.Service.Lookups = []explain.Lookup{found("edge.example.net", rr.TypeA), found("edge.example.net", rr.TypeAAAA)}
		}), "fail critical", "has no address"},
		{"SVC32", "an address", served(func(f *explain.Facts) { f.Service.Targets.Hosts = names("edge.example.net") }),
			"pass", ""},
		{"OWN01", "missing", proved(nil, nil), "fail critical", "host _t.www, type TXT"},
		{"TLS01", "another name", shown(func(c *explain.Connection) { c.TLS.Covers = explain.No }), "fail critical",
			"not for www.example.org"},
		{"TLS01", "no handshake", shown(func(c *explain.Connection) { c.TLS = &explain.Handshake{Done: explain.No} }),
			"fail critical", "does not complete"},
		{"TLS02", "default", shown(func(c *explain.Connection) { c.TLS.Subject = "CN=TRAEFIK DEFAULT CERT" }),
			"fail critical", "TRAEFIK"},
		{"TLS03", "expired", shown(func(c *explain.Connection) { c.TLS.Until = now.Add(-time.Hour) }), "fail critical",
			"expired"},
		{"TLS03", "soon", shown(func(c *explain.Connection) { c.TLS.Until = now.Add(5 * days) }), "fail warning",
			"expires in 5 days"},
		{"TLS03", "not yet", shown(func(c *explain.Connection) { c.TLS.From = now.Add(days) }), "fail critical",
			"valid only from"},
		{"TLS04", "not trusted", shown(func(c *explain.Connection) { c.TLS.Trusted = explain.No }), "fail critical",
			"not trusted"},
		{"TLS05", "different", shown(func(c *explain.Connection) { c.TLS.Until = now.Add(70 * days) }), "fail error",
			"different certificates"},
		{"TLS07", "SERVFAIL", served(func(f *explain.Facts) {
			f.Service.Lookups = []explain.Lookup{{Question: ask("www.example.org", caa), Result: iterate.Unknown}}
			f.Exchanges = []iterate.Exchange{{Question: ask("www.example.org", caa), Class: iterate.LameServfail}}
		}), "fail error", "CAA at www.example.org"},
		{"TLS07", "no reply", served(func(f *explain.Facts) {
			f.Service.Lookups = []explain.Lookup{{Question: ask("www.example.org", caa), Result: iterate.Unknown}}
		}), "unknown", ""},
		{"TLS09", "not ready", served(nil, `{type: Ready, status: "True"}`,
			`{type: Ready, status: "False", reason: Pending}`),
			"fail error", "Pending"},
		{"HTTP01", "refused", served(func(f *explain.Facts) {
			c := connection("203.0.113.11")
			c.Connected = explain.No
			f.Service.Connections = append(f.Service.Connections, c)
		}), "fail error", "does not accept connections"},
		{"HTTP01", "not allowed", shown(func(c *explain.Connection) { c.Connected = explain.Unknown }), "unknown", ""},
		{"HTTP02", "no upstream", shown(func(c *explain.Connection) {
			c.Page.Status, c.Page.Body = 503,
				"no healthy upstream"
		}),
			"fail critical", "no backend is ready"},
		{"HTTP03", "no route", shown(func(c *explain.Connection) { c.Page.Status, c.Page.Body = 404, "404 page not found" }),
			"fail critical", "no route"},
		{"HTTP03", "no page", shown(func(c *explain.Connection) { c.Page.Status = 404 }), "fail warning", "answers 404"},
		{"HTTP04", "a loop", shown(func(c *explain.Connection) { c.Page.Status, c.Page.Location = 301, c.Page.URL }),
			"fail warning", "to itself"},
		{"HTTP06", "none ready", served(nil, "addresses: [10.0.0.1]", "conditions: {ready: false}"), "fail critical",
			"0 of 1"},
	}
	all = slices.Concat(all, objectStories(), proofStories(), recordStories(), certificateStories())
	for _, c := range check.All() {
		if c.Group != check.Service {
			continue
		}
		all = append(all, story{c.ID, "no service", nil, "", ""})
		// The others have stories of their own that pass.
		if !slices.Contains([]string{"SVC23", "SVC29", "SVC30", "SVC31", "SVC32", "SVC34", "OWN04", "OWN05", "OWN06", "TLS08",
			"TLS10", "HTTP07"}, c.ID) {
			all = append(all, story{c.ID, "healthy", served(nil), "pass", ""})
		}
	}
	return all
}
