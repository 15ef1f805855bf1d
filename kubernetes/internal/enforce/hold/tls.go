package hold

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
)

// Default names in the certificates of the two sides. Certificates do not contain addresses: agents are reached by node
// addresses, which change.
const (
	AgentName  = "nameplane-egress-agent"
	PluginName = "nameplane-coredns"
)

// commonName is the type of a common name in a subject (RFC 5280 appendix A.1).
var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// Files are the paths of the certificate and key of one side, and of the CA that must have signed the other side's
// certificate. They are read for each connection, so that they can be replaced.
type Files struct {
	Cert, Key, CA string
	Peers         []string // the other side's certificate must have one of these names
}

// Load reads the files.
func (f Files) Load() (tls.Certificate, *x509.CertPool, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return tls.Certificate{}, nil, fmt.Errorf("%s has no certificate in it", f.CA)
	}
	return cert, pool, nil
}

// load is Load, and also checks that Peers is not empty.
func (f Files) load() (tls.Certificate, *x509.CertPool, error) {
	cert, pool, err := f.Load()
	if err == nil && len(f.Peers) == 0 {
		err = errors.New("no name of the other side is given")
	}
	return cert, pool, err
}

// Dial connects a plugin to an agent.
func (f Files) Dial(ctx context.Context, endpoint string) (net.Conn, error) {
	cert, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: pool,
		ServerName: f.Peers[0]}
	return (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", endpoint)
}

// Server returns the configuration of an agent. It fails at once if the files are not valid.
func (f Files) Server() (*tls.Config, error) {
	if _, _, err := f.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		cert, pool, err := f.load()
		if err != nil {
			return nil, err
		}
		return &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientCAs: pool,
			ClientAuth: tls.RequireAndVerifyClientCert,
			// A resumed session would not present its certificate again after the files were replaced.
			SessionTicketsDisabled: true,
			VerifyConnection:       f.verify,
		}, nil
	}}, nil
}

// verify checks the name of a client against Peers. The caller has verified the signature. A certificate with several
// common names is refused: programs disagree on which one is the name of its owner.
func (f Files) verify(cs tls.ConnectionState) error {
	leaf := cs.PeerCertificates[0]
	names := 0
	for _, a := range leaf.Subject.Names {
		if a.Type.Equal(commonName) {
			names++
		}
	}
	if names > 1 {
		return fmt.Errorf("the certificate has %d common names; issue one with at most one", names)
	}
	if slices.ContainsFunc(f.Peers, func(name string) bool { return leaf.VerifyHostname(name) == nil }) {
		return nil
	}
	return fmt.Errorf("the certificate is of %v, not of one of %v", leaf.DNSNames, f.Peers)
}
