package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/access"
)

func TestListeners(t *testing.T) {
	text := `
http: {tls: {cert: c, key: k}}
apps:
  listen: 192.0.2.53:8054
  jwt:
    - issuer: https://idp.example.org
      keys: idp.pem
    - issuer: other
      keys: other.json
      audience: nameplane
      algorithms: [ES256]
      claim: client_id
      leeway: 0s
mep:
  listen: 192.0.2.53:8055
  client_ca: ca
  authentication: certificate
forward:
  upstreams: [127.0.0.1:5353, "tls://[2001:db8::1]:853#dns.example.org"]
  clients: [192.0.2.0/24, "2001:db8::/32"]
mec:
  callbacks: {networks: [198.51.100.7]}
`
	c, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []access.IssuerConfig{
		{Issuer: "https://idp.example.org", Keys: "idp.pem", Algorithms: []string{"RS256", "PS256", "ES256", "EdDSA"},
			Claim: "sub", Leeway: 30 * time.Second},
		{Issuer: "other", Keys: "other.json", Audience: "nameplane", Algorithms: []string{"ES256"}, Claim: "client_id"},
	}
	if diff := cmp.Diff(want, c.Apps.Issuers()); diff != "" {
		t.Errorf("Issuers (-want +got):\n%s", diff)
	}
	if s := c.Forward.Servers(); len(s) != 2 || s[1].Name != "dns.example.org" || s[0].Addr.String() != "127.0.0.1:5353" {
		t.Errorf("Servers = %v", s)
	}
	if n := c.Forward.ClientNetworks(); len(n) != 2 || !n[1].Contains(netip.MustParseAddr("2001:db8::1")) {
		t.Errorf("ClientNetworks = %v", n)
	}
	if n := c.MEC.Callbacks.Allowed(); len(n) != 1 || n[0].String() != "198.51.100.7/32" {
		t.Errorf("Allowed = %v", n)
	}
}

// TestExampleIssuer compares the issuer in a comment of the example with the defaults of an issuer.
func TestExampleIssuer(t *testing.T) {
	_, text, _ := strings.Cut(Example(), "Settings of each:\n")
	block := "apps:\n  jwt:\n"
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#   ")
		if !ok {
			break
		}
		block += "    " + rest + "\n"
	}
	got, err := Parse("example", []byte(block))
	if err != nil {
		t.Fatalf("%v\n%s", err, block)
	}
	shown := got.Apps.JWT[0]
	least := fmt.Sprintf("apps: {jwt: [{issuer: %q, keys: %q, audience: %q}]}", shown.Issuer, shown.Keys, shown.Audience)
	want, err := Parse("least", []byte(least))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Apps.JWT, got.Apps.JWT); diff != "" {
		t.Errorf("the issuer of the example (-default +example):\n%s", diff)
	}
}

// TestSafeSettings checks that safe combinations of settings are accepted. TestMistakes has the unsafe ones.
func TestSafeSettings(t *testing.T) {
	for _, text := range []string{
		"apps: {listen: '127.0.0.1:80', authentication: none}",
		"apps: {listen: 'localhost:80', authentication: none}",
		"apps: {listen: '[::1]:80', authentication: none}",
		"{http: {tls: {cert: c, key: k}}, apps: {listen: '192.0.2.1:80', authentication: none, client_ca: a}}",
		"apps: {authentication: none}", // no listener
		"mep: {listen: '127.0.0.1:80', authentication: none}",
		"mep: {authentication: none}",
		"{http: {tls: {cert: c, key: k}}, mep: {listen: ':80', authentication: certificate, client_ca: a}}",
		"externaldns: {listen: '127.0.0.1:80', token_file: t}",
		"{http: {tls: {cert: c, key: k}}, externaldns: {listen: '192.0.2.1:80'}}",
		"forward: {upstreams: ['127.0.0.1'], clients: [0.0.0.0/0, '::/0'], open_resolver: true}",
		"forward: {upstreams: ['127.0.0.1']}", // for no clients
	} {
		if _, err := Parse("x.yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	c := Default()
	c.MEP.Listen, c.MEP.Authentication = "0.0.0.0:80", AuthNone // as a flag over a file can set it
	if err := c.Validate(); err == nil {
		t.Error("Validate accepted mep without authentication on all addresses")
	}
}

func TestRoots(t *testing.T) {
	if pool, err := (Forward{}).Roots(); pool != nil || err != nil {
		t.Errorf("Roots = %v, %v; want those of the system", pool, err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := (Forward{TLSCA: file}).Roots(); err == nil || !strings.Contains(err.Error(), "forward.tls_ca") {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Forward{TLSCA: file}).Roots(); err == nil || !strings.Contains(err.Error(), "contains no certificate") {
		t.Errorf("no certificate: %v", err)
	}
}
