package explain_test

import (
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/rr"
)

// appObjects returns pairs that add objects before the Service.
func appObjects(yaml string) []string {
	return []string{"apiVersion: v1\nkind: Service", yaml + "---\napiVersion: v1\nkind: Service"}
}

// before returns the input of a service that was verified some days ago, and whose proof is missing since then.
func before(misses int, since time.Duration) func(*gather.ServiceInput) {
	return func(in *gather.ServiceInput) {
		now := time.Now()
		in.Ownership = &service.Ownership{Verified: true, Seen: now.Add(-since - time.Hour), Missed: now.Add(-since),
			Misses: misses}
	}
}

// apex are the objects of a service at the apex.
var apex = []string{`hostname: "*.example.com"`, "hostname: example.com", "hostnames: [app.example.com]",
	"hostnames: [example.com]"}

const (
	appToken  = `_token.app.example.com. 300 TXT "a1b2c3d4e5"`
	pageToken = "http://app.example.com/.well-known/token=a1b2c3d4e5"

	secondRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web2, namespace: shop, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {parentRefs: [{name: edge, namespace: infra}], hostnames: [app.example.com]}
`
	secondGateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other, namespace: infra}
status: {addresses: [{value: 93.184.8.8}]}
`
	pendingChallenge = `apiVersion: acme.cert-manager.io/v1
kind: Challenge
metadata: {name: app-1, namespace: infra}
spec: {dnsName: app.example.com, type: HTTP-01}
status: {state: pending, reason: "wrong status code '403', expected '200'"}
`
	httpListener = `  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
status:
  addresses: [{type: Hostname`
)

// objectScenarios are faults of objects that other parts of the program find than the API server.
func objectScenarios() []scenario {
	return []scenario{
		{name: "controller stopped", objects: []string{"metadata: {name: edge, namespace: infra, generation: 2}",
			`metadata: {name: edge, namespace: infra, generation: 3, managedFields: [{time: "1999-12-31T23:00:00Z"}]}`},
			want: "SVC04", link: explain.LinkGateway, words: "it may not be running"},
		{name: "two routes", objects: append([]string{"metadata: {name: web, namespace: shop, generation: 1}",
			`metadata: {name: web, namespace: shop, generation: 1, creationTimestamp: "2026-03-01T00:00:00Z"}`},
			appObjects(secondRoute)...), want: "SVC14", link: explain.LinkRoute,
			words: "HTTPRoute shop/web gets no requests for the path / of app.example.com: HTTPRoute shop/web2"},
		{name: "a more specific listener", objects: []string{"status:\n  addresses: [{type: Hostname",
			`  - {name: app, port: 443, protocol: HTTPS, hostname: app.example.com, tls: {}}
status:
  addresses: [{type: Hostname`}, want: "SVC15", link: explain.LinkListener, words: "reach the listener app"},
		{name: "annotation of the route", objects: []string{"metadata: {name: web, namespace: shop, generation: 1}",
			"metadata: {name: web, namespace: shop, generation: 1, annotations: {external-dns.kubernetes.io/target: x.test}}"},
			want: "SVC29", words: "where external-dns does not read it"},
		{name: "annotation with another prefix", objects: []string{"name: edge, namespace: infra, generation: 2}",
			"name: edge, namespace: infra, generation: 2, annotations: {external-dns.io/target: x.test}}"},
			want: "SVC29", words: "a prefix that external-dns does not know"},
		{name: "annotation with the older prefix", objects: []string{"name: edge, namespace: infra, generation: 2}",
			"name: edge, namespace: infra, generation: 2, annotations: {external-dns.alpha.kubernetes.io/target: " +
				"edge.example.net}}"}, want: "SVC29", words: "the older prefix"},
		{name: "a wildcard by accident", host: "*.example.com", objects: []string{"  hostnames: [app.example.com]\n", ""},
			zone: []string{"app.example.com. 300 CNAME", "*.example.com. 300 CNAME"}, want: "SVC30",
			words: "external-dns publishes a wildcard"},
		{name: "overlapping listeners", objects: []string{
			`- {type: Conflicted, status: "False", reason: NoConflicts, observedGeneration: 2}`,
			`- {type: Conflicted, status: "False", reason: NoConflicts, observedGeneration: 2}
    - {type: OverlappingTLSConfig, status: "True", reason: OverlappingCertificates}`}, want: "TLS12",
			words: "OverlappingCertificates"},
		{name: "no listener for HTTP", want: "HTTP07", words: "no listener with port 80"},
		{name: "no redirect", objects: []string{"status:\n  addresses: [{type: Hostname", httpListener},
			web: func(w *website) { w.plain = page{status: 200, body: "hello"} }, want: "HTTP07", words: "does not redirect"},
	}
}

