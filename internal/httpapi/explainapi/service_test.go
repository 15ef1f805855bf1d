package explainapi_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/scans"
)

// TestService checks the requests for a service: what is accepted is passed on, and nothing else is.
func TestService(t *testing.T) {
	var mu sync.Mutex // guards got
	var got []scans.Request
	r := newRig(t, scans.Options{CheckService: func(req scans.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if req.PointsTo == "" {
			return errors.New("the target is missing")
		}
		got = append(got, req)
		return nil
	}})
	close(r.gate)
	many := `"` + strings.Repeat(`ns1.example.net","`, 32) + `ns1.example.net"`
	for _, body := range []string{
		`{"kind":"service","target":"www.example.com"}`,
		`{"kind":"service","target":"www.example.com","points_to":"a.example","proof_dns":"x"}`,
		`{"kind":"service","target":"www.example.com","points_to":"a.example","proof_ns":"x"}`,
		`{"kind":"service","target":"www.example.com","points_to":"a.example","proof_ns":[` + many + `]}`,
		`{"kind":"scan","target":"www.example.com","proof_ns":["ns1.example.net"]}`,
		`{"kind":"scan","target":"www.example.com","proof_http":"http://www.example.com/=x"}`,
	} {
		if res := r.do(t, r.Admin, "POST", "/explain/v1/scans", body); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d, want %d", body, res.StatusCode, http.StatusBadRequest)
		}
	}
	want := scans.Request{Kind: explain.KindService, Target: "www.example.com", PointsTo: "edge.example.net",
		Proof: "_t.example.com=a", ProofHTTP: "http://www.example.com/t=b", ProofNS: []string{"ns1.example.net"}}
	res := r.do(t, r.Admin, "POST", "/explain/v1/scans", `{"kind":"service","target":"www.example.com",
		"points_to":"edge.example.net","proof":"_t.example.com=a","proof_http":"http://www.example.com/t=b",
		"proof_ns":["ns1.example.net"]}`)
	if res.StatusCode != http.StatusAccepted {
		t.Fatalf("a service: %d", res.StatusCode)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) == 0 {
		t.Fatal("the request was not checked")
	}
	for _, req := range got { // when it is accepted, and when it begins
		if diff := cmp.Diff(want, req); diff != "" {
			t.Errorf("the request (-want +got):\n%s", diff)
		}
	}
}
