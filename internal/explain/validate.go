package explain

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// Schema is the version of the JSON form of Facts. Versions 1 and 2 can be read. They contain verdicts of the program
// that wrote them, which are ignored: those of DNSSEC, and in version 1 those about samples.
const (
	Schema  = "nameplane.facts/3"
	Schema2 = "nameplane.facts/2"
	Schema1 = "nameplane.facts/1"
)

// MaxTypes limits the types of Facts: each type is asked of every server, and validated.
const MaxTypes = 8

// Unmarshal reads the JSON form of facts, and validates them.
func Unmarshal(text []byte) (*Facts, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{Schema, Schema2, Schema1}, head.Schema) {
		return nil, fmt.Errorf("the schema of the file is %q, want %q", head.Schema, Schema)
	}
	var stored struct {
		Facts
		Secure []secure.Result `json:"secure"` // only in versions 1 and 2
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, err
	}
	f := stored.Facts
	if len(f.Types) > MaxTypes {
		return nil, fmt.Errorf("the file has %d types, more than %d", len(f.Types), MaxTypes)
	}
	if head.Schema != Schema {
		f.Schema, f.Anchors = Schema, anchorsIn(stored.Secure)
	}
	f.Validate()
	return &f, nil
}

// anchorsIn returns the trust anchors of a validation: the DS records that no server sent.
func anchorsIn(results []secure.Result) (out []secure.Anchor) {
	for _, r := range results {
		for _, z := range r.Zones {
			for _, d := range z.DS {
				a := secure.Anchor{Zone: z.Name, KeyTag: d.KeyTag, Algorithm: d.Algorithm, DigestType: d.DigestType,
					Digest: d.Digest}
				if len(d.From) == 0 && !slices.Contains(out, a) {
					out = append(out, a)
				}
			}
		}
	}
	return out
}

// Validate sets Secure: it validates the chain of trust of each type with all exchanges, not only those of the walk.
func (f *Facts) Validate() {
	trace := iterate.Trace{Question: iterate.Question{Name: f.Name}, DNSSEC: true, Zones: f.Zones, Exchanges: f.Exchanges}
	for _, h := range f.Chain {
		trace.Chain = append(trace.Chain, h.Link)
	}
	f.Secure = secure.Validate(&trace, f.Types, f.Anchors, f.At)
}

const typeDNSKEY = rr.Type(48)

// Decisive reports whether the reply of an exchange decides the DNSSEC state of a zone or of an answer.
func (f *Facts) Decisive(e iterate.Exchange) bool {
	q := e.Question
	switch {
	case e.Zone.IsZero() || !e.EDNS || !e.Class.Usable():
		return false
	case e.Class == iterate.Referral || q.Type == rr.TypeDS || q.Type == typeDNSKEY:
		return true
	}
	return slices.Contains(f.Types, q.Type) &&
		(q.Name == f.Name || slices.ContainsFunc(f.Chain, func(h Hop) bool { return h.To == q.Name }))
}