// ownershipScenarios are faults of proofs.
func ownershipScenarios() []scenario {
	own := explain.LinkOwnership
	return []scenario{
		{name: "proof at one of two servers", proof: true, second: []string{appToken, ""}, want: "OWN01", link: own,
			words: "1 of 2 servers of the zone"},
		{name: "proof of another service", proof: true, zone: []string{`TXT "a1b2c3d4e5"`, `TXT "v=spf1 -all"`},
			want: "OWN01", link: own, words: "other values"},
		{name: "proof with a dash", proof: true, zone: []string{`TXT "a1b2c3d4e5"`, `TXT "a1b2c3d4e5\194\160"`},
			want: "OWN02", link: own, words: "character 11 is U+00A0, and nothing is expected there"},
		{name: "old proof", proof: true, zone: []string{`TXT "a1b2c3d4e5"`, `TXT "z9y8x7w6v5"`}, want: "OWN03", link: own,
			words: "probably an older one"},
		{name: "old proof beside the new one", proof: true, zone: []string{`TXT "a1b2c3d4e5"`,
			`TXT "a1b2c3d4e5", "z9y8x7w6v5"`}, want: "OWN03", words: "beside the right one"},
		{name: "no token", token: pageToken, web: func(w *website) { w.plain = page{status: 404} }, want: "OWN04", link: own,
			words: "answers 404"},
		{name: "token on an error page", token: pageToken, web: func(w *website) {
			w.plain = page{status: 404, body: "a1b2c3d4e5"}
		}, want: "OWN04", link: own, words: "answers 404"},
		{name: "token redirected", token: pageToken, want: "OWN04", link: own, words: "redirects are not followed"},
		{name: "another token", token: pageToken, web: func(w *website) { w.plain = page{status: 200, body: "a1b2c3d4e6"} },
			want: "OWN04", link: own, words: `character 10 is "6", not "5"`},
		{name: "too long a token", token: pageToken, web: func(w *website) {
			w.plain = page{status: 200, body: "a1b2c3d4e5" + string(make([]byte, 2000))}
		}, want: "OWN04", link: own, words: "more than 1024 bytes"},
		{name: "proof gone for two days", proof: true, zone: []string{appToken, ""}, input: before(2, 48*time.Hour),
			want: "OWN05", link: own, words: "in 3 checks: the ownership is no longer verified"},
		{name: "proof gone today", proof: true, zone: []string{appToken, ""}, input: before(5, time.Hour), want: "OWN05",
			words: "counts as verified until"},
		{name: "one of two nameservers", ns: []string{"ns1.example.com"}, want: "OWN06", link: own,
			words: "Only 1 of 2 nameservers"},
		{name: "no nameserver", ns: []string{"ns1.example.net"}, want: "OWN06", link: own, words: "Only 0 of 2"},
	}
}

// recordScenarios are faults of records.
func recordScenarios() []scenario {
	dns := explain.LinkDNS
	return []scenario{
		{name: "at the apex as text", host: "example.com", objects: apex, zone: []string{
			"app.example.com. 300 CNAME edge.example.net.", "\\@.example.com. 300 A 93.184.9.1"}, want: "SVC22", link: dns,
			words: "the sign @ was stored as a label"},
		{name: "CNAME at the apex", host: "example.com", objects: apex, zone: []string{
			"app.example.com. 300 CNAME edge.example.net.", "example.com. 300 CNAME edge.example.net."}, want: "SVC23",
			link: dns, words: "is the apex of its zone and has a CNAME"},
		{name: "copies at the apex", host: "example.com", objects: apex, zone: []string{
			"app.example.com. 300 CNAME edge.example.net.",
			"example.com. 300 A 93.184.9.1\nexample.com. 300 AAAA 2606:2800:9::1"}, want: "SVC23",
			words: "copies of the addresses"},
		{name: "another Gateway", objects: append([]string{"{type: Hostname, value: edge.example.net}",
			"{type: IPAddress, value: 93.184.9.1}"}, appObjects(secondGateway)...),
			zone: []string{"CNAME edge.example.net.", "A 93.184.8.8"}, want: "SVC27", link: dns, words: "Gateway infra/other"},
		{name: "another tenant", zone: []string{"CNAME edge.example.net.", "CNAME customer7.example.net."},
			target: []string{"edge.example.net. 60 A", "customer7.example.net. 60 A 93.184.8.8\nedge.example.net. 60 A"},
			want:   "SVC27", link: dns, words: "customer7.example.net, another host of example.net"},
		{name: "a proxy", zone: []string{"CNAME edge.example.net.", "A 93.184.8.8"},
			web: func(w *website) { w.server = "cloudflare" }, want: "SVC28", words: "leads to Cloudflare"},
		{name: "CNAME beside TXT", zone: []string{"app.example.com. 300 CNAME",
			"app.example.com. 300 TXT \"v=spf1 -all\"\napp.example.com. 300 CNAME"}, want: "SVC33",
			also: "NAM03", link: dns, words: "NAM03"},
		{name: "missing a moment ago", options: func(o *gather.Options) {
			o.Past = []explain.Past{{Name: dnsname.MustParse("app.example.com"), At: time.Now().Add(-5 * time.Minute),
				Absent: []rr.Type{rr.TypeA, rr.TypeAAAA}}}
		}, want: "SVC34", words: "remember that app.example.com does not exist, until 00:05"},
		{name: "entered just now", options: func(o *gather.Options) { o.Change = true }, want: "SVC34", words: "until 00:05"},
	}
}

