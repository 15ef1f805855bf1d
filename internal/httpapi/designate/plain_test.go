package designate

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var plainCases = []string{
	`{}`, ` { } `, `{"records":["192.0.2.1"]}`, "{\n \"records\" : [ \"a\" , \"b\" ] ,\t\"ttl\":300 , \"x\":null}\r\n",
	`{"a":{"b":[1,{"c":"}"}]},"d":"]","e":"\\"","f":-1.5e3,"g":true}`, `{"a":1,"a":2}`, `{"":""}`, `{"a":[]}`, `{"a":[ ]}`,
	`{"\u0061":1}`, `{"a\\"":1}`, `{"a":["\u0061"]}`, `{"a":["x",null]}`, `{"a":[1]}`, `{"a":["x",["y"]]}`, `{"é":["ü"]}`,
	`{"a":[{"b":1},{"c":[{}]} , {"\u0064":"e"},null,[],"f",-1.5]}`, `{"a":"plain","b":"\t","c":"ü"}`,
	`{"a":1`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":["x",]}`, `{"a":"x}`, `{"a":"\`, `{`, ``, `[]`, `null`, `"a"`, `{} {}`, `{}x`, "{\"a\":\"\x01\"}",
}

// comparePlain compares what is read by hand with what encoding/json reads.
func comparePlain(t *testing.T, body []byte) {
	t.Helper()
	fields := plainObject(body)
	if fields == nil {
		return // encoding/json reads it
	}
	want := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatalf("%q was read by hand, and encoding/json says %v", body, err)
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Fatalf("%q (-encoding/json +by hand):\n%s", body, diff)
	}
	for _, raw := range fields {
		texts, ok := plainTexts(raw)
		compareValue(t, raw, texts, ok)
		text, ok := plainText(raw)
		compareValue(t, raw, text, ok)
		items, ok := plainItems(raw)
		compareValue(t, raw, items, ok)
		for _, item := range items {
			if in, err := parseItem("change", item); err == nil {
				compareValue(t, item, in.fields, true)
			}
		}
	}
}

// compareValue compares a value that was read by hand, if it was.
func compareValue[T any](t *testing.T, raw json.RawMessage, got T, ok bool) {
	t.Helper()
	if !ok {
		return
	}
	var want T
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatalf("%q was read by hand, and encoding/json says %v", raw, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%q (-encoding/json +by hand):\n%s", raw, diff)
	}
}

func TestPlain(t *testing.T) {
	for _, body := range plainCases {
		comparePlain(t, []byte(body))
	}
	if fields := plainObject([]byte(plainCases[2])); fields == nil {
		t.Errorf("%s is not read by hand", plainCases[2])
	} else if list, ok := plainTexts(fields["records"]); !ok || len(list) != 1 {
		t.Errorf("records of %s = %q, %v by hand", plainCases[2], list, ok)
	}
	if list, ok := plainItems(json.RawMessage(`[{"a":1}, {"b":2}]`)); !ok || len(list) != 2 {
		t.Errorf("two items = %q, %v by hand", list, ok)
	}
}

func FuzzPlain(f *testing.F) {
	for _, body := range plainCases {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := parseInput("recordset", body); err == nil { // it is UTF-8 then
			comparePlain(t, body)
		}
	})
}
