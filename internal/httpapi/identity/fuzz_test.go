package identity

import (
	"errors"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/zone"
)

// FuzzDecodeLogin searches for bodies that are accepted without a method, or refused with an error that fail does not
// know.
func FuzzDecodeLogin(f *testing.F) {
	f.Add(`{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":"a","password":"b",` +
		`"domain":{"id":"default"}}}},"scope":{"project":{"name":"p"}}}}`)
	f.Add(`{"auth":{"identity":{"methods":["token"],"token":{"id":"x"}},"scope":"unscoped"}}`)
	f.Add(`{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"id":"x","secret":"y"}},` +
		`"scope":{"system":{"all":true}}}}`)
	f.Add(`{"auth":null}`)
	f.Add(`[[[[`)
	f.Fuzz(func(t *testing.T, body string) {
		l, err := decodeLogin(strings.NewReader(body))
		if err != nil {
			if !errors.As(err, new(*zone.InvalidError)) && !errors.Is(err, access.ErrDenied) {
				t.Errorf("decodeLogin(%q): %v", body, err)
			}
			return
		}
		if l.method != methodPassword && l.method != methodToken && l.method != methodCredential {
			t.Errorf("decodeLogin(%q) = %+v", body, l)
		}
	})
}
