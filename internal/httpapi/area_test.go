package httpapi_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/httpapi"
)

// whoAmI answers every request with its caller.
func whoAmI(w http.ResponseWriter, r *http.Request) {
	httpapi.JSON(w, http.StatusOK, httpapi.CallerOf(r.Context()))
}

func send(h http.Handler, method, path, token string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(req)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// TestAreas sends requests of every role to every kind of path on each listener.
func TestAreas(t *testing.T) {
	r := accesstest.Open(t, nil)
	tokens := map[string]string{"admin": r.Admin, "app": r.App(t, "app-1"), "nobody": ""}
	for _, role := range []string{"reader", "member", "platform", "metrics"} {
		tokens[role], _ = r.Token(t, role, "admin", role)
	}
	listeners := map[string]httpapi.Frame{
		"bare": {Access: r.Access},
		"http": {Access: r.Access, Areas: httpapi.ManagementAreas()},
		"apps": {Access: r.Access, Areas: httpapi.AppAreas(), NoLogin: true},
		"mep":  {Access: r.Access, Areas: httpapi.PlatformAreas(), NoLogin: true},
	}
	projects := "admin reader member"
	tests := []struct{ listener, method, path, enter string }{
		{"bare", "GET", "/v2/zones", projects},
		{"bare", "GET", "/mep/config/a/dns_rules", projects},
		{"http", "GET", "/v2/zones", projects},
		{"http", "POST", "/v2/zones", projects},
		{"http", "GET", "/v2", projects},
		{"http", "GET", "/metrics", "admin metrics"},
		{"http", "GET", "/metrics/", projects},
		{"http", "GET", "/access/v1/tokens", projects},
		{"http", "GET", "/v3/projects", projects},
		{"http", "GET", "/v3/auth/tokens", projects + " platform app metrics"},
		{"http", "GET", "/v3/auth/tokens/", projects},
		{"http", "GET", "/v3/auth/catalog", projects},
		{"http", "GET", "/mep/config/a/dns_rules", "admin platform"},
		{"http", "POST", "/mepcfg/app_lcm/v1/applications/a/appd_configuration", "admin platform"},
		{"http", "DELETE", "/mep/mec_app_support/v1/applications/a/AppInstanceTermination", "admin platform"},
		{"http", "PUT", "/mep/dns_server_mgmt/v1/rrecord", "admin platform"},
		{"http", "GET", "/mep/config", "admin platform"},
		{"http", "GET", "/mep/config/../../v2/zones", projects},
		{"http", "GET", "/mep/config/%2e%2e/%2e%2e/v2/zones", projects},
		{"http", "GET", "/mep/config//../v2/zones", projects},
		{"http", "GET", "/mep%2Fconfig/a/dns_rules", "admin platform"},
		{"http", "GET", "/applications/a/dns_rules", projects},
		{"http", "GET", "/healthz", projects + " platform app metrics nobody"},
		{"http", "POST", "/v3/auth/tokens", projects + " platform app metrics nobody"},
		{"apps", "GET", "/applications/a/dns_rules", "admin app"},
		{"apps", "PUT", "/mec_app_support/v1/applications/a/dns_rules/r", "admin app"},
		{"apps", "GET", "/v2/zones", "admin app"},
		{"apps", "GET", "/", "admin app"},
		{"apps", "GET", "/applications/%2e%2e/dns_rules", "admin app"},
		{"apps", "GET", "/applications/a/../b/dns_rules", "admin app"},
		{"apps", "POST", "/v3/auth/tokens", "admin app"},
		{"apps", "GET", "/healthz", projects + " platform app metrics nobody"},
		{"mep", "GET", "/mep/config/a/dns_rules", "admin platform"},
		{"mep", "PUT", "/mep/dns_server_mgmt/v1/rrecord", "admin platform"},
		{"mep", "POST", "/v3/auth/tokens", "admin platform"},
		{"mep", "DELETE", "/mep/config/a/dns_rules/%2e%2e", "admin platform"},
		{"mep", "GET", "/healthz", projects + " platform app metrics nobody"},
	}
	for _, tt := range tests {
		t.Run(tt.listener+" "+tt.method+" "+tt.path, func(t *testing.T) {
			h := listeners[tt.listener].Wrap(http.HandlerFunc(whoAmI))
			for role, token := range tokens {
				want := http.StatusForbidden
				if role == "nobody" {
					want = http.StatusUnauthorized
				}
				if strings.Contains(" "+tt.enter+" ", " "+role+" ") {
					want = http.StatusOK
				}
				if w := send(h, tt.method, tt.path, token); w.Code != want {
					t.Errorf("%s: %d %s, want %d", role, w.Code, w.Body, want)
				}
			}
		})
	}
}

func TestProblems(t *testing.T) {
	r := accesstest.Open(t, nil)
	app, _ := r.App(t, "app-1"), ""
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no") })
	h := httpapi.Frame{Access: r.Access, Areas: httpapi.ManagementAreas(), Limits: httpapi.Limits{Body: 100}}.Wrap(panics)
	long := func(r *http.Request) { r.ContentLength = 101; r.Body = http.MaxBytesReader(nil, http.NoBody, 1) }
	tests := []struct {
		name, path, token string
		change            func(*http.Request)
		want              int
	}{
		{"nobody", "/mep/config/a%20b/dns_rules", "", nil, 401},
		{"bad token", "/mep/config/a%20b/dns_rules", "np_x", nil, 401},
		{"another role", "/mep/config/a%20b/dns_rules", app, nil, 403},
		{"too long", "/mep/config/a%20b/dns_rules", r.Admin, long, 413},
		{"panic", "/mep/config/a%20b/dns_rules", r.Admin, nil, 500},
		{"server management", "/mep/dns_server_mgmt/v1/rrecord", app, nil, 403},
		{"EdgeGallery's", "/mepcfg/mec_app_config/v1/rules/a/dns_rules", app, nil, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := send(h, "POST", tt.path, tt.token, func(r *http.Request) {
				if tt.change != nil {
					tt.change(r)
				}
			})
			var got map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil ||
				w.Header().Get("Content-Type") != "application/problem+json" {
				t.Fatalf("%d %s %s: %v", w.Code, w.Header(), w.Body, err)
			}
			want := map[string]any{"type": "about:blank", "title": http.StatusText(tt.want), "status": float64(tt.want),
				"detail": got["detail"], "instance": tt.path}
			if diff := cmp.Diff(want, got); diff != "" || w.Code != tt.want || got["detail"] == "" {
				t.Errorf("status %d (-want +got):\n%s", w.Code, diff)
			}
		})
	}
	if w := send(h, "GET", "/v2/zones", ""); w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("elsewhere: %s", w.Header())
	}
}

