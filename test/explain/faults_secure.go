package explain

import (
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
)

// secureFaults are DNSSEC faults. They apply to trees that are not signed, and sign them wrongly.
var secureFaults = []Fault{
	{Name: "a DS without its key", Want: []string{"SEC01"}, Allowed: []string{"SEC10", "SEC03"}, Tags: []string{"dnssec"},
		Apply: func(t *Tree) bool {
			t.signed = false
			t.ds = "ds " + t.Domain + " 86400 other"
			for _, h := range t.hosts {
				h.lines = append(h.lines, "sign "+t.Domain)
			}
			return true
		}},
	{Name: "a DS, and nothing is signed", Want: []string{"SEC02"}, Allowed: []string{"SEC01", "SEC10"},
		Tags: []string{"dnssec"}, Apply: func(t *Tree) bool {
			t.signed = false
			t.ds = "ds " + t.Domain + " 86400"
			return true
		}},
	{Name: "expired signatures", Want: []string{"SEC03"}, Allowed: []string{"SEC04", "SEC10", "SEC01"},
		Tags: []string{"dnssec"}, Apply: resign("expired")},
	{Name: "signatures of tomorrow", Want: []string{"SEC03"}, Allowed: []string{"SEC04", "SEC10", "SEC01"},
		Tags: []string{"dnssec"}, Apply: resign("early")},
	{Name: "proofs without signatures", Want: []string{"SEC04"}, Allowed: []string{"SEC03", "SEC10", "NAM01", "NAM02"},
		Tags: []string{"dnssec"}, Apply: resign("bareproof")},
	{Name: "the parent does not sign its proofs", Want: []string{"SEC01"}, Worst: explain.Critical,
		Allowed: []string{"SEC10"}, Tags: []string{"dnssec"}, Apply: ifUnsigned(signTLD("bareproof"))},
	{Name: "the parent has no proofs", Want: []string{"SEC01"}, Worst: explain.Critical, Allowed: []string{"SEC10"},
		Tags: []string{"dnssec"}, Apply: ifUnsigned(signTLD("noproof"))},
	{Name: "the signatures of the parent have expired", Want: []string{"SEC01"}, Worst: explain.Critical,
		Allowed: []string{"SEC10"}, Tags: []string{"ns"}, Apply: ifSigned(signTLD("expired"))},
	{Name: "signed denials without an SOA record", Want: []string{"SOA09"}, Worst: explain.Critical,
		Allowed: []string{"SEC10"}, Tags: append([]string{"server", "name"}, mailTags...),
		Apply: ifSigned(func(t *Tree) bool {
			for _, h := range t.hosts {
				h.lines = append(h.lines, "bare")
			}
			return true
		})},
	{Name: "a server does not sign its proofs", Want: []string{"SEC04"}, Worst: explain.Error,
		Allowed: []string{"SEC10"}, Tags: []string{"server"}, Apply: ifSigned(resignLast("bareproof"))},
	{Name: "a server has no proofs", Want: []string{"SEC04"}, Worst: explain.Error, Allowed: []string{"SEC10"},
		Tags: []string{"server"}, Apply: ifSigned(resignLast("noproof"))},
	{Name: "the signatures of a server have expired", Want: []string{"SEC03"}, Worst: explain.Error,
		Allowed: []string{"SEC10", "SEC04"}, Tags: []string{"server"}, Apply: ifSigned(resignLast("expired"))},
	{Name: "a DS for an algorithm that is not assigned", Want: []string{"SEC05"}, Allowed: []string{"SEC01", "SEC02"},
		Tags: []string{"dnssec", "ns"}, Apply: func(t *Tree) bool {
			t.signed = false
			for i := range t.parent {
				t.parent[i] = append(t.parent[i], fmt.Sprintf("%s 86400 DS 7 %d 2 %064d", t.Domain, 100+len(t.hosts), 7))
			}
			return true
		}},
	{Name: "CDS in a zone that is not signed", Want: []string{"SEC08"}, Tags: []string{"dnssec"},
		Apply: func(t *Tree) bool {
			t.signed = false
			t.add("%s 3600 CDS 7 13 2 %064d", t.Domain, 7)
			return true
		}},
	{Name: "CDS at one server only", Want: []string{"SEC08"}, Allowed: []string{"NAM11"}, Tags: []string{"server"},
		Apply: func(t *Tree) bool {
			return t.signed && onLastServer(fmt.Sprintf("%s 3600 CDS 7 13 2 %064d", t.Domain, 7))(t)
		}},
	{Name: "CDS without a signature", Want: []string{"SEC08"},
		Allowed: []string{"SEC04", "SEC03", "SEC10", "NAM01", "NAM02"}, Tags: []string{"dnssec"},
		Apply: func(t *Tree) bool {
			t.add("%s 3600 CDS 7 13 2 %064d", t.Domain, 7)
			return resign("bareproof")(t)
		}},
	{Name: "CDNSKEY in a zone that is not signed", Want: []string{"SEC08"}, Tags: []string{"dnssec"},
		Apply: ifUnsigned(func(t *Tree) bool {
			t.add("%s 3600 CDNSKEY 257 3 13 %s", t.Domain, otherKey)
			return true
		})},
	{Name: "CDNSKEY at one server only", Want: []string{"SEC08"}, Allowed: []string{"NAM11"}, Tags: []string{"server"},
		Apply: ifSigned(func(t *Tree) bool {
			return onLastServer(fmt.Sprintf("%s 3600 CDNSKEY 257 3 13 %s", t.Domain, otherKey))(t)
		})},
	{Name: "CDS for a key that does not sign it", Want: []string{"SEC08"}, Tags: []string{"server"},
		Apply: ifSigned(onEach("sign $ extra=next", "cds $ 3600 next")),
		Twin:  onEach("sign $ extra=next", "cds $ 3600")},
	{Name: "NSEC3 with other parameters at one server", Want: []string{"SEC06"}, Tags: []string{"server"},
		Apply: ifSigned(func(t *Tree) bool {
			return onEach("sign $ nsec3")(t) && onLastServer("sign "+t.Domain+" nsec3=1,ab")(t)
		}),
		Twin: onEach("sign $ nsec3")},
	{Name: "NSEC at one server, and NSEC3 at the others", Want: []string{"SEC06"}, Tags: []string{"server"},
		Apply: ifSigned(func(t *Tree) bool {
			return onEach("sign $ nsec3")(t) && onLastServer("sign "+t.Domain)(t)
		}),
		Twin: onEach("sign $ nsec3")},
	{Name: "a DS for Ed448, and nothing is signed", Want: []string{"SEC02"}, Worst: explain.Critical,
		Allowed: []string{"SEC01", "SEC10"}, Tags: []string{"dnssec", "ns"}, Apply: ifUnsigned(func(t *Tree) bool {
			for i := range t.parent {
				t.parent[i] = append(t.parent[i], fmt.Sprintf("%s 86400 DS 7 16 2 %064d", t.Domain, 7))
			}
			return true
		})},
	{Name: "signed without a DS", Want: []string{"SEC07"}, Tags: []string{"dnssec"}, Apply: func(t *Tree) bool {
		t.signed = false
		for _, h := range t.hosts {
			h.lines = append(h.lines, "sign "+t.Domain)
		}
		return true
	}},
}

