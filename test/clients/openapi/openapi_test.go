// Package openapi_test checks the OpenAPI document against the server with the validator of kin-openapi.
//
// It is not beside the document, because the root module would then require that library. Start with TestLive in
// live_test.go; session_test.go sends and validates requests.
package openapi_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/httpapi/externaldns"
	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/httpapi/powerdns"
	"github.com/nameplane/nameplane/internal/httpapi/servermgmt"
)

func TestValid(t *testing.T) {
	doc := newRig(t).document(t)
	if err := doc.Validate(t.Context(), openapi3.EnableSchemaFormatValidation(), openapi3.EnableSchemaPatternValidation(),
		openapi3.EnableExamplesValidation(), openapi3.EnableSchemaDefaultsValidation()); err != nil {
		t.Fatal(err)
	}
	if doc.Info.Version != "v1.2.3" {
		t.Errorf("info.version = %q, want that of the build", doc.Info.Version)
	}
}

func TestEntityTag(t *testing.T) {
	r := newRig(t)
	ask := func(tag string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("GET", "/openapi.json", nil)
		req.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, req)
		return w
	}
	first := ask(`"other"`)
	tag := first.Header().Get("ETag")
	if first.Code != http.StatusOK || tag == "" {
		t.Fatalf("%d, ETag %q", first.Code, tag)
	}
	if w := ask(tag); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("with the tag: %d and %d bytes, want 304 and none", w.Code, w.Body.Len())
	}
}

var pattern = regexp.MustCompile(`mux\.HandleFunc\("([A-Z]+ /[^"]*)"`)

// registered returns the "METHOD /path" patterns that the source of an API registers with its mux.
func registered(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range pattern.FindAllStringSubmatch(string(b), -1) {
		out = append(out, strings.TrimSuffix(m[1], "/{$}"))
	}
	if len(out) < 5 {
		t.Fatalf("%s registers %q: is the pattern still right?", file, out)
	}
	return out
}

// TestRoutes compares the operations of the document with the routes of the APIs.
func TestRoutes(t *testing.T) {
	r := newRig(t)
	const apis = "../../../internal/httpapi/"
	routes := append(registered(t, apis+"identity/identity.go"), registered(t, apis+"admin/admin.go")...)
	routes = append(routes, registered(t, apis+"explainapi/explainapi.go")...)
	routes = append(routes, "GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json")
	summaries := map[string]string{}
	for _, route := range designate.Routes() {
		routes = append(routes, route.Method+" "+route.Pattern)
		summaries[route.Method+" "+route.Pattern] = route.Description
	}
	for _, route := range externaldns.Routes()[1:] { // the first is GET /, which the zones API has too
		routes = append(routes, route.Method+" "+route.Pattern)
		summaries[route.Method+" "+route.Pattern] = route.Description
	}
	for _, route := range powerdns.Routes() {
		routes = append(routes, route.Method+" "+route.Pattern)
		summaries[route.Method+" "+route.Pattern] = route.Description
	}
	for route, description := range edgeRoutes() {
		routes = append(routes, route)
		summaries[route] = description
	}
	slices.Sort(routes)
	var documented []string
	for id, op := range operations(r.document(t)) {
		key := op.method + " " + op.path
		documented = append(documented, key)
		if want := summaries[key]; want != "" && op.Summary != want {
			t.Errorf("%s has the summary %q, its route says %q", id, op.Summary, want)
		}
	}
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Compact(routes), documented); diff != "" {
		t.Errorf("operations (-routes +document):\n%s", diff)
	}
}

// edgeRoutes returns the routes of the APIs for edge applications and platforms, with their descriptions. Mp1 is
// documented at one of its base paths.
func edgeRoutes() map[string]string {
	out := map[string]string{}
	for _, r := range slices.Concat(mecapi.Mp1Routes(), mecapi.Mm5Routes()) {
		if r.Description != "" { // without one the route is for an object whose id is also a path
			out[r.Method+" "+r.Pattern] = r.Description
		}
	}
	for _, r := range servermgmt.Routes() {
		out[r.Method+" "+r.Pattern] = r.Description
	}
	return out
}

const someID = "00000000-0000-4000-8000-000000000000"

var parameter = regexp.MustCompile(`\{[a-z_]+\}`)

// TestServed calls every operation of the document: the server must know all of them.
func TestServed(t *testing.T) {
	r := newRig(t)
	for id, op := range operations(r.document(t)) {
		req := httptest.NewRequest(op.method, parameter.ReplaceAllString(op.path, someID), nil)
		req.Header.Set("X-Auth-Token", r.Admin)
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, req)
		body := w.Body.String()
		if w.Code == http.StatusMethodNotAllowed || strings.Contains(body, "There is nothing at") ||
			strings.Contains(body, "knows logins and projects only") {
			t.Errorf("%s: %s %s = %d %s", id, op.method, op.path, w.Code, body)
		}
	}
}

