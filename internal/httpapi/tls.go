package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// TLSFiles are the paths of PEM files. With ClientCA, clients need a certificate of this CA in addition to their token.
type TLSFiles struct {
	Cert     string
	Key      string
	ClientCA string
}

func (f TLSFiles) enabled() bool { return f != TLSFiles{} }

// certs holds the TLS configuration from the last time the files were read.
type certs struct {
	files TLSFiles
	now   atomic.Pointer[tls.Config]
}

func newCerts(f TLSFiles) (*certs, error) {
	c := &certs{files: f}
	t, err := c.read()
	if err != nil {
		return nil, err
	}
	c.now.Store(t)
	return c, nil
}

func (c *certs) read() (*tls.Config, error) {
	if c.files.Cert == "" || c.files.Key == "" {
		return nil, errors.New("TLS needs both a certificate and a key")
	}
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", c.files.Cert, c.files.Key, err)
	}
	t := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if c.files.ClientCA != "" {
		pem, err := os.ReadFile(c.files.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("TLS client CA: %w", err)
		}
		t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !t.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("TLS client CA %s: holds no certificate", c.files.ClientCA)
		}
	}
	return t, nil
}

// config returns a configuration that gives each new connection the newest one. It repeats MinVersion only for linters
// and readers.
func (c *certs) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now.Load(), nil }}
}
