package designate

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var plainCases = []string{
	`{}`, ` { } `, `{"records":["192.0.2.1"]}`, "{\n \"records\" : [ \"a\" , \"b\" ] ,\t\"ttl\":300 , \"x\":null}\r\n",
	`{"a":{"b":[1,{"c":"}"}]},"d":"]","e":"\\"","f":-1.5e3,"g":true}`, `{"a":1,"a":2}`, `{"":""}`, `{"a":[]}`, `{"a":[ ]}`,
	`{"\u0061":1}`, `{"a\\"":1}`, `{"a":["\u0061"]}`, `{"a":["x",null]}`, `{"a":[1]}`, `{"a":["x",["y"]]}`, `{"é":["ü"]}`,
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
	for key, raw := range fields {
		list, ok := plainTexts(raw)
		if !ok {
			continue
		}
		var want []string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%s: %q was read by hand, and encoding/json says %v", key, raw, err)
		}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Fatalf("%s: %q (-encoding/json +by hand):\n%s", key, raw, diff)
		}
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
