package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/config"
)

// TestListeners requests every API on every listener.
func TestListeners(t *testing.T) {
	h := openServer(t, nil)
	h.addRule()
	at := h.Endpoints()
	urls := map[string]string{"http": at.HTTP, "apps": at.Apps, "mep": at.MEP, "externaldns": at.ExternalDNS}
	tokens := map[string]string{"admin": h.admin, "platform": h.token("platform", ""), "app-1": h.token("app", "app-1"),
		"app-2": h.token("app", "app-2"), "reader": h.token("reader", ""), "member": h.token("member", ""),
		"metrics": h.token("metrics", ""), "nobody": ""}
	const (
		mp1   = "/mec_app_support/v1/applications/app-1/dns_rules"
		mm5   = "/mep/config/app-1/dns_rules"
		mgmt  = "/mep/dns_server_mgmt/v1/rrecord"
		zones = "/v2/zones"
	)
	tests := []struct {
		listener, method, path, who string
		want                        int
	}{
		{"apps", "GET", mp1, "app-1", 200}, {"apps", "GET", mp1, "app-2", 403}, {"apps", "GET", mp1, "nobody", 401},
		{"apps", "GET", mp1, "platform", 403}, {"apps", "GET", mp1, "reader", 403}, {"apps", "GET", mp1, "admin", 200},
		{"apps", "GET", "/applications/app-1/dns_rules/one", "app-1", 200},
		{"apps", "GET", "/mec_app_support/v2/applications/app-1/dns_rules", "app-1", 200},
		{"apps", "GET", "/mep/mec_app_support/v1/applications/app-1/dns_rules", "app-1", 200},
		{"apps", "POST", mp1, "app-1", 405}, {"apps", "DELETE", mp1 + "/one", "app-1", 405},
		{"apps", "GET", mm5, "admin", 404}, {"apps", "GET", mgmt, "admin", 404}, {"apps", "GET", zones, "admin", 404},
		{"apps", "GET", "/metrics", "admin", 404}, {"apps", "GET", "/access/v1/tokens", "admin", 404},
		{"apps", "POST", "/v3/auth/tokens", "admin", 404},
		{"apps", "GET", "/healthz", "nobody", 200}, {"apps", "GET", "/", "nobody", 401},

		{"mep", "GET", mm5, "platform", 200}, {"mep", "GET", mm5, "admin", 200}, {"mep", "GET", mm5, "app-1", 403},
		{"mep", "GET", mm5, "reader", 403}, {"mep", "GET", mm5, "nobody", 401}, {"mep", "GET", mgmt, "platform", 200},
		{"mep", "GET", mp1, "admin", 404}, {"mep", "GET", zones, "admin", 404},
		{"mep", "GET", "/access/v1/tokens", "admin", 404},
		{"mep", "GET", "/health", "nobody", 200}, {"mep", "GET", "/healthz", "nobody", 200},
		{"mep", "GET", "/metrics", "admin", 404},

		{"externaldns", "GET", "/", "member", 200}, {"externaldns", "GET", "/records", "member", 200},
		{"externaldns", "GET", "/", "nobody", 401}, {"externaldns", "GET", "/", "reader", 403},
		{"externaldns", "GET", "/", "platform", 403}, {"externaldns", "GET", zones, "admin", 501},
		{"externaldns", "GET", "/metrics", "admin", 501}, {"externaldns", "GET", "/healthz", "nobody", 200},

		{"http", "GET", mm5, "platform", 200}, {"http", "GET", mgmt, "platform", 200}, {"http", "GET", mm5, "reader", 403},
		{"http", "GET", mm5, "app-1", 403}, {"http", "GET", mp1, "app-1", 403}, {"http", "GET", mp1, "admin", 404},
		{"http", "GET", zones, "admin", 200}, {"http", "GET", zones, "reader", 200}, {"http", "GET", zones, "platform", 403},
		{"http", "GET", zones, "app-1", 403}, {"http", "GET", zones, "metrics", 403}, {"http", "GET", mm5, "metrics", 403},
		{"http", "GET", "/metrics", "reader", 403}, {"http", "GET", "/metrics", "app-1", 403},
		{"http", "GET", "/metrics", "platform", 403},
		{"http", "GET", "/metrics", "metrics", 200}, {"http", "GET", "/metrics", "nobody", 401},
		{"apps", "GET", mp1, "metrics", 403}, {"mep", "GET", mm5, "metrics", 403},
		{"http", "GET", "/health", "nobody", 200}, {"http", "POST", "/health", "nobody", 401},
	}
	for _, tt := range tests {
		if code, body := h.call(plain, urls[tt.listener], tt.method, tt.path, tokens[tt.who], ""); code != tt.want {
			t.Errorf("%s on %s: %s %s = %d %s, want %d", tt.who, tt.listener, tt.method, tt.path, code, body, tt.want)
		}
	}
	_, metrics := h.call(plain, at.HTTP, "GET", "/metrics", h.admin, "")
	for _, name := range []string{"http", "apps", "mep", "externaldns"} {
		if !strings.Contains(metrics, `nameplane_http_requests_total{listener="`+name+`"`) {
			t.Errorf("no requests of %s are counted:\n%s", name, metrics)
		}
	}
	for who, secret := range tokens {
		if secret != "" && strings.Contains(h.log.String(), secret[20:]) {
			t.Errorf("the log contains the token of %s", who)
		}
	}
}