// TestRoles calls every operation with each role: the server must refuse exactly the roles that the document excludes.
func TestRoles(t *testing.T) {
	r := newRig(t)
	ranks := map[string]int{"": 0, "reader": 1, "member": 2, "admin": 3, "platform": 3, "app": 3, "metrics": 3}
	for _, role := range []string{"", "reader", "member"} {
		token := ""
		if role != "" {
			token, _ = r.Token(t, role, "admin", role)
		}
		for id, op := range operations(r.document(t)) {
			need, _ := op.Extensions["x-nameplane-role"].(string)
			req := httptest.NewRequest(op.method, parameter.ReplaceAllString(op.path, someID), nil)
			req.Header.Set("X-Auth-Token", token)
			w := httptest.NewRecorder()
			r.handler.ServeHTTP(w, req)
			want := 0
			switch {
			case role == "" && (op.Security == nil || len(*op.Security) > 0):
				want = http.StatusUnauthorized
			case ranks[role] < ranks[need]:
				want = http.StatusForbidden
			}
			if want != 0 && w.Code != want {
				t.Errorf("%s needs %q; for %q it answers %d %s, want %d", id, need, role, w.Code, w.Body, want)
			}
			if want == 0 && w.Code == http.StatusForbidden && strings.Contains(w.Body.String(), "role") {
				t.Errorf("%s needs %q; for %q it answers %d %s", id, need, role, w.Code, w.Body)
			}
		}
	}
}

// TestComplete checks that everything has a description, that every body has an example, and that nothing is unused.
func TestComplete(t *testing.T) {
	r := newRig(t)
	doc, text := r.document(t), string(r.served(t))
	tags := map[string]bool{}
	for id, op := range operations(doc) {
		if op.Summary == "" || op.Description == "" || len(op.Tags) != 1 || id == "" {
			t.Errorf("%s %s lacks a summary, a description, an id or a tag", op.method, op.path)
		}
		for _, tag := range op.Tags {
			tags[tag] = true
		}
		if op.RequestBody == nil {
			continue
		}
		for media, content := range op.RequestBody.Value.Content {
			if len(content.Examples) == 0 {
				t.Errorf("%s has no example of a body of %s", id, media)
			}
		}
	}
	var listed []string
	for _, tag := range doc.Tags {
		listed = append(listed, tag.Name)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(tags)), slices.Sorted(slices.Values(listed))); diff != "" {
		t.Errorf("tags (-used +listed):\n%s", diff)
	}
	for kind, names := range map[string][]string{"schemas": slices.Collect(maps.Keys(doc.Components.Schemas)),
		"responses":  slices.Collect(maps.Keys(doc.Components.Responses)),
		"headers":    slices.Collect(maps.Keys(doc.Components.Headers)),
		"parameters": slices.Collect(maps.Keys(doc.Components.Parameters))} {
		for _, name := range names {
			if !strings.Contains(text, `"#/components/`+kind+"/"+name+`"`) {
				t.Errorf("%s %s is not used", kind, name)
			}
		}
	}
}

// TestParameters sends the filters and sort keys of all lists to each list. The list must accept those that the
// document gives it, and refuse the others.
func TestParameters(t *testing.T) {
	k := newSession(t)
	zone := map[string]string{"zone_id": str(k.send(202, "createZone", call{example: "short"}), "id")}
	filters, keys := map[string]bool{}, map[string]bool{}
	lists := map[string]operation{}
	for id, op := range k.ops {
		sort := op.Parameters.GetByInAndName("query", "sort_key")
		if sort == nil {
			continue
		}
		lists[id] = op
		for _, key := range sort.Schema.Value.Enum {
			keys[key.(string)] = true
		}
		for _, p := range op.Parameters {
			if strings.HasPrefix(p.Ref, "#/components/parameters/filter_") {
				filters[p.Value.Name] = true
			}
		}
	}
	if len(lists) < 10 || len(keys) < 10 || len(filters) < 10 {
		t.Fatalf("%d lists, %d sort keys, %d filters: too few", len(lists), len(keys), len(filters))
	}
	k.send(400, "listHistory", call{params: zone, query: "?name=*"})
	for id, op := range lists {
		for name := range filters {
			want := 400
			if op.Parameters.GetByInAndName("query", name) != nil {
				want = 200
			}
			k.send(want, id, call{params: zone, query: "?" + name + "=*"})
		}
		for key := range keys {
			known := slices.Contains(op.Parameters.GetByInAndName("query", "sort_key").Schema.Value.Enum, any(key))
			want := 400
			if known {
				want = 200
			}
			k.send(want, id, call{params: zone, query: "?sort_key=" + key, bad: !known})
		}
		for _, rest := range []string{"sort_dir=asc", "sort_dir=desc", "limit=max", "limit=5000"} {
			k.send(200, id, call{params: zone, query: "?" + rest})
		}
	}
}
