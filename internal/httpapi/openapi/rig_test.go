package openapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/admin"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/httpapi/identity"
	"github.com/nameplane/nameplane/internal/httpapi/openapi"
)

// rig is every door behind the frame, on a store of its own, as the program has them.
type rig struct {
	accesstest.Rig
	handler   http.Handler
	designate *designate.API
}

func newRig(t *testing.T) rig {
	t.Helper()
	r := rig{Rig: accesstest.Open(t, nil)}
	r.designate = &designate.API{Publisher: r.Pub}
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
	admin.API{Access: r.Access, Backup: r.Pub.Backup}.Register(mux)
	mux.Handle("/", r.designate.Handler())
	r.handler = httpapi.Frame{Access: r.Access}.Wrap(mux)
	return r
}

// served is the document that the server sends, as JSON.
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

// operation is one of the document's.
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