// TestSelfValidation checks that the token of an application can validate itself, but cannot open a session.
func TestSelfValidation(t *testing.T) {
	h := openServer(t, nil)
	url, app, other := h.Endpoints().HTTP, h.token("app", "app-1"), h.token("app", "app-2")
	validate := func(subject string) int {
		req, err := http.NewRequest("GET", url+"/v3/auth/tokens", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Auth-Token", app)
		req.Header.Set("X-Subject-Token", subject)
		res, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if code := validate(app); code != 200 {
		t.Errorf("itself: %d, want 200", code)
	}
	if code := validate(other); code != 403 {
		t.Errorf("another: %d, want 403", code)
	}
	for _, text := range []string{app, h.token("platform", "")} {
		login := fmt.Sprintf(`{"auth":{"identity":{"methods":["token"],"token":{"id":%q}}}}`, text)
		if code, body := h.call(plain, url, "POST", "/v3/auth/tokens", "", login); code != 401 {
			t.Errorf("a session: %d %s, want 401", code, body)
		}
	}
	if code, body := h.call(plain, url, "GET", "/v3/auth/projects", app, ""); code != 403 {
		t.Errorf("projects: %d %s, want 403", code, body)
	}
}

func TestNoAuthentication(t *testing.T) {
	h := openServer(t, func(c *config.Config) {
		c.Apps.Authentication, c.MEP.Authentication = config.AuthNone, config.AuthNone
		c.MEC.EdgeGallery = true
	})
	at := h.Endpoints()
	if code, body := h.call(plain, at.MEP, "POST", "/mep/config/app-1/dns_rules", "", someRule); code/100 != 2 {
		t.Errorf("a platform without a token: %d %s", code, body)
	}
	if code, body := h.call(plain, at.MEP, "DELETE", "/mep/dns_server_mgmt/v1/rrecord/none.example.com/A?zone=.", "",
		"{}"); code != 500 {
		t.Errorf("EdgeGallery's status: %d %s, want 500", code, body)
	}
	if code, body := h.call(plain, at.Apps, "GET", "/applications/app-1/dns_rules", "", ""); code != 401 {
		t.Errorf("an application without the header: %d %s, want 401", code, body)
	}
	withHeader := &http.Client{Transport: headerTransport{"X-AppinstanceID": "app-1"}}
	if code, body := h.call(withHeader, at.Apps, "GET", "/applications/app-1/dns_rules", "", ""); code != 200 ||
		!strings.Contains(body, "camera.example.com") {
		t.Errorf("an application with it: %d %s", code, body)
	}
	foreign := &http.Client{Transport: headerTransport{"Origin": "https://evil.test"}}
	if code, body := h.call(foreign, at.MEP, "POST", "/mep/config/app-2/dns_rules", "", someRule); code != 403 {
		t.Errorf("a page of another site: %d %s, want 403", code, body)
	}
	if code, _ := h.call(plain, at.HTTP, "GET", "/mep/config/app-1/dns_rules", "", ""); code != 401 {
		t.Errorf("management without a token: %d, want 401", code)
	}
}

// TestMutualTLS checks a platform that has a certificate and no token.
func TestMutualTLS(t *testing.T) {
	ca, stranger := newAuthority(t, "ca"), newAuthority(t, "stranger")
	cert, key, _, _ := ca.issue("server", false)
	h := openServer(t, func(c *config.Config) {
		c.HTTP.TLS = config.TLS{Cert: cert, Key: key}
		c.MEP.Authentication, c.MEP.ClientCA = config.AuthCertificate, filepath.Join(ca.dir, "ca.crt")
	})
	at := h.Endpoints()
	if !strings.HasPrefix(at.MEP, "https://") {
		t.Fatalf("address %s", at.MEP)
	}
	if code, body := h.call(ca.client("mepm-1"), at.MEP, "POST", "/mep/config/app-1/dns_rules", "",
		someRule); code/100 != 2 {
		t.Errorf("with a certificate: %d %s", code, body)
	}
	if !strings.Contains(h.log.String(), `who="certificate mepm-1"`) {
		t.Errorf("the audit line does not name the certificate:\n%s", h.log)
	}
	trusting := stranger.client("mepm-1")
	roots := ca.client("").Transport.(*http.Transport).TLSClientConfig.RootCAs
	trusting.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots
	for name, cl := range map[string]*http.Client{"no certificate": ca.client(""), "of a stranger": trusting} {
		if code, body := h.call(cl, at.MEP, "GET", "/mep/config/app-1/dns_rules", h.admin, ""); code != 0 {
			t.Errorf("%s: %d %s, want no connection", name, code, body)
		}
	}
	if code, body := h.call(ca.client("mepm-1"), at.MEP, "GET", "/v2/zones", "", ""); code != 404 {
		t.Errorf("zones: %d %s, want 404", code, body)
	}
}

// TestReloadIsWhole changes the certificate of all listeners while the CA of one of them is invalid: none may change.
func TestReloadIsWhole(t *testing.T) {
	ca := newAuthority(t, "ca")
	files := func() config.TLS {
		cert, key, _, _ := ca.issue("http", false)
		return config.TLS{Cert: cert, Key: key}
	}
	clientCA := filepath.Join(ca.dir, "ca.crt")
	valid, err := os.ReadFile(clientCA)
	if err != nil {
		t.Fatal(err)
	}
	h := openServer(t, func(c *config.Config) { c.HTTP.TLS, c.MEP.ClientCA = files(), clientCA })
	client := ca.client("mepm-1")
	shown := func(base string) *big.Int {
		t.Helper()
		res, err := client.Get(base + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.TLS.PeerCertificates[0].SerialNumber
	}
	at := h.Endpoints()
	first := shown(at.HTTP)
	files()
	if err := os.WriteFile(clientCA, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Reload()
	if shown(at.HTTP).Cmp(first) != 0 || shown(at.MEP).Cmp(first) != 0 {
		t.Error("a certificate changed although the CA of mep is invalid")
	}
	if err := os.WriteFile(clientCA, valid, 0o600); err != nil {
		t.Fatal(err)
	}
	h.Reload()
	if shown(at.HTTP).Cmp(first) == 0 || shown(at.MEP).Cmp(first) == 0 {
		t.Error("a valid certificate was not applied")
	}
}

// TestJWTListener checks JWTs, and new keys after a reload. An invalid file must change nothing.
func TestJWTListener(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys.pem")
	newKey := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(k.Public())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(keys, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return k
	}
	signed := func(k *ecdsa.PrivateKey, app string) string {
		s, err := jwt.NewWithClaims(jwt.SigningMethodES256,
			jwt.MapClaims{"iss": "idp", "sub": app, "exp": time.Now().Add(time.Hour).Unix()}).SignedString(k)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := newKey()
	h := openServer(t, func(c *config.Config) {
		c.Apps.JWT = []config.JWT{{Issuer: "idp", Keys: keys, Algorithms: []string{"ES256"}, Claim: "sub"}}
	})
	h.addRule()
	at := h.Endpoints()
	expect := func(when string, token string, want int) {
		t.Helper()
		if code, body := h.call(plain, at.Apps, "GET", "/applications/app-1/dns_rules/one", token, ""); code != want {
			t.Errorf("%s: %d %s, want %d", when, code, body, want)
		}
	}
	expect("its own rule", signed(first, "app-1"), 200)
	expect("another's rule", signed(first, "app-2"), 403)
	off := strings.Replace(someRule, `"ACTIVE"`, `"INACTIVE"`, 1)
	if code, body := h.call(plain, at.Apps, "PUT", "/applications/app-1/dns_rules/one", signed(first, "app-1"),
		off); code != 200 {
		t.Errorf("switch off: %d %s", code, body)
	}
	for name, url := range map[string]string{"http": at.HTTP, "mep": at.MEP} {
		if code, _ := h.call(plain, url, "GET", "/mep/config/app-1/dns_rules", signed(first, "app-1"), ""); code != 401 {
			t.Errorf("a JWT on %s: %d, want 401", name, code)
		}
	}
	second := newKey()
	h.Reload()
	expect("old key", signed(first, "app-1"), 401)
	expect("new key", signed(second, "app-1"), 200)
	if err := os.WriteFile(keys, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Reload()
	expect("after a bad file", signed(second, "app-1"), 200)
	if !strings.Contains(h.log.String(), "the old ones stay") {
		t.Errorf("the log does not report the invalid file:\n%s", h.log)
	}
	if text := signed(first, "app-1"); strings.Contains(h.log.String(), text[:30]) {
		t.Error("the log contains a JWT")
	}
}

func TestBodyBounds(t *testing.T) {
	h := openServer(t, nil)
	at, app := h.Endpoints(), h.token("app", "app-1")
	tests := []struct {
		name, url, path, token string
		size                   int
	}{
		{"application", at.Apps, "/applications/app-1/dns_rules/one", app, appBody + 1},
		{"platform", at.MEP, "/mep/config/app-1/dns_rules", h.admin, platformBody + 1},
		{"platform on http", at.HTTP, "/mep/config/app-1/dns_rules", h.admin, platformBody + 1},
		{"batch", at.MEP, "/mep/dns_server_mgmt/v1/rrecord", h.admin, batchBody + 1},
		{"batch on http", at.HTTP, "/mep/dns_server_mgmt/v1/rrecord", h.admin, batchBody + 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, body := h.call(plain, tt.url, "PUT", tt.path, tt.token, strings.Repeat(" ", tt.size))
			var problem struct{ Status int }
			if err := json.Unmarshal([]byte(body), &problem); code != 413 || err != nil || problem.Status != 413 {
				t.Errorf("%d bytes: %d %s (%v), want 413 as a problem", tt.size, code, body, err)
			}
		})
	}
}

// TestForwarding queries names outside our zones, before and after a reload that removes the client.
func TestForwarding(t *testing.T) {
	upstream := &dns.Server{Net: "udp", Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		r := new(dns.Msg).SetReply(q)
		rec, _ := dns.NewRR(q.Question[0].Name + " 300 IN A 198.51.100.1")
		r.Answer = append(r.Answer, rec)
		_ = w.WriteMsg(r)
	})}
	var err error
	if upstream.PacketConn, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go func() { _ = upstream.ActivateAndServe() }()
	t.Cleanup(func() { _ = upstream.Shutdown() })
	next := make(chan config.Config, 1)
	h := openServer(t, func(c *config.Config) {
		c.Forward.Upstreams, c.Forward.Clients = []string{upstream.PacketConn.LocalAddr().String()}, []string{"127.0.0.0/8"}
	})
	h.addRule()
	h.load = func() (config.Config, error) { return <-next, nil }
	ask := func(name string) string {
		t.Helper()
		r, err := dns.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), h.Endpoints().DNS[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Answer) == 0 {
			return dns.RcodeToString[r.Rcode]
		}
		return r.Answer[0].(*dns.A).A.String()
	}
	if got := ask("www.example.net."); got != "198.51.100.1" {
		t.Errorf("a name outside our zones: %s, want the answer of the upstream", got)
	}
	if got := ask("camera.example.com."); got != "192.0.2.10" {
		t.Errorf("a rule: %s", got)
	}
	for _, change := range []func(*config.Forward){
		func(f *config.Forward) { f.Clients = []string{"192.0.2.0/24"} },
		func(f *config.Forward) { f.Clients, f.Upstreams = nil, nil },
	} {
		c := h.cfg
		change(&c.Forward)
		next <- c
		h.Reload()
		if got := ask("www.example.net."); got != "REFUSED" {
			t.Errorf("for a client that is not served: %s, want REFUSED", got)
		}
		if got := ask("camera.example.com."); got != "192.0.2.10" {
			t.Errorf("a rule after the reload: %s", got)
		}
	}
	next <- h.cfg
	h.Reload()
	if got := ask("www.example.net."); got != "198.51.100.1" {
		t.Errorf("after it is served again: %s", got)
	}
	if strings.Contains(h.log.String(), "take effect with the next start") {
		t.Errorf("the log says that forwarding needs a restart:\n%s", h.log)
	}
}

// TestRefusedStarts checks that the server does not open a listener with an unsafe or invalid configuration.
func TestRefusedStarts(t *testing.T) {
	tests := []struct {
		name   string
		change func(*config.Config)
		want   string
	}{
		{"apps without TLS", func(c *config.Config) { c.Apps.Listen = "0.0.0.0:0" },
			"refusing to serve apps on 0.0.0.0:0 without TLS"},
		{"mep without TLS", func(c *config.Config) { c.MEP.Listen = "0.0.0.0:0" }, "mep"},
		{"http without TLS", func(c *config.Config) { c.HTTP.Listen = "0.0.0.0:0" }, "http.tls.cert"},
		{"no key of a JWT issuer", func(c *config.Config) {
			c.Apps.JWT = []config.JWT{{Issuer: "idp", Keys: "/nowhere/keys"}}
		}, "/nowhere/keys"},
		{"no CA of upstreams", func(c *config.Config) {
			c.Forward.Upstreams, c.Forward.TLSCA = []string{"tls://192.0.2.1"}, "/nowhere/ca"
		}, "forward.tls_ca"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := localConfig(t)
			tt.change(&c)
			_, err := Open(t.Context(), Options{Config: c, Log: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open = %v, want %q", err, tt.want)
			}
		})
	}
}
