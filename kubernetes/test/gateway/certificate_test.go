package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// issuer issues certificates that are valid for 90 days. The program warns about those that end within 14 days.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// pair is a certificate and its key, in PEM.
type pair struct{ cert, key []byte }

func newIssuer(t *testing.T) (*issuer, pair) {
	t.Helper()
	var i issuer
	p := i.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "Test CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign})
	return &i, p
}

// forNames issues a certificate for host names.
func (i *issuer) forNames(t *testing.T, names ...string) pair {
	t.Helper()
	return i.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, DNSNames: names})
}

// issue completes a certificate and signs it. The first one is that of the issuer itself.
func (i *issuer) issue(t *testing.T, c *x509.Certificate) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(90*24*time.Hour)
	if i.key == nil {
		i.cert, i.key = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, i.cert, key.Public(), i.key)
	if err != nil {
		t.Fatal(err)
	}
	if i.cert == c {
		if i.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}
