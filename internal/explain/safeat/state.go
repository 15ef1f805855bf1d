package safeat

import (
	"cmp"
	"slices"
)

// byImportance lists the states by what they mean to a person who waits until everyone sees the new answer:
//
//   - Stale: the resolver gives an older answer, and nobody can say until when, because it cannot reach the zone's
//     servers. A time that another of its answers promises would be wrong.
//   - Negative: its users get "does not exist", until a known time.
//   - Old: its users get an older answer, which may still work, until a known time.
//   - Failed: its users get no answer, but resolvers cache a failure for minutes at most (RFC 9520 §3.2).
//   - Filtered: its users never see the answer, and waiting does not help. A resolver that also has an older answer
//     is late, so Filtered comes after those states.
//   - Current: its users see the new answer.
//   - Silent: nothing is known. Any answer says more than a query that got none.
var byImportance = []State{Stale, Negative, Old, Failed, Filtered, Current, Silent}

// Compare orders states by their importance, the most important first.
func (s State) Compare(t State) int { return cmp.Compare(s.rank(), t.rank()) }

func (s State) rank() int {
	if i := slices.Index(byImportance, s); i >= 0 {
		return i
	}
	return len(byImportance) // not a state
}

// Overall returns the state of a resolver whose answers have some states: the most important one, or Silent if there
// are none.
func Overall(states ...State) State {
	out := Silent
	for _, s := range states {
		if s.Compare(out) < 0 {
			out = s
		}
	}
	return out
}

// overall returns State, or else the overall state of Samples.
func (r Resolver) overall() State {
	if r.State != "" {
		return r.State
	}
	out := Silent
	for _, s := range r.Samples {
		out = Overall(out, s.State)
	}
	return out
}
