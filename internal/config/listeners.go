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
	TLS            TLS    `yaml:"tls"`
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
	TLS            TLS      `yaml:"tls"`
	Authentication string   `yaml:"authentication"`
	Platforms      []string `yaml:"platforms"` // common names of certificates; empty: every certificate of the CA
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
func (v *checker) apps(a Apps) {
	v.listener("apps", a.Listen, a.TLS)
	v.oneOf("apps.authentication", a.Authentication, AuthToken, AuthNone)
	v.need(a.Authentication != AuthNone || loopback(a.Listen) || a.TLS.ClientCA != "", "apps.authentication", "none lets "+
		"everybody who reaches "+a.Listen+" act for every application: use token, listen on 127.0.0.1, or set "+
		"apps.tls.client_ca so that only your gateway can connect")
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
func (v *checker) mep(m MEP) {
	v.listener("mep", m.Listen, m.TLS)
	v.oneOf("mep.authentication", m.Authentication, AuthToken, AuthCertificate, AuthNone)
	v.need(m.Authentication != AuthCertificate || m.TLS.ClientCA != "", "mep.authentication",
		"certificate needs mep.tls.client_ca, the CA of the certificates of platforms")
	v.need(m.Authentication == AuthCertificate || len(m.Platforms) == 0, "mep.platforms",
		"requires mep.authentication: certificate")
	v.need(!slices.Contains(m.Platforms, ""), "mep.platforms", "must be the common names of certificates")
	v.need(m.Authentication != AuthNone || loopback(m.Listen), "mep.authentication", "none lets everybody who reaches "+
		m.Listen+" change what is answered: listen on 127.0.0.1 beside the platform, or use certificate "+
		"(with mep.tls.client_ca) or token")
}

// listener checks an optional HTTP listener.
func (v *checker) listener(name, listen string, t TLS) {
	if listen != "" {
		v.address(name+".listen", listen)
	}
	v.tls(name, t)
}

func (v *checker) tls(name string, t TLS) {
	v.need((t.Cert == "") == (t.Key == ""), name+".tls", "needs both cert and key")
	v.need(t.ClientCA == "" || t.Cert != "", name+".tls.client_ca", "needs cert and key as well")
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
