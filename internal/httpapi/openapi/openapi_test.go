package openapi

import (
	"net/http/httptest"
	"testing"
)

// TestHandler checks that a client gets the whole document or 304, whatever conditions it sends: these are the only
// statuses that the document has for itself.
func TestHandler(t *testing.T) {
	h := Handler("v0")
	get := func(name, value string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", "/openapi.json", nil), httptest.NewRecorder()
		r.Header.Set(name, value)
		h.ServeHTTP(w, r)
		return w
	}
	whole := get("Accept", "*/*")
	tag, size := whole.Header().Get("ETag"), whole.Body.Len()
	for _, tt := range []struct {
		name, value  string
		status, size int
	}{
		{"If-None-Match", tag, 304, 0},
		{"If-None-Match", `"other"`, 200, size},
		{"Range", "bytes=0-9", 200, size},
		{"Range", "bytes=999999999-", 200, size},
		{"If-Match", `"other"`, 200, size},
	} {
		if w := get(tt.name, tt.value); w.Code != tt.status || w.Body.Len() != tt.size {
			t.Errorf("%s: %s: %d with %d bytes, want %d with %d", tt.name, tt.value, w.Code, w.Body.Len(), tt.status, tt.size)
		}
	}
}