// certificateScenarios are faults of certificates and pages.
func certificateScenarios() []scenario {
	cert, backend := explain.LinkCertificate, explain.LinkBackend
	caa := func(data string) []string {
		return []string{"app.example.com. 300 CNAME", "example.com. 300 CAA " + data + "\napp.example.com. 300 CNAME"}
	}
	certificate := func(status string) []string {
		return appObjects(`apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: app, namespace: infra}
spec: {dnsNames: ["*.example.com", example.com], secretName: cert}
status: {` + status + "}\n")
	}
	http := []string{"status:\n  addresses: [{type: Hostname", httpListener}
	return []scenario{
		{name: "two labels, nothing listens", objects: append([]string{"hostnames: [app.example.com]",
			"hostnames: [a.app.example.com]"}, certificate("")...), zone: []string{"app.example.com. 300 CNAME",
			"a.app.example.com. 300 CNAME"}, host: "a.app.example.com",
			web: func(w *website) { w.dead = []string{"93.184.9.1", "2606:2800:9::1"} }, want: "SVC24", link: cert,
			words: "stands for one label only"},
		{name: "another CA", zone: caa(`0 issue "digicert.com"`), web: func(w *website) { w.issuer = "Let's Encrypt" },
			want: "TLS06", words: "permit only digicert.com, but its certificate is from Let's Encrypt"},
		{name: "another CA, and no certificate", zone: caa(`0 issue ";"`), web: func(w *website) {
			w.dead = []string{"93.184.9.1", "2606:2800:9::1"}
		}, want: "TLS06", link: cert, words: "permit no CA"},
		{name: "HTTP-01 without a listener", objects: appObjects(pendingChallenge), want: "TLS08", link: cert,
			words: "no listener of its Gateway has port 80"},
		{name: "HTTP-01 refused", objects: append(appObjects(pendingChallenge), http...),
			web: func(w *website) { w.plain = page{status: 403} }, want: "TLS08", link: cert, words: "answers 403"},
		{name: "HTTP-01 redirected", objects: append(appObjects(pendingChallenge), http...),
			web: func(w *website) { w.plain.location = "https://www.example.org/" }, want: "TLS08", link: cert,
			words: "redirects the path of HTTP-01 to www.example.org"},
		{name: "HTTP-01 over IPv6", objects: append(appObjects(pendingChallenge), http...),
			web: func(w *website) { w.dead = []string{"[2606:2800:9::1]:80"} }, want: "TLS08", link: cert,
			words: "[2606:2800:9::1]:80 does not accept connections on port 80"},
		{name: "the Challenge says why", objects: append(append(certificate(
			`conditions: [{type: Ready, status: "False", reason: DoesNotExist}]`), "example.com], secretName",
			"example.com, app.example.com], secretName"), appObjects(pendingChallenge)...), want: "TLS09",
			also: "TLS08", link: cert, words: "wrong status code"},
		{name: "older certificate", objects: certificate(`conditions: [{type: Ready, status: "True"}],
  notBefore: "1999-12-31T00:00:00Z", notAfter: "2000-03-31T00:00:00Z"`), want: "TLS10",
			words: "still shows a certificate that ends at"},
		{name: "old TLS", web: func(w *website) { w.oldTLS = true }, want: "TLS11", words: "supports only TLS 1.1"},
		{name: "no HTTP/2", web: func(w *website) { w.noHTTP2 = true }, want: "TLS11", words: "does not offer HTTP/2"},
		{name: "families differ", web: func(w *website) {
			w.elsewhere = map[string]page{"2606:2800:9::1": {status: 404, body: "<h1>No such page</h1>"}}
		}, want: "HTTP05", link: backend, words: "answers 200 over IPv4 (93.184.9.1:443) and 404 over IPv6"},
	}
}
