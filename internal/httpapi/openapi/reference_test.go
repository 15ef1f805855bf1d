package openapi

import (
	"encoding/json"
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/test/reference"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/reference")

// operation is what the reference says about an operation.
type operation struct {
	Tags      []string                   `json:"tags"`
	Summary   string                     `json:"summary"`
	Role      string                     `json:"x-nameplane-role"`
	Security  *[]any                     `json:"security"`
	Responses map[string]json.RawMessage `json:"responses"`
}

// role returns the least role that may call the operation.
func (o operation) role() string {
	switch {
	case o.Role != "":
		return o.Role
	case o.Security != nil:
		return "no token"
	}
	return "any"
}

// TestPage compares docs/reference/http-apis.md with the document that the server serves.
func TestPage(t *testing.T) {
	text, err := merge(spec, "")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tags  []struct{ Name, Description string }  `json:"tags"`
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	rows := map[string][][]string{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			raw, ok := doc.Paths[path][method]
			if !ok {
				continue
			}
			var o operation
			if err := json.Unmarshal(raw, &o); err != nil || len(o.Tags) != 1 || o.Summary == "" {
				t.Fatalf("%s %s: %v, %+v", method, path, err, o)
			}
			rows[o.Tags[0]] = append(rows[o.Tags[0]], []string{reference.Code(strings.ToUpper(method) + " " + path),
				reference.Text(o.Summary), o.role(), strings.Join(slices.Sorted(maps.Keys(o.Responses)), ", ")})
		}
	}
	var b strings.Builder
	for _, tag := range doc.Tags {
		b.WriteString("### " + tag.Name + "\n\n" + tag.Description + "\n\n" +
			reference.Table([]string{"route", "summary", "role", "status codes"}, rows[tag.Name]) + "\n")
		delete(rows, tag.Name)
	}
	for tag := range rows {
		t.Errorf("base.json does not describe the tag %s", tag)
	}
	reference.Compare(t, "../../../docs/reference/http-apis.md", "routes", b.String(), *update)
}
