package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/nameplane/nameplane/internal/access"
)

// These are the methods to authenticate a client.
const (
	AuthToken       = "token"
	AuthCertificate = "certificate"
	AuthNone        = "none"
)

// Apps configures the listener for edge applications: Mp1.
type Apps struct {
	Listen         string `yaml:"listen"` // empty: no listener
	ClientCA       string `yaml:"client_ca"`
	Authentication string `yaml:"authentication"`
	JWT            []JWT  `yaml:"jwt"`
}

// JWT is an issuer of JWTs that identify an application instance.
type JWT struct {
	Issuer     string        `yaml:"issuer"`
	Keys       string        `yaml:"keys"`
	Audience   string        `yaml:"audience"`
	Algorithms []string      `yaml:"algorithms"`
	Claim      string        `yaml:"claim"`
	Leeway     time.Duration `yaml:"leeway"`
}

// UnmarshalYAML decodes an issuer over the defaults of an issuer.
func (j *JWT) UnmarshalYAML(n *yaml.Node) error {
	type plain JWT
	p := plain{Algorithms: slices.Clone(access.Algorithms), Claim: "sub", Leeway: 30 * time.Second}
	if err := n.Decode(&p); err != nil {
		return err
	}
	*j = JWT(p)
	return nil
}

// Issuers returns the issuers for package access.
func (a Apps) Issuers() []access.IssuerConfig {
	var out []access.IssuerConfig
	for _, j := range a.JWT {
		out = append(out, access.IssuerConfig(j))
	}
	return out
}

// MEP configures the listener for edge platforms: Mm5, and the management of server records.
type MEP struct {
	Listen         string   `yaml:"listen"` // empty: no listener
	ClientCA       string   `yaml:"client_ca"`
	Authentication string   `yaml:"authentication"`
	Platforms      []string `yaml:"platforms"` // common names of certificates; empty: every certificate of the CA
}

// Webhook configures the listener for external-dns: its webhook API.
type Webhook struct {
	Listen    string `yaml:"listen"` // empty: no listener
	TokenFile string `yaml:"token_file"`
}

// ListenerTLS returns the files of a listener for applications, platforms or external-dns. It has the certificate of
// management, because all of them are one host. On loopback it has TLS only when clients need a certificate: a platform
// or an external-dns on the same host often cannot use TLS.
func (c Config) ListenerTLS(listen, clientCA string) TLS {
	if loopback(listen) && clientCA == "" {
		return TLS{}
	}
	return TLS{Cert: c.HTTP.TLS.Cert, Key: c.HTTP.TLS.Key, ClientCA: clientCA}
}

// MEC configures how edge applications and platforms are served.
type MEC struct {
	EdgeGallery bool      `yaml:"edgegallery"`
	Callbacks   Callbacks `yaml:"callbacks"`
}

// Callbacks configures where notifications may be sent.
type Callbacks struct {
	Networks []string `yaml:"networks"`
}

// Allowed returns the networks of Networks, which Parse has checked.
func (c Callbacks) Allowed() []netip.Prefix { return parsed(c.Networks, parseNetwork) }

// apps checks the listener of applications. Without authentication, any client could change the rules of all
// applications, so another protection is required.
func (v *checker) apps(a Apps, management TLS) {
	v.listener("apps", a.Listen, a.ClientCA, management)
	v.oneOf("apps.authentication", a.Authentication, AuthToken, AuthNone)
	v.need(a.Authentication != AuthNone || loopback(a.Listen) || a.ClientCA != "", "apps.authentication", "none lets "+
		"everybody who reaches "+a.Listen+" act for every application: use token, listen on 127.0.0.1, or set "+
		"apps.client_ca so that only your gateway can connect")
	v.need(a.Authentication != AuthNone || len(a.JWT) == 0, "apps.jwt",
		"has no effect with authentication: none; use token")
	seen := map[string]bool{}
	for i, j := range a.JWT {
		key := fmt.Sprintf("apps.jwt[%d]", i)
		v.need(j.Issuer != "", key+".issuer", "must be the value of the issuer's claim iss")
		v.need(!seen[j.Issuer], key+".issuer", "is listed twice")
		seen[j.Issuer] = true
		v.need(j.Keys != "", key+".keys", "must name a file of the issuer's public keys, PEM or JWKS")
		v.need(j.Claim != "", key+".claim", "must name the claim with the ID of the application instance, such as sub")
		v.need(len(j.Algorithms) > 0, key+".algorithms", "must have at least one of "+strings.Join(access.Algorithms, ", "))
		for n, alg := range j.Algorithms {
			v.oneOf(fmt.Sprintf("%s.algorithms[%d]", key, n), alg, access.Algorithms...)
		}
		v.within(key+".leeway", j.Leeway, 0, 10*time.Minute)
	}
}

// mep checks the listener of platforms. A platform can change all rules and records, so a listener without
// authentication is possible only on loopback.
func (v *checker) mep(m MEP, management TLS) {
	v.listener("mep", m.Listen, m.ClientCA, management)
	v.oneOf("mep.authentication", m.Authentication, AuthToken, AuthCertificate, AuthNone)
	v.need(m.Authentication != AuthCertificate || m.ClientCA != "", "mep.authentication",
		"certificate needs mep.client_ca, the CA of the certificates of platforms")
	v.need(m.Authentication == AuthCertificate || len(m.Platforms) == 0, "mep.platforms",
		"requires mep.authentication: certificate")
	v.need(!slices.Contains(m.Platforms, ""), "mep.platforms", "must be the common names of certificates")
	v.need(m.Authentication != AuthNone || loopback(m.Listen), "mep.authentication", "none lets everybody who reaches "+
		m.Listen+" change what is answered: listen on 127.0.0.1 beside the platform, or use certificate "+
		"(with mep.client_ca) or token")
}

// webhook checks the listener of external-dns. A client without credentials acts with the token of the file, so such
// a listener is possible only on loopback.
func (v *checker) webhook(w Webhook, management TLS) {
	v.listener("externaldns", w.Listen, "", management)
	v.need(w.TokenFile == "" || loopback(w.Listen), "externaldns.token_file", "lets everybody who reaches "+w.Listen+
		" act with the token in it: listen on 127.0.0.1, or put the token into the URL of external-dns")
}

// listener checks an optional HTTP listener with the certificate of management. Tokens must not cross a network in the
// clear.
func (v *checker) listener(name, listen, clientCA string, management TLS) {
	if listen != "" && !v.address(name+".listen", listen) {
		return
	}
	v.need(loopback(listen) || management.Cert != "", name+".listen",
		"needs the certificate of http.tls: set http.tls.cert and http.tls.key, or listen on 127.0.0.1")
	v.need(clientCA == "" || management.Cert != "", name+".client_ca",
		"needs the certificate of http.tls: set http.tls.cert and http.tls.key")
}

func (v *checker) mec(m MEC) {
	v.networks("mec.callbacks.networks", m.Callbacks.Networks)
}

// loopback reports whether an address can be reached only from this machine. That includes the empty address, which has
// no listener.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if listen == "" || err == nil && host == "localhost" {
		return true
	}
	a, perr := netip.ParseAddr(host)
	return err == nil && perr == nil && a.Unmap().IsLoopback()
}
