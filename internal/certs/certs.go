// Package certs reads certificates, keys and CAs from files, and replaces them while a server runs.
//
// Start with Set: Config returns the configuration of a listener, and Prepare reads the files again.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// Files are the paths of PEM files.
type Files struct {
	Cert     string
	Key      string
	ClientCA string // CAs that sign the certificates of clients; empty: clients need none
}

// Enabled reports whether any file is named.
func (f Files) Enabled() bool { return f != Files{} }

// Set holds the TLS configuration from the last time the files were read.
type Set struct {
	files Files
	base  *tls.Config
	now   atomic.Pointer[tls.Config]
}

// Open reads the files. base has everything that is not in a file: the versions, the protocols, and in ClientAuth what
// a client CA requires of clients.
func Open(f Files, base *tls.Config) (*Set, error) {
	s := &Set{files: f, base: base}
	apply, err := s.Prepare()
	if err != nil {
		return nil, err
	}
	apply()
	return s, nil
}

// Prepare reads the files again. New connections use them after apply is called, so that several servers can change
// together or not at all. On an error nothing changes.
func (s *Set) Prepare() (apply func(), err error) {
	t, err := s.read()
	if err != nil {
		return nil, err
	}
	return func() { s.now.Store(t) }, nil
}

func (s *Set) read() (*tls.Config, error) {
	t := s.base.Clone()
	if s.files.Cert == "" || s.files.Key == "" {
		return nil, errors.New("TLS needs both a certificate and a key")
	}
	pair, err := tls.LoadX509KeyPair(s.files.Cert, s.files.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", s.files.Cert, s.files.Key, err)
	}
	t.Certificates = []tls.Certificate{pair}
	if s.files.ClientCA == "" {
		t.ClientAuth = tls.NoClientCert
		return t, nil
	}
	t.ClientCAs, err = ReadCAs(s.files.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("TLS client CA: %w", err)
	}
	return t, nil
}

// ReadCAs reads the certificates of CAs.
func ReadCAs(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no certificate in PEM form", path)
	}
	return pool, nil
}

// Config returns a configuration that replaces itself by the newest one for each new connection. It repeats the
// versions and protocols only for linters and readers.
func (s *Set) Config() *tls.Config {
	return &tls.Config{MinVersion: s.base.MinVersion, NextProtos: s.base.NextProtos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.now.Load(), nil }}
}

// Leaf returns the certificate of the server.
func (s *Set) Leaf() *x509.Certificate { return s.now.Load().Certificates[0].Leaf }
