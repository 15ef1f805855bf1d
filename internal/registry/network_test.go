package registry_test

import (
	"bufio"
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
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/registry"
)

// network has the servers of registries in memory, by host name. In a synctest bubble its time is fake.
type network struct {
	t      *testing.T
	web    map[string]http.HandlerFunc
	whois  map[string]func(query string, w io.Writer)
	addr   map[string]string // addresses of hosts that are not on loopback
	client *registry.Client

	mu    sync.Mutex // guards dials
	dials []string
}

// newNetwork returns a network with IANA's two servers. They list one registry for com, net and org, which has no
// servers yet.
func newNetwork(t *testing.T) *network {
	w := &network{t: t, addr: map[string]string{}, web: map[string]http.HandlerFunc{
		"data.iana.org": func(rw http.ResponseWriter, _ *http.Request) {
			io.WriteString(rw,
				`{"version":"1.0","services":[[["com","net","org"],`+
					`["http://rdap.registry.example/insecure/","https://rdap.registry.example/v1"]]]}`)
		},
	}, whois: map[string]func(string, io.Writer){
		"whois.iana.org": func(q string, w io.Writer) {
			fmt.Fprintf(w, "%% IANA WHOIS server\r\n\r\nrefer:        whois.registry.example\r\n\r\ndomain:       %s\r\n"+
				"\r\nwhois:        whois.registry.example\r\n", strings.ToUpper(q))
		},
	}}
	// Pipes have no buffer: if both ends send close_notify at once, they block until crypto/tls gives up after 5 s.
	t.Cleanup(func() { time.Sleep(time.Minute) })
	w.client = &registry.Client{Dial: w.dial, Roots: authority(t).pool, Allow: netip.Addr.IsLoopback}
	return w
}

func (w *network) lookup(name string) registry.Registration {
	w.t.Helper()
	return find(w.t, w.client, name)
}

func find(t *testing.T, c *registry.Client, name string) registry.Registration {
	t.Helper()
	r, err := c.Lookup(t.Context(), dnsname.MustParse(name))
	if err != nil {
		t.Error(err)
	}
	return r
}

// serve replies with a status and a body for any path.
func serve(status int, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/rdap+json")
		rw.WriteHeader(status)
		io.WriteString(rw, body)
	}
}

func say(text string) func(string, io.Writer) {
	return func(_ string, w io.Writer) { io.WriteString(w, text) }
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (w *network) dial(_ context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.dials = append(w.dials, address)
	w.mu.Unlock()
	ours, theirs := net.Pipe()
	addr := netip.MustParseAddrPort("127.0.0.1:" + port)
	if a := w.addr[host]; a != "" {
		addr = netip.MustParseAddrPort(net.JoinHostPort(a, port))
	}
	switch web, whois := w.web[host], w.whois[host]; {
	case web != nil && port == "443":
		go serveOne(tls.Server(theirs, authority(w.t).config()), web)
	case web != nil && port == "80":
		go serveOne(theirs, web)
	case whois != nil && port == "43":
		go func() {
			defer theirs.Close()
			q, _ := bufio.NewReader(theirs).ReadString('\n')
			whois(strings.TrimSuffix(q, "\r\n"), theirs)
		}()
	default:
		return nil, errors.New("connection refused")
	}
	return addressed{ours, net.TCPAddrFromAddrPort(addr)}, nil
}

// addressed is a connection with a TCP address.
type addressed struct {
	net.Conn
	remote net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.remote }

// serveOne serves one connection.
func serveOne(conn net.Conn, h http.Handler) {
	l := &oneListener{conn: make(chan net.Conn, 1), done: make(chan struct{})}
	l.conn <- conn
	s := http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			l.Close()
		}
	}}
	s.Serve(l)
}

type oneListener struct {
	conn chan net.Conn
	done chan struct{}
	once sync.Once
}

func (l *oneListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *oneListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *oneListener) Addr() net.Addr { return &net.TCPAddr{} }

// ca signs certificates for any host. They are also valid at the time of a synctest bubble.
type ca struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

var theCA = sync.OnceValues(func() (*ca, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &ca{key, cert, pool}, nil
})

func authority(t *testing.T) *ca {
	t.Helper()
	c, err := theCA()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *ca) config() *tls.Config {
	return &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(2), DNSNames: []string{h.ServerName}, NotBefore: c.cert.NotBefore,
			NotAfter: c.cert.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, c.cert, &c.key.PublicKey, c.key)
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: c.key}, err
	}}
}
