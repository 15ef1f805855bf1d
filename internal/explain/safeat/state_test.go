package safeat_test

import (
	"testing"

	"github.com/nameplane/nameplane/internal/explain/safeat"
)

func TestOverall(t *testing.T) {
	tests := []struct {
		name   string
		states []safeat.State
		want   safeat.State
	}{
		{"no answers", nil, safeat.Silent},
		{"a lost query", []safeat.State{safeat.Silent, safeat.Current}, safeat.Current},
		{"a filter for one type", []safeat.State{safeat.Current, safeat.Filtered}, safeat.Filtered},
		{"a failure behind a filter", []safeat.State{safeat.Filtered, safeat.Failed}, safeat.Failed},
		{"old and failed", []safeat.State{safeat.Failed, safeat.Old, safeat.Current}, safeat.Old},
		{"denied in one cache, old in another", []safeat.State{safeat.Old, safeat.Negative}, safeat.Negative},
		{"no time can be promised", []safeat.State{safeat.Negative, safeat.Old, safeat.Stale}, safeat.Stale},
		{"not a state", []safeat.State{"other", safeat.Current}, safeat.Current},
		{"not a state alone", []safeat.State{"", "other"}, safeat.Silent},
	}
	for _, tt := range tests {
		if got := safeat.Overall(tt.states...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		r := safeat.Resolver{}
		for _, s := range tt.states {
			r.Samples = append(r.Samples, safeat.Sample{State: s})
		}
		f := safeat.Facts{Links: []safeat.Link{{}}, Resolvers: []safeat.Resolver{r}}
		if got := safeat.Compute(f).Resolvers[0].State; got != tt.want {
			t.Errorf("%s: the report says %q, want %q", tt.name, got, tt.want)
		}
	}
}
