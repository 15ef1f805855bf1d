// Package encrypted tests DNS over TLS, HTTPS and QUIC, transfers over TLS and the PROXY protocol, with dig, kdig,
// BIND, NSD and dnsdist.
//
// Start with start in this file: it starts a server with all these listeners and a CA of its own.
package encrypted

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/peers"
	"github.com/nameplane/nameplane/test/server"
)

const (
	apex   = "example.org."
	www    = "www." + apex
	poolID = "794ccc2c-d751-44fe-b57f-8894c9f5c842"

	primaryName   = "ns1.example.org" // in the certificate of the server
	secondaryName = "ns2.example.org" // in the certificate of a secondary
)

var key = peers.Key{Name: "transfer.example.", Secret: "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzISEhIQ=="}

// programs are the programs that the tests run.
var programs = need.Programs{"dig": "bind9-dnsutils", "kdig": "knot-dnsutils", "nsupdate": "bind9-dnsutils",
	"named": "bind9", "nsd": "nsd", "dnsdist": "dnsdist"}

func TestMain(m *testing.M) {
	if err := need.Missing(programs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// authority is a CA whose certificates are in files.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its own certificate
}

// pair names the files of a certificate and its key.
type pair struct{ cert, key string }

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: server.Dir(t)}
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.key, a.file = k, filepath.Join(a.dir, "ca.pem")
	a.cert = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}, k, a.file)
	return a
}

// sign signs a certificate and writes it to a file. The CA signs itself as long as it has no certificate.
func (a *authority) sign(c *x509.Certificate, k *ecdsa.PrivateKey, file string) *x509.Certificate {
	a.t.Helper()
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	c.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<60))
	parent := a.cert
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(file, "CERTIFICATE", der)
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed
}

// write writes a PEM file that a server can read after it dropped root.
func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := errors.Join(os.WriteFile(file+".new", text, 0o644), os.Rename(file+".new", file)); err != nil {
		a.t.Fatal(err)
	}
}

// issue writes a certificate for a name and for 127.0.0.1, and its key. A second call with the same name replaces both.
func (a *authority) issue(name string) pair {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	p := pair{filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(p.key, "PRIVATE KEY", der)
	a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, k, p.cert)
	return p
}

// client returns the TLS configuration of a client that trusts the CA, with a certificate if p is not zero.
func (a *authority) client(p pair, protocols ...string) *tls.Config {
	a.t.Helper()
	c := &tls.Config{ServerName: primaryName, RootCAs: x509.NewCertPool(), NextProtos: protocols}
	c.RootCAs.AddCert(a.cert)
	if p != (pair{}) {
		own, err := tls.LoadX509KeyPair(p.cert, p.key)
		if err != nil {
			a.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c
}

// node is a server with a zone and certificates.
type node struct {
	*server.Server
	t    *testing.T
	ca   *authority
	own  pair
	zone string // path of example.org in the API
}

// start starts a server with a listener of each kind. more is YAML that is appended to its configuration; dns has
// settings of the section dns.
func start(t *testing.T, dns, more string) *node {
	t.Helper()
	n := &node{t: t, ca: newAuthority(t)}
	n.own = n.ca.issue(primaryName)
	n.Server = server.Start(t, server.Options{Config: n.config(dns, more)})
	n.zone = n.CreateZone(apex)
	n.put("www", "A", "192.0.2.1")
	return n
}

func (n *node) config(dns, more string) string {
	more = strings.ReplaceAll(more, "CA", n.ca.file)
	return fmt.Sprintf(`log: {level: debug}
http: {listen: '127.0.0.1:0'}
dns:
  listen: ['127.0.0.1:0', 'proxy://127.0.0.1:0']
  tls: ['127.0.0.1:0', 'proxy://127.0.0.1:0']
  https: ['127.0.0.1:0']
  quic: ['127.0.0.1:0']
  cert: %s
  key: %s
  proxies: [127.0.0.1]
%s%s`, n.own.cert, n.own.key, dns, more)
}

// put sets the data of a record set.
func (n *node) put(name, typ string, data ...string) {
	n.t.Helper()
	n.Run(append([]string{"record", "set", apex, name, typ}, data...)...)
}

// fill adds enough records that a transfer has several messages.
func (n *node) fill() {
	n.t.Helper()
	text := strings.Repeat("x", 200)
	for i := range 100 {
		n.put(fmt.Sprintf("n%d", i), "TXT", fmt.Sprintf("%q", text))
	}
}

// createKey creates a TSIG key for all zones.
func (n *node) createKey(k peers.Key) {
	n.t.Helper()
	n.Must(http.MethodPost, "/v2/tsigkeys", map[string]any{"name": k.Name, "algorithm": "hmac-sha256",
		"secret": k.Secret, "scope": "POOL", "resource_id": poolID}, nil)
}

// run runs a DNS client with an address of the server, and returns what it prints.
func run(program, addr string, args ...string) string {
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(addr, "proxy://"))
	out, _ := exec.Command(program, append([]string{"@" + host, "-p", port, "+timeout=5", "+retry=0"},
		args...)...).CombinedOutput()
	return string(out)
}

// expect fails the test unless text contains all words, and none that begins with "!".
func expect(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		without, not := strings.CutPrefix(w, "!")
		if strings.Contains(text, without) == not {
			t.Errorf("want %q in:\n%s", w, text)
		}
	}
}

func serial(addr string) uint32 {
	r, err := server.Ask(addr, apex, dns.TypeSOA)
	if err != nil || len(r.Answer) != 1 {
		return 0
	}
	if soa, ok := r.Answer[0].(*dns.SOA); ok {
		return soa.Serial
	}
	return 0
}
