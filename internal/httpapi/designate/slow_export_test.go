package designate_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
)

// slowClient checks at each write of the reply that no View of the store is open.
type slowClient struct {
	*httptest.ResponseRecorder
	s *server
}

func (c slowClient) Write(b []byte) (int, error) {
	if n := c.s.reads.Open(); n != 0 {
		c.s.t.Errorf("%d Views of the store are open while the client reads", n)
	}
	return c.ResponseRecorder.Write(b)
}

// TestSlowExport checks that an export holds no View of the store open while the client reads it: the file of the store
// would grow with every change meanwhile.
func TestSlowExport(t *testing.T) {
	s := newServer(t, designate.Settings{})
	s.fill(alice, "example.org.", 10)
	z := s.zonePathOf(alice, "example.org.")
	id := s.as(alice, 202, "POST "+z+"/tasks/export", "").str("id")
	r := httptest.NewRequest(http.MethodGet, "/v2/zones/tasks/exports/"+id+"/export", nil)
	w := slowClient{httptest.NewRecorder(), s}
	as(alice, s.handler).ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Body.Len() == 0 {
		t.Errorf("answered %d with %d bytes", w.Code, w.Body.Len())
	}
}
