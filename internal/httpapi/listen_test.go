package httpapi_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/certs"
	"github.com/nameplane/nameplane/internal/httpapi"
)

func TestLoopbackRule(t *testing.T) {
	tests := []struct{ addr, want string }{
		{"127.0.0.1:0", ""},
		{"127.1.2.3:0", ""},
		{"localhost:0", ""},
		{"0.0.0.0:0", "without TLS"},
		{":0", "without TLS"},
		{"[::]:0", "without TLS"},
		{"192.0.2.1:8053", "apps"},
		{"example.org:80", "IP:PORT"},
		{"8053", "IP:PORT"},
	}
	for _, tt := range tests {
		t.Run(tt.addr, func(t *testing.T) {
			s, err := httpapi.Listen(httpapi.ListenConfig{Name: "apps", Addr: tt.addr}, http.NotFoundHandler())
			if tt.want == "" && err == nil {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := s.Run(ctx); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || tt.want == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Listen(%s) = %v, want %q", tt.addr, err, tt.want)
			}
		})
	}
}

// serve runs a server until the test ends.
func serve(t *testing.T, c httpapi.ListenConfig, h http.Handler) *httpapi.Server {
	t.Helper()
	c.Addr = "127.0.0.1:0"
	s, err := httpapi.Listen(c, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s
}

func TestShutdownFinishesRequests(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	s, err := httpapi.Listen(httpapi.ListenConfig{Addr: "127.0.0.1:0"},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- true
			<-release
			_, _ = io.WriteString(w, "done")
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, answer := make(chan error, 1), make(chan string, 1)
	go func() { ended <- s.Run(ctx) }()
	go func() {
		res, err := http.Get("http://" + s.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		answer <- string(b)
	}()
	<-entered
	cancel()
	release <- true
	if got := <-answer; got != "done" {
		t.Errorf("the request in flight got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// pair writes a self-signed certificate for 127.0.0.1 and its key to dir.
func pair(t *testing.T, dir, name string) (files certs.Files, cert tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	files = certs.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	if err := errors.Join(os.WriteFile(files.Cert, certPEM, 0o600), os.WriteFile(files.Key, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	cert, err = tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return files, cert
}

func dialTLS(s *httpapi.Server, c *tls.Config) (string, error) {
	c.InsecureSkipVerify = true // the test checks the name itself
	conn, err := tls.Dial("tcp", s.Addr().String(), c)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// With TLS 1.3 the first read reports a refused client certificate.
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return "", err
	}
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		return "", err
	}
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	files, _ := pair(t, dir, "first")
	s := serve(t, httpapi.ListenConfig{TLS: files}, http.NotFoundHandler())
	want := func(name string) {
		t.Helper()
		if got, err := dialTLS(s, &tls.Config{}); err != nil || got != name {
			t.Fatalf("certificate of %q, %v; want %q", got, err, name)
		}
	}
	want("first")
	pair(t, dir, "second")
	want("first")
	apply, err := s.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	want("first")
	apply()
	want("second")
	if err := os.WriteFile(files.Cert, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prepare(); err == nil || !strings.Contains(err.Error(), files.Cert) {
		t.Errorf("Prepare with rubbish: %v, want an error that names the file", err)
	}
	want("second")
	if _, err := dialTLS(s, &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

func TestClientCertificates(t *testing.T) {
	files, _ := pair(t, t.TempDir(), "server")
	ca, good := pair(t, t.TempDir(), "client")
	_, bad := pair(t, t.TempDir(), "stranger")
	files.ClientCA = ca.Cert
	s := serve(t, httpapi.ListenConfig{TLS: files}, http.NotFoundHandler())
	tests := []struct {
		name  string
		certs []tls.Certificate
		ok    bool
	}{{"good", []tls.Certificate{good}, true}, {"of a stranger", []tls.Certificate{bad}, false}, {"none", nil, false}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := dialTLS(s, &tls.Config{Certificates: tt.certs}); (err == nil) != tt.ok {
				t.Errorf("dial: %v, want ok %v", err, tt.ok)
			}
		})
	}
}
