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

// The names that certificates of the two sides have, unless told otherwise. Addresses say nothing here: agents are reached by
// addresses of nodes, which come and go.
const (
	AgentName  = "nameplane-egress-agent"
	PluginName = "nameplane-coredns"
)

// commonName is the type of a common name in a subject (RFC 5280 appendix A.1).
var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// Files are where one side finds its certificate, its key, and the authority that must have signed the other side's. They are
// read again for each connection, so that they can be renewed in place.
type Files struct {
	Cert, Key, CA string
	Peers         []string // names of which the other side's certificate must have one
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

// load also checks that there is a name of the other side.
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
	conf := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: pool, ServerName: f.Peers[0]}
	return (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", endpoint)
}

// Server is the configuration of an agent. It fails at once when the files are not good.
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
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
			// A resumed session would not be asked for its certificate again after that was replaced.
			SessionTicketsDisabled: true,
			VerifyConnection:       f.verify,
		}, nil
	}}, nil
}

// verify compares the name of a client with those that may connect. Its caller has verified the signature of the authority. A
// certificate with several common names is refused: programs do not agree on which of them is the name of its owner.
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
