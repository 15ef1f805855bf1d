package admin_test

import (
	"encoding/json"
	"testing"
)

// FuzzBodies sends arbitrary bytes to every operation that has a body. There must be no panic and no status of 500 or
// more, and every reply must be JSON.
func FuzzBodies(f *testing.F) {
	r := newRig(f, nil)
	code, body := r.do(r.Admin, "POST", "/access/v1/users",
		`{"name":"alice","password":"correct horse battery","role":"member"}`)
	if code != 201 {
		f.Fatalf("create user: %d %s", code, body)
	}
	alice := field(f, body, "user", "id")
	calls := [][2]string{{"POST", "/access/v1/tokens"}, {"POST", "/access/v1/users"}, {"POST", "/access/v1/projects"},
		{"PATCH", "/access/v1/users/" + alice}}
	for i := range calls {
		for _, b := range []string{"", "{}", "null", "[]", "{\"name\":\"\\u0000\\ud800\"}",
			`{"name":"a","role":"member","project":"admin"}`,
			`{"name":"a","role":"app","app":"x","expires_at":null}`,
			`{"name":"a","role":"reader","expires_at":"0000-01-01T00:00:00Z"}`,
			`{"name":"b","password":"correct horse battery","role":"admin"}`, `{"password":7}`, `{"password":"short"}`,
			`{"Name":"a"}`,
			`{"name":"c","description":"d"}`, `{"name":"c","name":"d"}`, `{"name":"e","colour":"red"}`} {
			f.Add(uint8(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		call := calls[int(which)%len(calls)]
		code, reply := r.do(r.Admin, call[0], call[1], body)
		if code >= 500 || !json.Valid([]byte(reply)) {
			t.Errorf("%s %s %q = %d %s", call[0], call[1], body, code, reply)
		}
	})
}
