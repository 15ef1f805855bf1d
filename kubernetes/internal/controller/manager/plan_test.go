package manager

import (
	"cmp"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// TestPlanName calls the objects of www.example.com o0, o1 and so on, in the order in which they are tried.
func TestPlanName(t *testing.T) {
	www := must.Pattern("www.example.com")
	short, full := map[string]string{}, map[string]string{}
	for c := range uint32(maxCollisions) {
		short[enforce.ObjectName(www, c)] = fmt.Sprintf("o%d", c)
		full[fmt.Sprintf("o%d", c)] = "other.example.com."
	}
	long := func(o string) string {
		for object, s := range short {
			if s == o {
				return object
			}
		}
		return o
	}
	tests := []struct {
		name string
		have []string
		all  map[string]string // object -> DNS name
		want plan
		fail bool
	}{
		{"free", nil, nil, plan{create: "o0"}, false},
		{"there", []string{"o0"}, map[string]string{"o0": "www.example.com."}, plan{}, false},
		{"collision", nil, map[string]string{"o0": "other.example.com."}, plan{create: "o1", passed: 1}, false},
		{"two collisions", nil, map[string]string{"o0": "other.example.com.", "o1": "third.example.com."},
			plan{create: "o2", passed: 2}, false},
		{"there, after a collision", []string{"o1"}, map[string]string{"o0": "other.example.com.", "o1": "www.example.com."},
			plan{passed: 1}, false},
		{"stays when the one before has gone", []string{"o1"}, map[string]string{"o1": "www.example.com."}, plan{}, false},
		{"an extra one", []string{"mine", "o0"}, map[string]string{"o0": "www.example.com."}, plan{remove: []string{"mine"}},
			false},
		{"only an extra one", []string{"mine"}, nil, plan{create: "o0", remove: []string{"mine"}}, false},
		{"two of its own", []string{"o1", "o0"}, map[string]string{"o0": "www.example.com.", "o1": "www.example.com."},
			plan{remove: []string{"o1"}}, false},
		{"no room", nil, full, plan{passed: maxCollisions}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var have []string
			for _, o := range tt.have {
				have = append(have, long(o))
			}
			got, err := planName(www, have, func(o string) string { return tt.all[short[o]] })
			if (err != nil) != tt.fail {
				t.Errorf("error %v", err)
			}
			got.create = short[got.create]
			for i, o := range got.remove {
				got.remove[i] = cmp.Or(short[o], o)
			}
			if len(got.remove) == 0 {
				got.remove = nil
			}
			if diff := gocmp.Diff(tt.want, got, gocmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
