package daemon

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/store"
)

// server is a running server on loopback with all its listeners.
type server struct {
	*Daemon
	t     *testing.T
	admin string
	log   *lockedBuffer
	stop  context.CancelFunc
	ended chan error
}

type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// localConfig returns a configuration that listens only on free ports of loopback.
func localConfig(t *testing.T) config.Config {
	c := config.Default()
	c.Data, c.User = t.TempDir(), "root" // the test must not change its user
	c.DNS.Listen = []string{"127.0.0.1:0"}
	c.HTTP.Listen, c.Apps.Listen, c.MEP.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.Webhook.Listen = "127.0.0.1:0"
	return c
}

func openServer(t *testing.T, change func(*config.Config)) *server {
	t.Helper()
	c := localConfig(t)
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	h := &server{t: t, log: new(lockedBuffer), ended: make(chan error, 1)}
	load := func() (config.Config, error) { return c, nil }
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d, err := Open(t.Context(), Options{Config: c, Load: load, Log: log, Level: new(slog.LevelVar)})
	if err != nil {
		t.Fatal(err)
	}
	h.Daemon = d
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() { h.ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-h.ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	b, err := os.ReadFile(filepath.Join(c.Data, access.AdminFile))
	if err != nil {
		t.Fatal(err)
	}
	h.admin = strings.TrimSpace(string(b))
	return h
}

func (h *server) token(role, app string) string {
	h.t.Helper()
	text, _, err := h.access.CreateToken(context.Background(), store.Actor{Who: "test"},
		access.TokenSpec{Name: "t", Project: "admin", Role: role, App: app})
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}

var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: 10 * time.Second}}

// call sends a request and returns the status and the body, or the error of the connection.
func (h *server) call(cl *http.Client, base, method, path, token, body string) (int, string) {
	h.t.Helper()
	req, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if len(body) > 64<<10 {
		req.Header.Set("Expect", "100-continue") // the server may refuse and close the connection before the body is sent
	}
	res, err := cl.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

const someRule = `{"dnsRuleId":"one","domainName":"camera.example.com","ipAddressType":"IP_V4",` +
	`"ipAddress":"192.0.2.10","ttl":60,"state":"ACTIVE"}`

// addRule creates a rule of app-1, as the platform does.
func (h *server) addRule() {
	h.t.Helper()
	if code, body := h.call(plain, h.Endpoints().HTTP, "POST", "/mep/config/app-1/dns_rules", h.admin,
		someRule); code/100 != 2 {
		h.t.Fatalf("create a rule: %d %s", code, body)
	}
}

type headerTransport map[string]string

func (h headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h {
		r.Header.Set(k, v)
	}
	return plain.Transport.RoundTrip(r)
}

// authority issues certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = nil, nil
	_, _, a.cert, a.key = a.issue(name, true)
	return a
}

// issue issues a certificate for 127.0.0.1 and for clients. It returns the files of the certificate and of its key.
func (a *authority) issue(name string, ca bool) (certFile, keyFile string, cert *x509.Certificate,
	key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		IsCA:                  ca,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	cert, err = x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return certFile, keyFile, cert, key
}

// client returns a client that trusts the authority and presents one of its certificates, or none.
func (a *authority) client(name string) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	c := &tls.Config{RootCAs: roots}
	if name != "" {
		cert, key, _, _ := a.issue(name, false)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			a.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

// TestCloseWithoutRun closes a server like Open does when one of its later steps fails.
func TestCloseWithoutRun(t *testing.T) {
	d, err := Open(t.Context(), Options{Config: localConfig(t), Log: slog.New(slog.DiscardHandler),
		Level: new(slog.LevelVar)})
	if err != nil {
		t.Fatal(err)
	}
	addrs := d.Endpoints().DNS
	for _, s := range d.open() {
		addrs = append(addrs, s.Addr().String())
	}
	d.close()
	for _, addr := range addrs {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("%s is still open", addr)
		}
	}
}
