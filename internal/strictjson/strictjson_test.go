package strictjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/strictjson"
	"github.com/nameplane/nameplane/internal/zone"
)

func TestUnmarshal(t *testing.T) {
	tests := []struct{ name, text, field string }{
		{"one of each", `{"a":1,"b":{"a":1,"b":[{"a":1},{"a":2}]},"ab":"a"}`, ""},
		{"keys in strings", `{"a":"{\"a\":1,\"a\":2}","b":"\\","c":"\\\"a"}`, ""},
		{"empty", `{"a":{},"b":[],"":0}`, ""},
		{"no object", ` [1, "a", "a", null] `, ""},
		{"twice", `{"a":1,"a":1}`, "a"},
		{"empty twice", `{"":1,"":1}`, `""`},
		{"with space", "{\"a\" : 1 ,\n\t\"a\" : 1}", "a"},
		{"in other case", `{"name":1,"NAME":1}`, "NAME"},
		{"folded by Unicode", `{"task":1,"taſK":1}`, "taſK"},
		{"escaped", `{"name":1,"n\u0061me":1}`, "name"},
		{"after an object", `{"a":{"b":1},"c":[{"d":1}],"a":2}`, "a"},
		{"inside", `{"x":{"changes":[{"a":1},{"a":1,"b":{},"a":2}]}}`, "x.changes[1].a"},
		{"in a list", `[[0],[{"a":1,"a":1}]]`, "[1][0].a"},
		{"a long key", `{"` + strings.Repeat("k", 1000) + `":1,"` + strings.Repeat("k", 1000) + `":1}`,
			strings.Repeat("k", 64)},
		{"not UTF-8", "{\"a\":\"\xff\"}", "body"},
		{"deep", strings.Repeat("[", 16) + strings.Repeat("]", 16), ""},
		{"too deep", strings.Repeat("[", 17) + strings.Repeat("]", 17), "body"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v any
			err := strictjson.Unmarshal([]byte(tt.text), &v)
			var bad *zone.InvalidError
			if errors.As(err, &bad) && bad.Field != tt.field || (err != nil) != (tt.field != "") {
				t.Errorf("Unmarshal(%s) = %v, want an error of %q", tt.text, err, tt.field)
			}
		})
	}
}

// FuzzUnmarshal compares with a slow check on the tokens of encoding/json.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`{"a":1,"A":{"b":[1,2,{"c":"\"","\u0063":2}]}}`, `[{"a":"}"},"]"]`, `{"":"",",":":"}`,
		`"`, `{"a`, "[]]", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		plain := json.Unmarshal([]byte(text), &v)
		err := strictjson.Unmarshal([]byte(text), &v)
		var bad *zone.InvalidError
		if plain != nil || errors.As(err, &bad) && bad.Field == strictjson.Whole && bad.Reason != "is there twice" {
			if err == nil {
				t.Errorf("Unmarshal(%q) took what encoding/json refuses: %v", text, plain)
			}
			return
		}
		if twice := hasTwice(json.NewDecoder(strings.NewReader(text))); twice != (err != nil) {
			t.Errorf("Unmarshal(%q) = %v, want an error: %v", text, err, twice)
		}
	})
}

// hasTwice reports whether an object of valid JSON has a duplicate key.
func hasTwice(d *json.Decoder) (twice bool) {
	d.UseNumber()
	t, _ := d.Token()
	open, ok := t.(json.Delim)
	if !ok {
		return false
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			k, _ := d.Token()
			folded := strings.ToLower(strings.ToUpper(k.(string)))
			twice = twice || seen[folded]
			seen[folded] = true
		}
		twice = hasTwice(d) || twice
	}
	_, _ = d.Token()
	return twice
}

func BenchmarkUnmarshal(b *testing.B) {
	text := []byte(`{"name":"www.example.org.","type":"A","ttl":300,` +
		`"records":["192.0.2.1","192.0.2.2"],"description":null}`)
	for name, fn := range map[string]func([]byte, any) error{"plain": json.Unmarshal, "strict": strictjson.Unmarshal} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var v map[string]json.RawMessage
				if err := fn(text, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
