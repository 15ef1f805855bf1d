package mechttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
)

// TestMediaType reads bodies with different media types, and without one.
func TestMediaType(t *testing.T) {
	page := http.Header{"Origin": {"https://example.org"}}
	fetch := http.Header{"Sec-Fetch-Site": {"cross-site"}}
	for _, tt := range []struct {
		name, method, media string
		header              http.Header
		taken               bool
	}{
		{"JSON", "POST", "application/json", nil, true},
		{"JSON with a character set", "POST", "application/json; charset=utf-8", nil, true},
		{"JSON of a kind", "PUT", "application/merge-patch+json", nil, true},
		{"JSON from a page", "POST", "application/json", page, true},
		{"a form", "POST", "application/x-www-form-urlencoded", nil, false},
		{"text", "PUT", "text/plain", nil, false},
		{"no type that is one", "POST", "json", nil, false},
		{"none, as EdgeGallery's MEPM", "POST", "", nil, true},
		{"none from a page", "POST", "", page, false},
		{"none from a page without an origin", "POST", "", fetch, false},
		{"none with a PUT, which no form makes", "PUT", "", page, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/", strings.NewReader("{}"))
			if tt.header != nil {
				r.Header = tt.header.Clone()
			}
			if tt.media != "" {
				r.Header.Set("Content-Type", tt.media)
			}
			b, err := mechttp.Read(httptest.NewRecorder(), r, 10)
			if refused := new(mechttp.Fault); tt.taken != (err == nil && string(b) == "{}") ||
				!tt.taken && (!errors.As(err, &refused) || refused.Status != http.StatusUnsupportedMediaType) {
				t.Errorf("Read = %q, %v, want taken %v", b, err, tt.taken)
			}
		})
	}
}
