package boulder

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/jmhodges/clock"
	"github.com/letsencrypt/boulder/bdns"
	corepb "github.com/letsencrypt/boulder/core/proto"
	blog "github.com/letsencrypt/boulder/log"
	"github.com/letsencrypt/boulder/va"
	vapb "github.com/letsencrypt/boulder/va/proto"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
)

// Addresses of the internet of a case.
const (
	root     = "198.41.0.4"
	resolver = "93.184.0.53" // the recursive resolver of the CA
	address  = "93.184.9.1"  // of all hosts
)

// internet returns the DNS servers of a case.
func internet(zone, edge string) *simnet.Net {
	network := simnet.New(1)
	network.MustServer(root, `zone .
. 60 SOA a.root. hostmaster.root. 1 7200 3600 1209600 60
. 60 NS a.root.
a.root. 60 A `+root+`
com. 60 NS a.gtld.net.
net. 60 NS a.gtld.net.
a.gtld.net. 60 A 192.5.6.30`)
	network.MustServer("192.5.6.30", `zone com.
com. 60 SOA a.gtld.net. hostmaster.gtld.net. 1 7200 3600 1209600 60
com. 60 NS a.gtld.net.
example.com. 60 NS ns1.example.net., ns2.example.net.
zone net.
net. 60 SOA a.gtld.net. hostmaster.gtld.net. 1 7200 3600 1209600 60
net. 60 NS a.gtld.net.
a.gtld.net. 60 A 192.5.6.30
example.net. 60 NS ns1.example.net., ns2.example.net.
ns1.example.net. 60 A 93.184.1.1
ns2.example.net. 60 A 23.192.1.1`)
	if edge != "" {
		edge = "edge.example.net. 60 " + edge
	}
	for _, a := range []string{"93.184.1.1", "23.192.1.1"} {
		network.MustServer(a, `zone example.net.
example.net. 60 SOA ns1.example.net. hostmaster.example.net. 1 7200 3600 1209600 60
example.net. 60 NS ns1.example.net., ns2.example.net.
ns1.example.net. 60 A 93.184.1.1
ns2.example.net. 60 A 23.192.1.1
edge.example.net. 60 A `+address+"\n"+edge+`
zone example.com.
example.com. 60 SOA ns1.example.net. hostmaster.example.net. 1 7200 3600 1209600 60
example.com. 60 NS ns1.example.net., ns2.example.net.
app.example.com. 60 A `+address+`
*.example.com. 60 A `+address+"\n"+zone)
	}
	network.MustServer(resolver, "resolve "+root)
	return network
}

// letsEncrypt returns why Let's Encrypt does not issue a certificate for a host name; "" if it does. Boulder queries a
// recursive resolver over HTTPS.
func letsEncrypt(t *testing.T, network *simnet.Net, host string) string {
	t.Helper()
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := new(dns.Msg)
		if body, err := io.ReadAll(io.LimitReader(r.Body, 4096)); err != nil || query.Unpack(body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		reply, err := network.Exchange(r.Context(), resolve.Server{Addr: netip.MustParseAddrPort(resolver + ":53")}, query)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		out, err := reply.Pack()
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/dns-message")
		_, _ = w.Write(out)
	}))
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	roots := x509.NewCertPool()
	roots.AddCert(front.Certificate())
	servers, err := bdns.NewStaticProvider([]string{front.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	audit := blog.NewMock()
	client := bdns.New(10*time.Second, servers, prometheus.NewRegistry(), clock.New(), 1, "", audit,
		&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	authority, err := va.NewValidationAuthorityImpl(client, nil, "", "letsencrypt.org", prometheus.NewRegistry(),
		clock.New(), audit, []string{"https://acme-v02.api.letsencrypt.org/acme/acct/"}, "test", "",
		func(netip.Addr) error { return nil }, time.Second, false, nil, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	result, err := authority.DoCAA(t.Context(), &vapb.IsCAAValidRequest{
		Identifier:       &corepb.Identifier{Type: "dns", Value: host},
		ValidationMethod: "dns-01", AccountURIID: 1, AuthzID: 1})
	if err != nil {
		t.Fatal(err)
	}
	return result.GetProblem().GetDetail()
}

// findings returns the results of all checks of a service whose certificate is from Let's Encrypt.
func findings(t *testing.T, network *simnet.Net, host string) []explain.Finding {
	t.Helper()
	connect, roots := website(t, "example.com", "*.example.com")
	g := gather.Gatherer{Exchanger: network, Anchors: []secure.Anchor{}, Connect: connect, Roots: roots,
		Hints: []iterate.Host{{Name: dnsname.MustParse("a.root."), Glue: []netip.Addr{netip.MustParseAddr(root)}}},
		Options: gather.Options{Seed: 1, Rate: 1000, Timeouts: []time.Duration{500 * time.Millisecond,
			500 * time.Millisecond}}}
	in, err := gather.ParseService(host, address, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := g.Service(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return check.Run(facts)
}

// website starts a web server with a certificate of a CA that is called Let's Encrypt. It returns a dialer that leads
// every address to it, and the CA.
func website(t *testing.T, names ...string) (gather.Dial, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		Subject:   pkix.Name{CommonName: "R1", Organization: []string{"Let's Encrypt"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10000 * time.Hour)}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(2000 * time.Hour)}
	root, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if ca, err = x509.ParseCertificate(root); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion: tls.VersionTLS12}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the scan closes a connection after its handshake
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}, roots
}
