package secure

import (
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// TestIgnoredProof checks that records which validators must ignore prove nothing: the reply is bogus, with a reason.
func TestIgnoredProof(t *testing.T) {
	d := &denial{zone: &zone{name: dnsname.MustParse("example.org.")}, broken: good, any: true}
	j := d.prove(func(prover) judgement { return good })
	if j.state != Bogus || j.cause != BadDenial || j.why == "" {
		t.Errorf("the judgement is %+v, want a bogus one", j)
	}
}