func TestMayActFor(t *testing.T) {
	app := []string{access.RoleApp}
	tests := []struct {
		name   string
		caller httpapi.Caller
		want   bool
	}{
		{"itself", httpapi.Caller{Roles: app, App: "app-1"}, true},
		{"another", httpapi.Caller{Roles: app, App: "app-2"}, false},
		{"another case", httpapi.Caller{Roles: app, App: "APP-1"}, false},
		{"none", httpapi.Caller{Roles: app}, false},
		{"nobody", httpapi.Caller{}, false},
		{"its name without the role", httpapi.Caller{Roles: []string{"member"}, App: "app-1"}, false},
		{"a gateway", httpapi.Caller{Roles: app, AnyApp: true}, true},
		{"a platform", httpapi.Caller{Roles: []string{"platform"}}, false},
		{"an admin", httpapi.Caller{Roles: []string{"admin", "member", "reader"}}, true},
	}
	for _, tt := range tests {
		if got := tt.caller.MayActFor("app-1"); got != tt.want {
			t.Errorf("%s: MayActFor = %v, want %v", tt.name, got, tt.want)
		}
	}
	if (httpapi.Caller{Roles: app}).MayActFor("") {
		t.Error("no application acts for no application")
	}
}

func TestByTokenOrJWT(t *testing.T) {
	r := accesstest.Open(t, nil)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys.pem")
	if err := os.WriteFile(keys, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	issuers, err := access.OpenIssuers([]access.IssuerConfig{{Issuer: "idp", Keys: keys}})
	if err != nil {
		t.Fatal(err)
	}
	signed := func(exp time.Time) string {
		s, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA,
			jwt.MapClaims{"iss": "idp", "sub": "app-2", "exp": exp.Unix()}).SignedString(private)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	f := httpapi.Frame{Access: r.Access, Areas: httpapi.AppAreas(), NoLogin: true,
		Identify: httpapi.ByTokenOrJWT(r.Access, issuers)}
	h := f.Wrap(http.HandlerFunc(whoAmI))
	good := signed(time.Now().Add(time.Minute))
	tests := []struct {
		name, token string
		want        int
		app         string
	}{
		{"token", r.App(t, "app-1"), 200, `"App":"app-1"`},
		{"JWT", good, 200, `"Who":"jwt app-2","ID":"app-2","Project":"","Roles":["app"],"App":"app-2"`},
		{"expired", signed(time.Now().Add(-time.Minute)), 401, ""},
		{"changed", good[:len(good)-4] + "AAAA", 401, ""},
		{"none", "", 401, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := send(h, "GET", "/applications/app-2/dns_rules", tt.token)
			if w.Code != tt.want || !strings.Contains(w.Body.String(), tt.app) {
				t.Errorf("%d %s, want %d with %s", w.Code, w.Body, tt.want, tt.app)
			}
		})
	}
	if w := send(httpapi.Frame{Access: r.Access}.Wrap(http.HandlerFunc(whoAmI)), "GET", "/v2/zones", good); w.Code != 401 {
		t.Errorf("a JWT on the management listener: %d, want 401", w.Code)
	}
}

