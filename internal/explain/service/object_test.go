package service_test

import (
	"testing"

	"github.com/nameplane/nameplane/internal/explain/service"
)

// TestParseObject checks what a cluster has and a file must not have, and that other objects are refused.
func TestParseObject(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"a"},` +
			`"spec":{"rules":[{"host":"192.0.2.1"}]}}`,
	} {
		if o, err := service.ParseObject([]byte(text)); err != nil || o.Len() != 1 {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
	for _, text := range []string{"", "[]", "x", "{}", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`,
		`{"apiVersion":"v2","kind":"Service","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"Service"}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":7}}`,
		"{apiVersion: v1, kind: Service, metadata: &a {name: b}}"} {
		if o, err := service.ParseObject([]byte(text)); err == nil {
			t.Errorf("%q is accepted: %+v", text, o)
		}
	}
}
