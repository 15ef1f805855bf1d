package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// session sends requests to a server and validates every request and reply against the OpenAPI document.
type session struct {
	rig
	t        *testing.T
	router   routers.Router
	ops      map[string]operation
	sent     map[string]bool // "operation example" pairs that the server accepted
	received map[string]bool // "operation status" pairs of replies
}

func newSession(t *testing.T) *session {
	t.Helper()
	openapi3.DefineStringFormatValidator("uuid",
		openapi3.NewRegexpFormatValidator(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`))
	openapi3.DefineStringFormatValidator("uri", openapi3.NewRegexpFormatValidator(`^https?://\S+$`))
	openapi3.DefineStringFormatValidator("date-time", openapi3.NewRegexpFormatValidator(openapi3.FormatOfStringDateTime))
	openapi3filter.RegisterBodyDecoder("text/dns", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/external.dns.webhook+json", openapi3filter.JSONBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	r := newRig(t)
	doc := r.document(t)
	strict(doc)
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &session{r, t, router, operations(doc), map[string]bool{}, map[string]bool{}}
}

// strict forbids every property that is not in the document. The document itself allows more, because later versions of
// the server may add some.
func strict(doc *openapi3.T) {
	seen := map[*openapi3.Schema]bool{}
	var walk func(*openapi3.SchemaRef)
	walk = func(ref *openapi3.SchemaRef) {
		if ref == nil || ref.Value == nil || seen[ref.Value] {
			return
		}
		s := ref.Value
		seen[s] = true
		if len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
			no := false
			s.AdditionalProperties.Has = &no
		}
		walk(s.Items)
		walk(s.AdditionalProperties.Schema)
		for _, p := range s.Properties {
			walk(p)
		}
		for _, p := range s.OneOf {
			walk(p)
		}
	}
	for _, s := range doc.Components.Schemas {
		walk(s)
	}
	for _, r := range doc.Components.Responses {
		for _, content := range r.Value.Content {
			walk(content.Schema)
		}
	}
}

// call is one request: an operation of the document, with one of its examples or without a body.
type call struct {
	as      string            // the token; default: the administrator's
	params  map[string]string // the parameters of the path
	query   string
	headers map[string]string
	example string
	media   string               // the media type of the example; default application/json
	change  func(map[string]any) // changes the example
	bad     bool                 // the document must not allow the request
	check   func(*http.Response) // checks more of the reply
	gone    bool                 // the client disconnects before the server handles the request
}

// anyStatus lets send accept any status of the document.
const anyStatus = 0

// send sends a request and returns the JSON of the reply.
func (k *session) send(status int, id string, u call) map[string]any {
	k.t.Helper()
	op, ok := k.ops[id]
	if !ok {
		k.t.Fatalf("the document has no operation %s", id)
	}
	body, media := k.body(op, u)
	req := httptest.NewRequest(op.method, "http://127.0.0.1"+fill(op.path, u.params)+u.query, bytes.NewReader(body))
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	if u.as == "" {
		u.as = k.Admin
	}
	if u.as != "nobody" {
		req.Header.Set("X-Auth-Token", u.as)
	}
	for name, v := range u.headers {
		req.Header.Set(name, v)
	}
	input := k.checkRequest(id, req, body, u.bad)
	w := httptest.NewRecorder()
	ctx, leave := context.WithCancel(req.Context())
	defer leave()
	if u.gone {
		leave()
	}
	k.handler.ServeHTTP(w, req.WithContext(ctx))
	if w.Code != status && status != anyStatus {
		k.t.Fatalf("%s %s = %d %s, want %d", id, body, w.Code, w.Body, status)
	}
	k.checkResponse(id, input, w)
	k.received[id+" "+strconv.Itoa(w.Code)] = true
	if u.example != "" && w.Code < 300 {
		k.sent[id+" "+u.example] = true
	}
	if u.check != nil {
		u.check(w.Result())
	}
	var out any
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			k.t.Fatal(err)
		}
	}
	object, _ := out.(map[string]any) // lists were validated above; no test reads them
	return object
}

func fill(path string, params map[string]string) string {
	return parameter.ReplaceAllStringFunc(path, func(p string) string {
		if v := params[strings.Trim(p, "{}")]; v != "" {
			return v
		}
		return someID
	})
}

// body returns the example of the call, with its changes.
func (k *session) body(op operation, u call) (body []byte, media string) {
	k.t.Helper()
	if u.example == "" {
		return nil, ""
	}
	media = u.media
	if media == "" {
		media = "application/json"
	}
	example := op.RequestBody.Value.Content[media].Examples[u.example]
	if example == nil {
		k.t.Fatalf("%s has no example %q of %s", op.OperationID, u.example, media)
	}
	if text, ok := example.Value.Value.(string); ok {
		return []byte(text), media
	}
	b, err := json.Marshal(example.Value.Value)
	if err != nil {
		k.t.Fatal(err)
	}
	if u.change == nil {
		return b, media
	}
	var changed map[string]any
	if err := json.Unmarshal(b, &changed); err != nil {
		k.t.Fatal(err)
	}
	u.change(changed)
	b, err = json.Marshal(changed)
	if err != nil {
		k.t.Fatal(err)
	}
	return b, media
}

func (k *session) checkRequest(id string, req *http.Request, body []byte,
	bad bool) *openapi3filter.RequestValidationInput {
	k.t.Helper()
	route, params, err := k.router.FindRoute(req)
	if err != nil || route.Operation.OperationID != id {
		k.t.Fatalf("%s %s leads to %v, want %s (%v)", req.Method, req.URL, route, id, err)
	}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, SkipSettingDefaults: true,
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	err = openapi3filter.ValidateRequest(context.Background(), in)
	if bad != (err != nil) {
		k.t.Errorf("request %s %s %s: against the document: %v, want %v: %v", id, req.URL, body, err != nil, bad, err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return in
}

func (k *session) checkResponse(id string, in *openapi3filter.RequestValidationInput, w *httptest.ResponseRecorder) {
	k.t.Helper()
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: w.Code, Header: w.Header(),
		Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())), Options: in.Options}
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		k.t.Errorf("response to %s: %d %s: %v", id, w.Code, w.Body, err)
	}
	if documented := in.Route.Operation.Responses.Status(w.Code); documented != nil {
		if len(documented.Value.Content) == 0 && w.Body.Len() > 0 {
			k.t.Errorf("response to %s: %d has a body that is not in the document: %s", id, w.Code, w.Body)
		}
	}
}
