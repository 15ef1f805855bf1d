package crds_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/nameplane/nameplane/kubernetes/api/crds"
	"github.com/nameplane/nameplane/test/reference"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/reference")

type object = map[string]any

// TestPage compares docs/reference/crds.md with the definitions.
func TestPage(t *testing.T) {
	comparePart(t, "fields", crds.YAML())
	comparePart(t, "service fields", crds.Service())
	comparePart(t, "domain fields", crds.Domains())
}

// comparePart compares a part of the page with definitions.
func comparePart(t *testing.T, part string, definitions []byte) {
	t.Helper()
	var b strings.Builder
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(definitions), 4096)
	for {
		var doc object
		if err := decoder.Decode(&doc); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		get := func(path string) any {
			v, err := find(doc, path)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		root := get("spec.versions.0.schema.openAPIV3Schema").(object)
		fmt.Fprintf(&b, "## %s\n\n%s\n", get("spec.names.kind"),
			reference.Prose("", "", reference.Text(root["description"].(string))))
		fmt.Fprintf(&b, "`apiVersion: %s/%s`, %s, resource `%s`\n\n", get("spec.group"), get("spec.versions.0.name"),
			strings.ToLower(get("spec.scope").(string)), get("spec.names.plural"))
		var rows [][]string
		fields(root, "", &rows)
		b.WriteString(reference.Table([]string{"field", "type", "validation", "meaning"}, rows) + "\n")
	}
	reference.Compare(t, root+"/docs/reference/crds.md", part, b.String(), *update)
}

// fields appends the rows of the fields of an object, those of the top level that every object has excepted.
func fields(schema object, path string, rows *[][]string) {
	properties, _ := schema["properties"].(object)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if path == "" && (name == "apiVersion" || name == "kind") {
			continue
		}
		field := properties[name].(object)
		at := strings.TrimPrefix(path+"."+name, ".")
		kind := typeOf(field)
		rules := validations(field)
		if slices.Contains(required, any(name)) {
			rules = append([]string{"required"}, rules...)
		}
		description, _ := field["description"].(string)
		*rows = append(*rows, []string{reference.Code(at), kind, strings.Join(rules, "; "), reference.Text(description)})
		fields(field, at, rows)
		if items, ok := field["items"].(object); ok {
			fields(items, at+"[]", rows)
		}
	}
}

// typeOf returns the type of a field, with its format, and that of the elements of a list or map.
func typeOf(field object) string {
	kind := fmt.Sprint(field["type"])
	if items, ok := field["items"].(object); ok {
		return "list of " + typeOf(items)
	}
	if values, ok := field["additionalProperties"].(object); ok {
		return "map of " + typeOf(values)
	}
	if format, ok := field["format"].(string); ok {
		kind += " (" + format + ")"
	}
	return kind
}

// shown are the keys of a schema that are no validation, or that another column has.
var shown = []string{"description", "type", "format", "properties", "items", "required", "additionalProperties"}

// validations returns every other key of a schema, and those of the elements of a list.
func validations(field object) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(field)) {
		if slices.Contains(shown, key) {
			continue
		}
		name := strings.TrimPrefix(key, "x-kubernetes-")
		switch v := field[key].(type) {
		case []any:
			var each []string
			for _, e := range v {
				if rule, ok := e.(object); ok && rule["rule"] != nil {
					e = rule["rule"]
				} else if ok {
					e = rule["format"]
				}
				each = append(each, reference.Code(fmt.Sprint(e)))
			}
			out = append(out, name+" "+strings.Join(each, ", "))
		default:
			out = append(out, name+" "+reference.Code(fmt.Sprint(v)))
		}
	}
	if items, ok := field["items"].(object); ok {
		for _, rule := range validations(items) {
			out = append(out, "each: "+rule)
		}
	}
	return out
}
