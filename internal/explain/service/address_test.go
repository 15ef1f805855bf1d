package service_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain/service"
)

// TestAddressesAsHostnames checks that hostnames that are addresses are refused with their line, and that addresses in
// other fields and objects are not.
func TestAddressesAsHostnames(t *testing.T) {
	const version = "apiVersion: gateway.networking.k8s.io/v1\n"
	for text, want := range map[string]string{
		version + "kind: HTTPRoute\nmetadata: {name: x}\nspec:\n  hostnames:\n  - www.example.com\n  - 192.0.2.1\n": "" +
			"line 7: the hostname 192.0.2.1 is an address",
		version + "kind: Gateway\nmetadata: {name: x}\nspec:\n  listeners:\n  - {hostname: \"2001:db8::1\"}\n": "" +
			"line 6: the hostname 2001:db8::1 is an address",
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: networking.k8s.io/v1\n  kind: Ingress\n  metadata: {name: x}\n" +
			"  spec:\n    rules:\n    - host: 192.0.2.1\n": "line 9: the host 192.0.2.1 is an address",
		version + "kind: Gateway\nmetadata: {name: x}\nspec: {addresses: [{value: 192.0.2.1}]}\n":   "",
		version + "kind: Gateway\nmetadata: {name: x}\nstatus: {addresses: [{value: 192.0.2.1}]}\n": "",
		version + "kind: Gateway\nmetadata: {name: x}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n" +
			"spec: {host: 192.0.2.1}\n": "",
	} {
		_, err := service.Parse(strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