// shown adds a verified certificate with this name to a request.
func shown(name string) func(*http.Request) {
	return func(r *http.Request) {
		c := &x509.Certificate{SerialNumber: big.NewInt(0xbeef), Subject: pkix.Name{CommonName: name}}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
	}
}

func TestByCertificate(t *testing.T) {
	twoNames := func(r *http.Request) {
		shown("mepm")(r)
		cn := asn1.ObjectIdentifier{2, 5, 4, 3}
		r.TLS.VerifiedChains[0][0].Subject.Names = []pkix.AttributeTypeAndValue{{Type: cn, Value: "shop"},
			{Type: cn, Value: "mepm"}}
	}
	unverified := func(r *http.Request) {
		shown("mepm")(r)
		r.TLS.VerifiedChains = nil
	}
	tests := []struct {
		name   string
		names  []string
		change func(*http.Request)
		want   int
	}{
		{"verified", nil, shown("mepm"), 200},
		{"one of the names", []string{"meo", "mepm"}, shown("mepm"), 200},
		{"none of the names", []string{"meo", "mepm-2"}, shown("mepm"), 401},
		{"without a name", nil, shown(""), 401},
		{"two common names", []string{"mepm"}, twoNames, 401},
		{"not verified", nil, unverified, 401},
		{"TLS without one", nil, func(r *http.Request) { r.TLS = &tls.ConnectionState{} }, 401},
		{"no TLS", nil, func(*http.Request) {}, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := httpapi.Frame{Areas: httpapi.PlatformAreas(), NoLogin: true,
				Identify: httpapi.ByCertificate(tt.names)}.Wrap(http.HandlerFunc(whoAmI))
			w := send(h, "PUT", "/mep/dns_server_mgmt/v1/rrecord", "", tt.change)
			if w.Code != tt.want || w.Code == 200 && !strings.Contains(w.Body.String(), `"Who":"certificate mepm","ID":"beef"`) {
				t.Errorf("%d %s, want %d", w.Code, w.Body, tt.want)
			}
		})
	}
}

// TestForeignPages sends the requests of a browser for a page of another site to listeners that need no token.
func TestForeignPages(t *testing.T) {
	anybody := httpapi.Anybody(httpapi.Caller{Who: "anybody", Roles: []string{access.RolePlatform}})
	listeners := map[string]httpapi.Identify{"anybody": anybody, "certificate": httpapi.ByCertificate(nil)}
	tests := []struct {
		name, method, header, value string
		want                        int
	}{
		{"no browser", "POST", "X", "y", 200},
		{"its own page", "POST", "Sec-Fetch-Site", "same-origin", 200},
		{"another site", "POST", "Sec-Fetch-Site", "cross-site", 403},
		{"an old browser", "POST", "Origin", "https://evil.test", 403},
		{"reading, which it is not shown", "GET", "Origin", "https://evil.test", 200},
	}
	for name, identify := range listeners {
		h := httpapi.Frame{Areas: httpapi.PlatformAreas(), NoLogin: true, Identify: identify}.Wrap(http.HandlerFunc(whoAmI))
		for _, tt := range tests {
			t.Run(name+" "+tt.name, func(t *testing.T) {
				w := send(h, tt.method, "/mep/config/a/dns_rules", "", shown("mepm"),
					func(r *http.Request) { r.Header.Set(tt.header, tt.value) })
				if w.Code != tt.want || w.Header().Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%d %s, want %d", w.Code, w.Body, tt.want)
				}
			})
		}
	}
}
