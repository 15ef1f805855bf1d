package rig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
)

// pair has the files of one side of the stream: its certificate, its key, and the CA of the other side.
type pair struct{ cert, key, ca string }

// writeKeys creates a CA and the certificates of agents and plugins. One CA signs both sides, so only their names
// distinguish them: the CA alone would admit any pod with a certificate.
func writeKeys(dir string) (agent, plugin pair, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return agent, plugin, err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stream"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return agent, plugin, err
	}
	caFile := filepath.Join(dir, "stream-ca.crt")
	if err := writePEM(caFile, "CERTIFICATE", der); err != nil {
		return agent, plugin, err
	}
	for _, side := range []struct {
		name string
		to   *pair
	}{{hold.AgentName, &agent}, {hold.PluginName, &plugin}} {
		*side.to = pair{filepath.Join(dir, side.name+".crt"), filepath.Join(dir, side.name+".key"), caFile}
		if err := side.to.write(side.name, ca, caKey); err != nil {
			return agent, plugin, err
		}
	}
	return agent, plugin, nil
}

func (p pair) write(name string, ca *x509.Certificate, by *ecdsa.PrivateKey) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		// Serials of one CA must differ (RFC 5280 §4.1.2.2).
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, &key.PublicKey, by)
	if err != nil {
		return err
	}
	if err := writePEM(p.cert, "CERTIFICATE", der); err != nil {
		return err
	}
	der, err = x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(p.key, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
