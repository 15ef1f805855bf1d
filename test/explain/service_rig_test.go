package explain_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
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
	second  []string // pairs for its second server, after zone
	target  []string // pairs for the zone of the target
	web     func(*website)
	host    string // default app.example.com
	proof   bool
	token   string   // URL=TEXT
	ns      []string // nameservers that prove the ownership
	input   func(*gather.ServiceInput)
	options func(*gather.Options)

	gatherer func(*gather.Gatherer)

	want  string              // the ID of the finding that breaks the first link
	also  string              // the ID of another finding with the same cause
	link  explain.ServiceLink // empty: the finding breaks no link
	words string              // part of the words of that finding
}

// website is the server behind the addresses of the service.
type website struct {
	names     []string // of the certificate; nil: no TLS
	subject   string
	issuer    string // the organization of the CA
	until     time.Duration
	untrusted bool
	oldTLS    bool
	noHTTP2   bool
	page                      // over HTTPS
	plain     page            // over HTTP, on port 80
	elsewhere map[string]page // pages by address, instead of page
	dead      []string        // addresses, or addresses with ports, that refuse connections

	ca, stranger *authority // clients trust only the first
}

// page is a reply of a website.
type page struct {
	status                 int
	body, location, server string
}

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T, organization string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		Subject:   pkix.Name{CommonName: "Test CA", Organization: []string{organization}},
		NotBefore: time.Now().Add(-200 * time.Hour), NotAfter: time.Now().Add(10000 * time.Hour)}
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
		by = w.stranger
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: w.subject}, DNSNames: w.names,
		NotBefore: time.Now().Add(-100 * time.Hour), NotAfter: time.Now().Add(w.until)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, by.cert, by.key.Public(), by.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: by.key}, err
}

// config returns the TLS settings of the website.
func (w *website) config() (*tls.Config, error) {
	cert, err := w.issue()
	c := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}
	if w.noHTTP2 {
		c.NextProtos = nil
	}
	if w.oldTLS {
		c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	}
	return c, err
}

// connect opens a connection to the website in memory.
func (w *website) connect(ctx context.Context, _, address string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	if slices.Contains(w.dead, at.Addr().String()) || slices.Contains(w.dead, at.String()) {
		return nil, syscall.ECONNREFUSED
	}
	config, err := w.config()
	if err != nil {
		return nil, err
	}
	reply, ok := w.elsewhere[at.Addr().String()]
	if !ok {
		reply = w.page
	}
	client, server := net.Pipe()
	go func() {
		defer func() { _ = server.Close() }()
		if at.Port() == 80 {
			w.plain.write(server)
			return
		}
		if c := tls.Server(server, config); c.HandshakeContext(ctx) == nil {
			reply.write(c)
		}
	}()
	return client, nil
}

// write reads one request and answers it.
func (p page) write(c net.Conn) {
	buffer := make([]byte, 4096)
	if n, err := c.Read(buffer); err != nil || !bytes.Contains(buffer[:n], []byte("Host: ")) {
		return
	}
	r := http.Response{StatusCode: p.status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Close: true,
		Body: io.NopCloser(strings.NewReader(p.body)), ContentLength: int64(len(p.body))}
	if p.location != "" {
		r.Header.Set("Location", p.location)
	}
	if p.server != "" {
		r.Header.Set("Server", p.server)
	}
	_ = r.Write(c)
}

// internet returns the DNS servers of a scenario.
func (s scenario) internet(t *testing.T) *simnet.Net {
	t.Helper()
	tld := func(name, addr, one, two string) string {
		return strings.NewReplacer("TLD", name, "ADDR", addr, "GLUE1", one, "GLUE2", two).Replace(serviceTLD)
	}
	network := simnet.New(1)
	network.MustServer("198.41.0.4", serviceRoot)
	network.MustServer("192.5.6.30", tld("com", "192.5.6.30", "93.184.1.1", "23.192.1.1"))
	network.MustServer("192.5.6.31", tld("net", "192.5.6.31", "93.184.2.1", "23.192.2.1"))
	zone := replaced(t, serviceZone, s.zone)
	network.MustServer("93.184.1.1", zone)
	network.MustServer("23.192.1.1", replaced(t, zone, s.second))
	for _, addr := range []string{"93.184.2.1", "23.192.2.1"} {
		network.MustServer(addr, replaced(t, targetZone, s.target))
	}
	return network
}

// website returns the web server of a scenario.
func (s scenario) website(t *testing.T) *website {
	t.Helper()
	w := &website{names: []string{"*.example.com", "example.com"}, subject: "example.com", until: 1000 * time.Hour,
		issuer: "Test", page: page{status: 200, body: "hello"},
		plain: page{status: 301, location: "https://app.example.com/"}}
	if s.web != nil {
		s.web(w)
	}
	w.ca, w.stranger = newCA(t, w.issuer), newCA(t, "Nobody")
	return w
}

// serviceHints are the root servers of a scenario.
var serviceHints = []iterate.Host{{Name: dnsname.MustParse("a.root."),
	Glue: []netip.Addr{netip.MustParseAddr("198.41.0.4")}}}

// judge returns the report of a scenario.
func (s scenario) judge(t *testing.T) *report.Report {
	t.Helper()
	return replayed(t, s.gather(t, s.internet(t)))
}

// gather returns the facts of a scenario.
func (s scenario) gather(t *testing.T, network *simnet.Net) *explain.Facts {
	t.Helper()
	web := s.website(t)
	objects, err := service.Parse(strings.NewReader(replaced(t, serviceObjects, s.objects)))
	if err != nil {
		t.Fatal(err)
	}
	g := gather.Gatherer{Exchanger: network, Anchors: []secure.Anchor{}, Connect: web.connect, Roots: web.ca.pool(),
		Hints: serviceHints, Options: gather.Options{Seed: 1, Rate: 1000}}
	if s.options != nil {
		s.options(&g.Options)
	}
	if s.gatherer != nil {
		s.gatherer(&g)
	}
	host := cmp.Or(s.host, "app.example.com")
	proof := ""
	if s.proof {
		proof = "_token." + host + "=a1b2c3d4e5"
	}
	in, err := gather.ParseService(host, "", proof, objects)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.ParseProofs(s.token, s.ns); err != nil {
		t.Fatal(err)
	}
	if s.input != nil {
		s.input(&in)
	}
	facts, err := g.Service(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return facts
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
