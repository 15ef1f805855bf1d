package config

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/certs"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/transfer"
)

// Transfer configures which name servers may copy zones, and which are notified of changes.
type Transfer struct {
	Allow       []string    `yaml:"allow"`
	AllowKeys   []string    `yaml:"allow_keys"`
	TLSCA       string      `yaml:"tls_ca"`
	Secondaries []Secondary `yaml:"secondaries"`
}

// Secondary is a server that is notified of changes.
type Secondary struct {
	Address     string `yaml:"address"`
	Key         string `yaml:"key"`
	Certificate string `yaml:"certificate"`
}

// Remote returns Address, which Parse has checked.
func (s Secondary) Remote() transfer.Remote {
	a, _ := transfer.ParseMaster(s.Address)
	return a
}

// KeyName returns Key, which Parse has checked. It returns the zero Name when there is no key.
func (s Secondary) KeyName() dnsname.Name {
	n, _ := dnsname.Parse(s.Key)
	return n
}

// Networks returns the networks that may transfer every zone: Allow, and secondaries without a key and a certificate.
func (t Transfer) Networks() []netip.Prefix {
	out := parsed(t.Allow, parseNetwork)
	for _, s := range t.Secondaries {
		if s.Key == "" && s.Certificate == "" {
			a := s.Remote().Addr()
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}

// Keys returns the keys that may transfer every zone: AllowKeys, and the keys of secondaries without a certificate.
func (t Transfer) Keys() []dnsname.Name {
	keys := slices.Clone(t.AllowKeys)
	for _, s := range t.Secondaries {
		if s.Key != "" && s.Certificate == "" {
			keys = append(keys, s.Key)
		}
	}
	return parsed(keys, dnsname.Parse)
}

// Certificates returns the secondaries that need a certificate.
func (t Transfer) Certificates() (out []Secondary) {
	for _, s := range t.Secondaries {
		if s.Certificate != "" {
			out = append(out, s)
		}
	}
	return out
}

// CAs reads the CA certificates of other servers. Without a file it returns nil.
func (t Transfer) CAs() (*x509.CertPool, error) {
	if t.TLSCA == "" {
		return nil, nil
	}
	pool, err := certs.ReadCAs(t.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("transfer.tls_ca: %w", err)
	}
	return pool, nil
}

// transfer refuses networks that include the whole internet: a transfer discloses all names of a zone.
func (v *checker) transfer(t Transfer) {
	v.networks("transfer.allow", t.Allow)
	for i, s := range t.Allow {
		p, err := parseNetwork(s)
		v.need(err != nil || p.Bits() > 0, fmt.Sprintf("transfer.allow[%d]", i),
			"gives every zone to the whole internet: list networks, or use keys")
	}
	for i, k := range t.AllowKeys {
		_, err := dnsname.Parse(k)
		v.need(err == nil && k != "", fmt.Sprintf("transfer.allow_keys[%d]", i), "must be the name of a TSIG key")
	}
	for i, s := range t.Secondaries {
		_, err := transfer.ParseMaster(s.Address)
		v.need(err == nil, fmt.Sprintf("transfer.secondaries[%d].address", i),
			"must be an address, such as 192.0.2.2, [2001:db8::2]:5353 or tls://192.0.2.2:853#ns2.example.org")
		_, err = dnsname.Parse(s.Key)
		v.need(err == nil || s.Key == "", fmt.Sprintf("transfer.secondaries[%d].key", i),
			"must be the name of a TSIG key")
		key := fmt.Sprintf("transfer.secondaries[%d].certificate", i)
		_, err = dnsname.Parse(s.Certificate)
		v.need(err == nil || s.Certificate == "", key, "must be a DNS name in the certificate of the secondary")
		v.need(s.Certificate == "" || t.TLSCA != "", key, "requires transfer.tls_ca, the CA that signs the certificate")
	}
}
