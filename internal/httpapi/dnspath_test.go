package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi"
)

// TestWithDNSPath checks which path a handler sees for the path of a request.
func TestWithDNSPath(t *testing.T) {
	var seen string
	h := httpapi.WithDNSPath(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.URL.EscapedPath() }))
	for path, want := range map[string]string{"/": "/", "/dns": "/dns", "/dns/": "/dns/", "/dns/v2": "/v2",
		"/dns/v2/zones/": "/v2/zones/", "/dnssec": "/dnssec", "/v2/dns/x": "/v2/dns/x", "/dns/dns/v2": "/dns/v2",
		"/dns/v2/quotas/a%2Fb": "/v2/quotas/a%2Fb"} {
		if h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)); seen != want {
			t.Errorf("GET %s reaches %s, want %s", path, seen, want)
		}
	}
}
