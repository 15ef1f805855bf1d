package hostname

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func unstructuredOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestName checks that names of reports are legal, stable and different.
func TestName(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 60)+".", 4) + "test"
	seen := map[string]string{}
	for host, want := range map[string]string{
		"www.example.test":     "www.example.test",
		"*.example.test":       "wildcard-b4a133d7820184e7.example.test",
		Name("*.example.test"): "",
		"hostname-x.test":      "",
		"*":                    "",
		"a_b.example.test":     "",
		"Ümlaut.test":          "",
		long:                   long,
		"*." + long:            "",
	} {
		got := Name(host)
		if want != "" && got != want {
			t.Errorf("Name(%s) = %s, want %s", host, got, want)
		}
		if wrong := validation.IsDNS1123Subdomain(got); len(wrong) > 0 {
			t.Errorf("Name(%s) = %s: %v", host, got, wrong)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s are both %s", host, other, got)
		}
		seen[got] = host
	}
}
