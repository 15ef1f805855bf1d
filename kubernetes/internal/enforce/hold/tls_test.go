package hold

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// authority signs certificates into files.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.make("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	return a
}

func (a *authority) make(name string, c, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.Subject = pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".crt", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", private)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// files are those of a side that has a certificate of a name, and expects one of peer.
func (a *authority) files(name, peer string) Files {
	a.t.Helper()
	a.make(name, &x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.cert, a.key)
	at := func(s string) string { return filepath.Join(a.dir, s) }
	return Files{Cert: at(name + ".crt"), Key: at(name + ".key"), CA: at("ca.crt"), Peers: []string{peer}}
}

// TestTLS: who may speak with an agent, and with whom a plugin speaks.
func TestTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	server := ours.files(AgentName, PluginName)
	conf, err := server.Server()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := Serve(ctx, ln, conf, newSwitchboard("10.1.0.0/24")); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })

	changed := func(change func(*tls.Config)) Dial {
		cert, pool, err := ours.files(PluginName, AgentName).load()
		if err != nil {
			t.Fatal(err)
		}
		c := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, ServerName: AgentName}
		change(c)
		return func(ctx context.Context, endpoint string) (net.Conn, error) {
			return (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", endpoint)
		}
	}
	mixed := ours.files(PluginName, AgentName)
	mixed.CA = filepath.Join(others.dir, "ca.crt")
	tests := []struct {
		name string
		dial Dial
		ok   bool
	}{
		{"plugin", ours.files(PluginName, AgentName).Dial, true},
		{"certificate of another name", ours.files("kubelet", AgentName).Dial, false},
		{"certificate of another authority", others.files(PluginName, AgentName).Dial, false},
		{"agent of another authority", mixed.Dial, false},
		{"agent of another name", ours.files(PluginName, "other").Dial, false},
		{"plugin of the test", changed(func(*tls.Config) {}), true},
		{"no certificate", changed(func(c *tls.Config) { c.Certificates = nil }), false},
		{"TLS 1.2", changed(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), false},
		{"no files", Files{Cert: "no", Key: "no", CA: "no", Peers: []string{AgentName}}.Dial, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := tt.dial.Explain(ctx, ln.Addr().String(), "*.example.com.", netip.MustParseAddr("192.0.2.1"))
			if (err == nil) != tt.ok {
				t.Errorf("Explain = %v", err)
			}
		})
	}
}

// TestRenewedFiles: certificates that are replaced in place are used without a restart.
func TestRenewedFiles(t *testing.T) {
	a := newAuthority(t)
	conf, err := a.files(AgentName, PluginName).Server()
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string {
		c, err := conf.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.String()
	}
	was := serial()
	a.files(AgentName, PluginName)
	if serial() == was {
		t.Error("the old certificate is still in use")
	}
}
