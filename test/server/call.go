package server

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// Response is a complete reply of an API.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// OK reports whether the request succeeded.
func (r Response) OK() bool { return r.Status/100 == 2 }

// Call sends a request. A path goes to the management API with the administrator's token; a URL is used without one.
// The body is JSON text or a value to marshal, nil or "" for none. Headers are written "Name: value". After an error,
// it is unknown whether the server executed the request.
func (s *Server) Call(method, url string, body any, headers ...string) (Response, error) {
	text, ok := body.(string)
	if !ok && body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return Response{}, err
		}
		text = string(b)
	}
	managed := strings.HasPrefix(url, "/")
	if managed {
		url = s.HTTP + url
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(text))
	if err != nil {
		return Response{}, err
	}
	if managed {
		req.Header.Set("X-Auth-Token", s.Token)
	}
	if text != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return s.Send(req)
}

// Send sends a request unchanged and reads the reply.
func (s *Server) Send(req *http.Request) (Response, error) {
	r, err := s.Client.Do(req)
	if err != nil {
		return Response{}, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return Response{r.StatusCode, r.Header, b}, err
}

// Must is like Call for a request that must succeed. The reply is unmarshalled into out unless that is nil.
func (s *Server) Must(method, url string, body, out any, headers ...string) Response {
	s.t.Helper()
	r, err := s.Call(method, url, body, headers...)
	if err != nil || !r.OK() {
		s.t.Fatalf("%s %s: %d %s %v", method, url, r.Status, r.Body, err)
	}
	if out != nil {
		if err := json.Unmarshal(r.Body, out); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, url, err, r.Body)
		}
	}
	return r
}

// CreateZone creates a primary zone and returns its path in the API.
func (s *Server) CreateZone(name string) string {
	s.t.Helper()
	var z struct{ ID string }
	s.Must(http.MethodPost, "/v2/zones", map[string]any{"name": name, "email": "admin@example.org"}, &z)
	return "/v2/zones/" + z.ID
}

// Metric returns the sum of the metrics whose name and labels begin with prefix, and 0 if there are none.
func (s *Server) Metric(prefix string) (sum float64) {
	s.t.Helper()
	pattern := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(prefix) + `[^ ]* ([0-9.e+]+)$`)
	for _, m := range pattern.FindAllSubmatch(s.Must(http.MethodGet, "/metrics", nil, nil).Body, -1) {
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			s.t.Fatal(err)
		}
		sum += v
	}
	return sum
}
