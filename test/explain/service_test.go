package explain_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
)

// The objects, the zones and the servers of a healthy service. Scenarios replace parts of them.
const (
	serviceObjects = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: example.org/controller}
status: {conditions: [{type: Accepted, status: "True", reason: Accepted}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra, generation: 2}
spec:
  gatewayClassName: edge
  listeners:
  - name: web
    port: 443
    protocol: HTTPS
    hostname: "*.example.com"
    tls: {certificateRefs: [{name: cert}]}
    allowedRoutes: {namespaces: {from: All}}
status:
  addresses: [{type: Hostname, value: edge.example.net}]
  conditions:
  - {type: Accepted, status: "True", reason: Accepted, observedGeneration: 2}
  - {type: Programmed, status: "True", reason: Programmed, observedGeneration: 2}
  listeners:
  - name: web
    attachedRoutes: 1
    conditions:
    - {type: Conflicted, status: "False", reason: NoConflicts, observedGeneration: 2}
    - {type: ResolvedRefs, status: "True", reason: ResolvedRefs, observedGeneration: 2}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop, generation: 1}
spec:
  parentRefs: [{name: edge, namespace: infra}]
  hostnames: [app.example.com]
  rules: [{backendRefs: [{name: web, port: 80}]}]
status:
  parents:
  - parentRef: {name: edge, namespace: infra}
    controllerName: example.org/controller
    conditions:
    - {type: Accepted, status: "True", reason: Accepted, observedGeneration: 1}
    - {type: ResolvedRefs, status: "True", reason: ResolvedRefs, observedGeneration: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
endpoints:
- {addresses: [10.0.0.1], conditions: {ready: true}}
- {addresses: [10.0.0.2], conditions: {ready: false}}
`
	serviceRoot = `zone .
. 60 NS a.root.
. 60 SOA a.root. hostmaster.root. 1 7200 3600 1209600 60
a.root. 60 A 198.41.0.4
com. 60 NS a.gtld.com.
a.gtld.com. 60 A 192.5.6.30
net. 60 NS a.gtld.net.
a.gtld.net. 60 A 192.5.6.31
`
	serviceTLD = `zone TLD.
TLD. 60 SOA a.gtld.TLD. hostmaster.gtld.TLD. 1 7200 3600 1209600 900
TLD. 60 NS a.gtld.TLD.
a.gtld.TLD. 60 A ADDR
example.TLD. 3600 NS ns1.example.TLD., ns2.example.TLD.
ns1.example.TLD. 3600 A GLUE1
ns2.example.TLD. 3600 A GLUE2
`
	serviceZone = `zone example.com.
example.com. 3600 SOA ns1.example.com. hostmaster.example.com. 2026010101 7200 3600 1209600 300
example.com. 3600 NS ns1.example.com., ns2.example.com.
ns1.example.com. 3600 A 93.184.1.1
ns2.example.com. 3600 A 23.192.1.1
app.example.com. 300 CNAME edge.example.net.
_token.app.example.com. 300 TXT "a1b2c3d4e5"
`
	targetZone = `zone example.net.
example.net. 3600 SOA ns1.example.net. hostmaster.example.net. 7 7200 3600 1209600 300
example.net. 3600 NS ns1.example.net., ns2.example.net.
ns1.example.net. 3600 A 93.184.2.1
ns2.example.net. 3600 A 23.192.2.1
edge.example.net. 60 A 93.184.9.1
edge.example.net. 60 AAAA 2606:2800:9::1
`
)

// scenario is a service with one change.
type scenario struct {
	name    string
	objects []string // pairs: text to replace, and its replacement
	zone    []string // pairs for the zone of the hostname
	target  []string // pairs for the zone of the target
	web     func(*website)
	host    string // default app.example.com
	proof   bool
	want    string // the ID of the finding that breaks the first link; empty: none
	link    explain.ServiceLink
	words   string // part of the words of that finding
}

// website is the server behind the addresses of the service.
type website struct {
	names     []string // of the certificate; nil: no TLS
	subject   string
	until     time.Duration
	untrusted bool
	status    int
	body      string
	location  string
	dead      []string // addresses that refuse connections
	ca, other *authority
}

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test CA"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10000 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// pool returns a pool with the certificate of the authority.
func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// issue returns a certificate of the website.
func (w *website) issue() (tls.Certificate, error) {
	by := w.ca
	if w.untrusted {
		by = w.other
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: w.subject}, DNSNames: w.names,
		NotBefore: time.Now().Add(-100 * time.Hour), NotAfter: time.Now().Add(w.until)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, by.cert, by.key.Public(), by.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: by.key}, err
}

// connect opens a connection to the website in memory.
func (w *website) connect(ctx context.Context, _, address string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	if slices.Contains(w.dead, at.Addr().String()) {
		return nil, syscall.ECONNREFUSED
	}
	cert, err := w.issue()
	if err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	go func() {
		defer func() { _ = server.Close() }()
		c := tls.Server(server, &tls.Config{Certificates: []tls.Certificate{cert}})
		if c.HandshakeContext(ctx) != nil {
			return
		}
		w.reply(c)
	}()
	return client, nil
}

// reply answers one request.
func (w *website) reply(c net.Conn) {
	buffer := make([]byte, 4096)
	if n, err := c.Read(buffer); err != nil || !bytes.Contains(buffer[:n], []byte("Host: app")) &&
		!bytes.Contains(buffer[:n], []byte("Host: example.com")) && !bytes.Contains(buffer[:n], []byte("Host: ")) {
		return
	}
	r := http.Response{StatusCode: w.status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Close: true,
		Body: io.NopCloser(strings.NewReader(w.body)), ContentLength: int64(len(w.body))}
	if w.location != "" {
		r.Header.Set("Location", w.location)
	}
	_ = r.Write(c)
}

// judge returns the report of a scenario.
func (s scenario) judge(t *testing.T) *report.Report {
	t.Helper()
	tld := func(name, addr, one, two string) string {
		return strings.NewReplacer("TLD", name, "ADDR", addr, "GLUE1", one, "GLUE2", two).Replace(serviceTLD)
	}
	network := simnet.New(1)
	network.MustServer("198.41.0.4", serviceRoot)
	network.MustServer("192.5.6.30", tld("com", "192.5.6.30", "93.184.1.1", "23.192.1.1"))
	network.MustServer("192.5.6.31", tld("net", "192.5.6.31", "93.184.2.1", "23.192.2.1"))
	for _, addr := range []string{"93.184.1.1", "23.192.1.1"} {
		network.MustServer(addr, replaced(t, serviceZone, s.zone))
	}
	for _, addr := range []string{"93.184.2.1", "23.192.2.1"} {
		network.MustServer(addr, replaced(t, targetZone, s.target))
	}
	web := &website{names: []string{"*.example.com", "example.com"}, subject: "example.com", until: 1000 * time.Hour,
		status: 200, body: "hello", ca: newCA(t), other: newCA(t)}
	if s.web != nil {
		s.web(web)
	}
	objects, err := service.Parse(strings.NewReader(replaced(t, serviceObjects, s.objects)))
	if err != nil {
		t.Fatal(err)
	}
	g := gather.Gatherer{Exchanger: network, Anchors: []secure.Anchor{}, Connect: web.connect, Roots: web.ca.pool(),
		Hints:   []iterate.Host{{Name: dnsname.MustParse("a.root."), Glue: []netip.Addr{netip.MustParseAddr("198.41.0.4")}}},
		Options: gather.Options{Seed: 1, Rate: 1000}}
	host := s.host
	if host == "" {
		host = "app.example.com"
	}
	proof := ""
	if s.proof {
		proof = "_token." + host + "=a1b2c3d4e5"
	}
	in, err := gather.ParseService(host, "", proof, objects)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := g.Service(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return replayed(t, facts)
}

// replayed returns the report, and checks that saved facts give the same one.
func replayed(t *testing.T, facts *explain.Facts) *report.Report {
	t.Helper()
	var file, live, again bytes.Buffer
	if err := gather.Save(&file, facts); err != nil {
		t.Fatal(err)
	}
	saved, err := gather.LoadAll(&file)
	if err != nil || len(saved) != 1 {
		t.Fatalf("LoadAll: %d, %v", len(saved), err)
	}
	r := report.Make(facts, check.Run(facts))
	if err := errors.Join(r.JSON(&live), report.Make(saved[0], check.Run(saved[0])).JSON(&again)); err != nil {
		t.Fatal(err)
	}
	if live.String() != again.String() {
		t.Error("the recording gives another report")
	}
	return r
}

// replaced replaces texts that must be there.
func replaced(t *testing.T, text string, pairs []string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the text has no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// TestServiceFaults checks that the first broken link of every single fault is named, and nothing is reported as wrong
// after it.
func TestServiceFaults(t *testing.T) {
	all := scenarios()
	right := 0
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := s.judge(t)
				var broken explain.ServiceLink
				var words string
				for _, l := range r.Links {
					if l.State == "broken" {
						broken, words = l.Link, l.Words
						break
					}
				}
				var found []string
				for _, f := range r.Findings {
					if f.Status == explain.Fail && f.Severity.AtLeast(explain.Error) {
						found = append(found, f.ID)
						if explain.ServiceLinkOf(f.ID).After(s.link) {
							t.Errorf("%s after the broken link: %s", f.ID, f.Words)
						}
					}
				}
				if broken != s.link || !slices.Contains(found, s.want) || !strings.Contains(textOf(r, s.want), s.words) {
					t.Errorf("broken at %q by %v: %s; want %s at %s with %q", broken, found, words, s.want, s.link, s.words)
					return
				}
				right++
			})
		})
	}
	t.Logf("%d of %d", right, len(all))
}

// textOf returns the words of the failures of a check.
func textOf(r *report.Report, id string) (out string) {
	for _, f := range r.Findings {
		if f.ID == id && f.Status == explain.Fail {
			out += f.Words + " "
		}
	}
	return out
}

// TestServiceHealthy checks 200 different healthy services: every combination of four zones, seven sets of objects and
// five websites, and some of them with a proof of ownership. None has a finding above notice.
func TestServiceHealthy(t *testing.T) {
	const cname = "app.example.com. 300 CNAME edge.example.net."
	zones := [][]string{
		nil,
		{"CNAME edge.example.net.", "CNAME Edge.Example.NET."},
		{cname, "app.example.com. 300 CNAME www.example.com.\nwww.example.com. 300 CNAME edge.example.net."},
		{cname, "app.example.com. 300 A 93.184.9.1\napp.example.com. 300 AAAA 2606:2800:9::1"},
	}
	objects := [][]string{
		nil,
		{`hostname: "*.example.com"`, "hostname: app.example.com"},
		{`    hostname: "*.example.com"` + "\n", ""},
		{"{from: All}", "{from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: shop}}}"},
		{"hostnames: [app.example.com]", "hostnames: [app.example.com, other.example.org]"},
		{"{type: Hostname, value: edge.example.net}",
			`{type: IPAddress, value: 93.184.9.1}, {type: IPAddress, value: "2606:2800:9::1"}`},
		{"name: edge, namespace: infra, generation: 2}", "name: edge, namespace: infra, generation: 2, " +
			"annotations: {external-dns.alpha.kubernetes.io/target: edge.example.net}}"},
	}
	websites := []func(*website){
		nil,
		func(w *website) { w.status, w.location, w.body = 302, "https://app.example.com/login", "" },
		func(w *website) { w.status, w.body = 401, "" },
		func(w *website) { w.names = []string{"app.example.com"} },
		func(w *website) { w.until = 20 * 24 * time.Hour },
	}
	for i := range 200 {
		s := scenario{name: fmt.Sprint(i), zone: zones[i%4], objects: objects[i/4%7], web: websites[i/28%5], proof: i >= 140}
		t.Run(s.name, s.isHealthy)
	}
}

// TestServiceUnusual checks healthy services that cannot be combined with others.
func TestServiceUnusual(t *testing.T) {
	for _, s := range []scenario{
		{name: "a wildcard record", zone: []string{"app.example.com. 300 CNAME", "*.example.com. 300 CNAME",
			`_token.app.example.com. 300 TXT "a1b2c3d4e5"`, ""}}, // a name below would hide the wildcard
		{name: "a reason that is not in the specification", objects: []string{"reason: Accepted}]}", "reason: Handled}]}"}},
		{name: "a backend of another namespace", objects: []string{"[{name: web, port: 80}]",
			"[{name: web, namespace: other, port: 80}]", "name: web, namespace: shop}\nspec: {ports",
			"name: web, namespace: other}\nspec: {ports", "name: web-1, namespace: shop", "name: web-1, namespace: other",
			"apiVersion: v1\nkind: Service", `apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: shop, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}]
  to: [{group: "", kind: Service}]
---
apiVersion: v1
kind: Service`}},
		{name: "a wildcard hostname", host: "*.example.com", objects: []string{"hostnames: [app.example.com]",
			`hostnames: ["*.example.com"]`}, zone: []string{"app.example.com. 300 CNAME", "*.example.com. 300 CNAME"}},
		{name: "the apex", host: "example.com", objects: []string{`hostname: "*.example.com"`, "hostname: example.com",
			"hostnames: [app.example.com]", "hostnames: [example.com]"},
			zone: []string{"app.example.com. 300 CNAME edge.example.net.",
				"example.com. 300 A 93.184.9.1\nexample.com. 300 AAAA 2606:2800:9::1"}},
	} {
		t.Run(s.name, s.isHealthy)
	}
}

// isHealthy checks that a service works and has no finding above notice.
func (s scenario) isHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := s.judge(t)
		for _, f := range r.Findings {
			if f.Status == explain.Fail && f.Severity.AtLeast(explain.Warning) {
				t.Errorf("%s %s: %s", f.Severity, f.ID, f.Words)
			}
		}
		if r.Verdict != report.Working {
			t.Errorf("%s", r.Summary)
		}
	})
}
