package openapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/admin"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/httpapi/explainapi"
	"github.com/nameplane/nameplane/internal/httpapi/externaldns"
	"github.com/nameplane/nameplane/internal/httpapi/identity"
	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/httpapi/openapi"
	"github.com/nameplane/nameplane/internal/httpapi/powerdns"
	"github.com/nameplane/nameplane/internal/httpapi/servermgmt"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// rig is every API inside a Frame, as in the program, with a store of its own.
type rig struct {
	accesstest.Rig
	handler   http.Handler
	designate *designate.API
}

func newRig(t *testing.T) rig {
	t.Helper()
	aliases := alias.New(alias.Options{})
	r := rig{Rig: accesstest.OpenWith(t, nil, publish.Options{Derive: aliases.Derive, Quotas: publish.DefaultQuotas()})}
	if err := aliases.Open(r.Pub); err != nil {
		t.Fatal(err)
	}
	aliases.SetTracker(follow.New(follow.Options{Changed: aliases.Changed})) // it does not run, so lookups never end
	spool, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spool.Close() })
	r.designate = &designate.API{Publisher: r.Pub, Aliases: aliases, Identity: identity.Version,
		Peers: designate.Peers{Refresh: func(uuid.UUID, bool) {},
			Progress: func(uuid.UUID) []transfer.Progress { return nil },
			Copy:     func(uuid.UUID) transfer.Copy { return transfer.Copy{Problem: "no answer"} }},
		Settings: designate.Settings{Nameservers: []designate.Nameserver{
			{Hostname: dnsname.MustParse(designate.DefaultNameserver), Priority: 1}},
			DefaultTTL: designate.DefaultTTL, MaxImport: designate.DefaultMaxImport, Spool: spool}}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.designate.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", httpapi.Healthz)
	mux.Handle("GET /readyz", httpapi.Readyz(slog.New(slog.DiscardHandler), httpapi.Check{Name: "store", OK: r.Pub.Check}))
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.NewRegistry(), promhttp.HandlerOpts{}))
	mux.Handle("GET /openapi.json", openapi.Handler("v1.2.3"))
	identity.API{Access: r.Access}.Register(mux)
	admin.API{Access: r.Access, Backup: r.Pub.Backup, Scrub: func() (int, error) { return 12, nil }}.Register(mux)
	r.edge(t, mux)
	r.explain(t, mux)
	r.webhook(mux)
	(&powerdns.API{Publisher: r.Pub, Zones: r.designate, Spool: spool, Notify: func(zone.Zone) {},
		Statistics: func() map[string]uint64 { return map[string]uint64{"uptime": 1} }}).Register(mux)
	mux.Handle("/", r.designate.Handler())
	member := []string{access.RoleMember}
	areas := append(httpapi.ManagementAreas(),
		httpapi.Area{Prefix: "/records", Roles: member, Error: externaldns.Error},
		httpapi.Area{Prefix: "/adjustendpoints", Roles: member, Error: externaldns.Error},
		httpapi.Area{Prefix: "/mec_app_support/", Roles: []string{access.RoleApp}, Error: httpapi.Problem},
		httpapi.Area{Prefix: "/mep/config", Roles: []string{access.RolePlatform}, Error: httpapi.Problem})
	r.handler = httpapi.Frame{Access: r.Access, Areas: areas, Public: []string{"/health"}}.Wrap(mux)
	return r
}

// webhook adds the API for external-dns. Its first path is that of the version document here.
func (r rig) webhook(mux *http.ServeMux) {
	own := http.NewServeMux()
	externaldns.New(r.designate, nil).Register(own)
	mux.Handle("/records", own)
	mux.Handle("/adjustendpoints", own)
}

// edge adds the APIs for edge applications and platforms. Event streams end at once.
func (r rig) edge(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	callbacks := mecapi.NewCallbacks([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, specialaddr.Table{}, false)
	service, err := mec.Open(t.Context(), r.Pub, mec.Options{Deliver: callbacks.Deliver})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended, done := make(chan error), make(chan struct{})
	close(done)
	go func() { ended <- service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	api := mecapi.API{Service: service, Callbacks: callbacks, Done: done,
		Revoke: func(context.Context, store.Actor, string) (int, error) { return 0, nil }}
	api.RegisterMp1(mux)
	api.RegisterMm5(mux)
	servermgmt.API{Service: service}.Register(mux)
}

// explain adds the API for scans of names. Its scans find one address for every name, and no problems.
func (r rig) explain(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	scan := func(_ context.Context, name dnsname.Name, req scans.Request, _ []explain.Past,
		_ func(scans.Progress)) (*explain.Facts, error) {
		return &explain.Facts{Schema: explain.Schema, Kind: req.Kind, Name: name, Zone: name, At: time.Now()}, nil
	}
	parse := func(s string) (dnsname.Name, error) {
		name, _, err := gather.ParseInput(s)
		return name, err
	}
	service, err := scans.Open(r.Pub, scan, scans.Options{Parse: parse, Share: time.Nanosecond, PerTarget: 5,
		CheckService: func(scans.Request) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- service.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	explainapi.API{Scans: service, Resolvers: resolvers.Load()}.Register(mux)
}

// served returns the document that the server sends, as JSON.
func (r rig) served(t *testing.T) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) {
		t.Fatalf("GET /openapi.json = %d %s %.200s", w.Code, w.Header(), w.Body)
	}
	return w.Body.Bytes()
}

func (r rig) document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(r.served(t))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// operation is an operation of the document.
type operation struct {
	method, path string
	item         *openapi3.PathItem
	*openapi3.Operation
}

func operations(doc *openapi3.T) map[string]operation {
	out := map[string]operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			out[op.OperationID] = operation{method, path, item, op}
		}
	}
	return out
}
