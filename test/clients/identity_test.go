package clients

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/identity"
)

// TestLogins logs in with each kind of credential of gophercloud, and finds the DNS service in the catalog.
func TestLogins(t *testing.T) {
	r := accesstest.Open(t, nil)
	mux := http.NewServeMux()
	identity.API{Access: r.Access}.Register(mux)
	versions := func(form func(base string) (int, any)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			status, body := form(httpapi.BaseURL(r, ""))
			httpapi.JSON(w, status, map[string]any{"versions": body})
		}
	}
	mux.HandleFunc("GET /dns/{$}", versions(func(base string) (int, any) { // like the Designate API
		return 200, []map[string]any{{"id": "v2", "status": "CURRENT",
			"links": []map[string]string{{"href": base + "/v2", "rel": "self"}}}}
	}))
	mux.HandleFunc("GET /{$}", versions(func(base string) (int, any) {
		return 300, map[string]any{"values": []any{identity.Version(base)}}
	}))
	var asked []string
	mux.HandleFunc("GET /v2/limits", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, httpapi.CallerOf(r.Context()).Who)
		httpapi.JSON(w, http.StatusOK, map[string]int{})
	})
	srv := httptest.NewServer(httpapi.WithDNSPath(httpapi.Frame{Access: r.Access}.Wrap(mux)))
	defer srv.Close()
	r.User(t, "alice", "correct horse", "admin", "member")
	id, secret, _ := strings.Cut(strings.TrimPrefix(r.Admin, "np_"), "_")
	tests := []struct {
		name string
		opts gophercloud.AuthOptions
		want string
	}{
		{"token as password", gophercloud.AuthOptions{Username: "admin", Password: r.Admin, DomainID: "default",
			TenantName: "admin"}, "token admin"},
		{"user", gophercloud.AuthOptions{Username: "alice", Password: "correct horse", DomainName: "Default",
			TenantName: "admin"}, "user alice"},
		{"application credential", gophercloud.AuthOptions{ApplicationCredentialID: id, ApplicationCredentialSecret: secret},
			"token admin"},
		{"token", gophercloud.AuthOptions{TokenID: r.Admin}, "token admin"},
		{"token with scope", gophercloud.AuthOptions{TokenID: r.Admin, DomainID: "default", TenantName: "admin"},
			"token admin"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			tt.opts.IdentityEndpoint = srv.URL + []string{"/v3", "", "/"}[i%3]
			provider, err := openstack.AuthenticatedClient(t.Context(), tt.opts)
			if err != nil {
				t.Fatalf("log in: %v", err)
			}
			dns, err := openstack.NewDNSV2(provider, gophercloud.EndpointOpts{Region: "RegionOne"})
			if err != nil {
				t.Fatalf("find the DNS service: %v", err)
			}
			res, err := dns.Get(t.Context(), dns.ServiceURL("limits"), nil, nil)
			if err != nil {
				t.Fatalf("ask it: %v", err)
			}
			res.Body.Close()
			if len(asked) != 1 || asked[0] != tt.want {
				t.Errorf("asked as %q, want %q", asked, tt.want)
			}
		})
	}
}
