package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi/admin"
	"github.com/nameplane/nameplane/internal/httpapi/identity"
	"github.com/nameplane/nameplane/internal/httpapi/servermgmt"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// TestLargeRepliesTakeMemory asks every API outside of the zones API for its longest replies, on a server whose memory
// budget is smaller than each of them. It must refuse all of them before it reads their data.
func TestLargeRepliesTakeMemory(t *testing.T) {
	h := openServer(t, nil)
	h.fillAccounts(60)
	h.fillRules(60)
	for _, tt := range []struct {
		budget *budget.Budget
		want   int
	}{{nil, http.StatusOK}, {budget.New(100 << 10), http.StatusRequestEntityTooLarge}} {
		mux := http.NewServeMux()
		admin.API{Access: h.access}.Register(mux)
		identity.API{Access: h.access}.Register(mux)
		servermgmt.API{Service: h.rules}.Register(mux)
		h.rulesAPI().RegisterMm5(mux)
		platform := h.managementFrame(nil)
		platform.Limits.Budget = tt.budget
		apps := http.NewServeMux()
		h.rulesAPI().RegisterMp1(apps)
		app := h.appsFrame(nil)
		app.Limits.Budget = tt.budget
		for _, path := range []string{"/access/v1/tokens", "/access/v1/users", "/access/v1/projects", "/v3/projects",
			"/mep/dns_server_mgmt/v1/rrecord", "/mep/dns_server_mgmt/v1/zones", "/mep/config",
			"/mep/config/app-1/dns_rules", "/mepcfg/mec_app_config/v1/rules/app-1/dns_rules",
			"/mepcfg/mec_platform_config/v1/capabilities"} {
			if got := get(platform.Wrap(mux), path, h.admin); got.Code != tt.want {
				t.Errorf("GET %s: %d %.200s, want %d", path, got.Code, got.Body, tt.want)
			}
		}
		path := "/mec_app_support/v2/applications/app-1/dns_rules"
		if got := get(app.Wrap(apps), path, h.token(access.RoleApp, "app-1")); got.Code != tt.want {
			t.Errorf("GET %s: %d %.200s, want %d", path, got.Code, got.Body, tt.want)
		}
	}
}

func get(h http.Handler, path, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1"
	r.Header.Set("X-Auth-Token", token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// fillAccounts creates n tokens, users and projects.
func (h *server) fillAccounts(n int) {
	h.t.Helper()
	ctx, actor := h.t.Context(), store.Actor{Who: "test"}
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		if _, err := h.access.CreateProject(ctx, actor, name, ""); err != nil {
			h.t.Fatal(err)
		}
		if _, err := h.access.CreateUser(ctx, actor, access.UserSpec{Name: name, Project: name, Role: access.RoleReader,
			Password: "correct horse"}); err != nil {
			h.t.Fatal(err)
		}
		h.token(access.RoleReader, "")
	}
}

// fillRules creates n rules of one application, and n zones with a record of the platform.
func (h *server) fillRules(n int) {
	h.t.Helper()
	ctx, actor := h.t.Context(), store.Actor{Who: "test"}
	addr := netip.MustParseAddr("192.0.2.1")
	var records []mec.Record
	for i := range n {
		zone := dnsname.MustParse(fmt.Sprintf("n%d.example.org.", i))
		name := dnsname.MustParse("www." + zone.String())
		r := mec.Rule{App: "app-1", ID: fmt.Sprintf("r%d", i), Domain: "app." + zone.String(),
			Name: dnsname.MustParse("app." + zone.String()), Addr: addr}
		if _, err := h.rules.Create(ctx, actor, r, nil); err != nil {
			h.t.Fatal(err)
		}
		records = append(records, mec.Record{Zone: zone, Name: name, Type: rr.TypeA, Addrs: []netip.Addr{addr}})
	}
	if err := h.rules.PutRecords(ctx, actor, records); err != nil {
		h.t.Fatal(err)
	}
}
