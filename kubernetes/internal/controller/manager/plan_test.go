package manager

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// hashes are o0, o1, o2: all names collide.
func collide(_ enforce.Pattern, c uint32) string { return fmt.Sprintf("o%d", c) }

func TestPlanName(t *testing.T) {
	full := map[string]string{}
	for c := range uint32(maxCollisions) {
		full[collide(enforce.Pattern{}, c)] = "other.example.com."
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
		{"two collisions", nil, map[string]string{"o0": "other.example.com.", "o1": "third.example.com."}, plan{create: "o2", passed: 2}, false},
		{"there, after a collision", []string{"o1"}, map[string]string{"o0": "other.example.com.", "o1": "www.example.com."}, plan{passed: 1}, false},
		{"stays when the one before has gone", []string{"o1"}, map[string]string{"o1": "www.example.com."}, plan{}, false},
		{"an extra one", []string{"mine", "o0"}, map[string]string{"o0": "www.example.com."}, plan{remove: []string{"mine"}}, false},
		{"only an extra one", []string{"mine"}, nil, plan{create: "o0", remove: []string{"mine"}}, false},
		{"two of its own", []string{"o1", "o0"}, map[string]string{"o0": "www.example.com.", "o1": "www.example.com."}, plan{remove: []string{"o1"}}, false},
		{"no room", nil, full, plan{passed: maxCollisions}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := planName(enforce.MustPattern("www.example.com"), tt.have, func(o string) string { return tt.all[o] }, collide)
			if (err != nil) != tt.fail {
				t.Errorf("error %v", err)
			}
			if len(got.remove) == 0 {
				got.remove = nil
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
