package secure_test

import (
	"encoding/json"
	"testing"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

// FuzzValidate damages the replies of traces. Validate must end and not fail, and its result must be encodable. An
// insecure answer must not become secure.
func FuzzValidate(f *testing.F) {
	type made struct {
		trace   *iterate.Trace
		anchors []secure.Anchor
		state   secure.State
	}
	var seeds []made
	for _, s := range []struct {
		scenario scenario
		q        string
	}{
		{scenario{}, "far.example.test. A"},
		{scenario{}, "x.wild.example.test. A"},
		{scenario{how: signing{nsec3: true, iterations: 1, salt: "AB"}}, "nope.example.test. A"},
		{scenario{how: signing{nsec3: true, optOut: true}}, "x.wild.example.test. TXT"},
	} {
		trace, anchors := s.scenario.trace(f, s.q)
		seeds = append(seeds, made{trace, anchors, validate(trace, anchors, bubble).State})
	}
	for i := range seeds {
		f.Add(uint8(i), []byte{0, 12, 1, 9, 60, 255, 17, 200, 3})
		f.Add(uint8(i), []byte{3, 40, 4, 40, 5, 41})
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		m := seeds[int(which)%len(seeds)]
		trace := *m.trace
		trace.Exchanges = append([]iterate.Exchange(nil), m.trace.Exchanges...)
		for ; len(edits) >= 3; edits = edits[3:] {
			e := &trace.Exchanges[int(edits[0])%len(trace.Exchanges)]
			if len(e.Reply) == 0 {
				continue
			}
			e.Reply = append([]byte(nil), e.Reply...)
			e.Reply[int(edits[1])*len(e.Reply)/256] ^= edits[2]
		}
		r := validate(&trace, m.anchors, bubble)
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if m.state == secure.Insecure && r.State == secure.Secure {
			t.Errorf("became secure: %s", summary(r))
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	trace, anchors := scenario{}.trace(b, "www.example.test. A")
	for b.Loop() {
		validate(trace, anchors, bubble)
	}
}