// resign returns a fault that signs the zone wrongly, with a correct DS, so that the signatures alone are wrong.
func resign(word string) func(*Tree) bool {
	return func(t *Tree) bool {
		t.signed = false
		t.ds = "ds " + t.Domain + " 86400"
		for _, h := range t.hosts {
			h.lines = append(h.lines, "sign "+t.Domain+" "+word)
		}
		return true
	}
}

// resignLast returns a fault that signs the zone wrongly at the last server. Resolvers that reject its answers find
// good ones at the other servers, so the severity is error and not critical.
func resignLast(word string) func(*Tree) bool {
	return func(t *Tree) bool { return onLastServer("sign " + t.Domain + " " + word)(t) }
}

// signTLD returns a fault that signs the top-level domain wrongly.
func signTLD(word string) func(*Tree) bool {
	return func(t *Tree) bool {
		t.tldSigns = word
		return true
	}
}

// otherKey is a key that no zone of the trees has.
const otherKey = "mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ=="

// onEach returns a change that adds lines to the scripts of all servers. In the lines, $ is the domain.
func onEach(lines ...string) func(*Tree) bool {
	return func(t *Tree) bool {
		for _, h := range t.hosts {
			for _, l := range lines {
				h.lines = append(h.lines, strings.ReplaceAll(l, "$", t.Domain))
			}
		}
		return true
	}
}
