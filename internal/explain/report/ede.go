package report

import (
	"cmp"
	"fmt"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// edeTexts are the extended errors (RFC 8914 and its registry) as people say them.
var edeTexts = map[uint16]string{
	0:  "another error",
	1:  "it cannot check the algorithm of the keys",
	2:  "it cannot check the kind of the DS record",
	3:  "an old answer, because the servers of the zone do not answer it",
	4:  "an answer that was made up on purpose",
	5:  "whether the answer is genuine could not be decided",
	6:  "the signatures do not fit (DNSSEC)",
	7:  "a signature has expired (DNSSEC)",
	8:  "a signature is not valid yet (DNSSEC)",
	9:  "the key for the DS record is missing (DNSSEC)",
	10: "signatures are missing (DNSSEC)",
	11: "no key may sign the zone (DNSSEC)",
	12: "the proof that something does not exist is missing (DNSSEC)",
	13: "an error that it remembers",
	14: "it is not ready yet",
	15: "blocked by its operator",
	16: "blocked by order of an authority",
	17: "blocked because its client asked for that",
	18: "it does not answer this client",
	19: "an old \"does not exist\", because the servers of the zone do not answer it",
	20: "it is not an authority for this",
	21: "it does not support this",
	22: "no server of the zone answers it",
	23: "the network failed on the way to the zone's servers",
	24: "the servers of the zone sent what it cannot use",
	25: "a signature expires before it begins (DNSSEC)",
	26: "too early",
	27: "too many rounds of NSEC3 (DNSSEC)",
	28: "its policy does not allow it",
	29: "made by the resolver from other answers",
	30: "it does not take this type",
}

func edeText(e iterate.EDE) string {
	text := fmt.Sprintf("%s (extended error %d)", cmp.Or(edeTexts[e.Code], "an error that has no name"), e.Code)
	if e.Text != "" {
		text += fmt.Sprintf(": %q", e.Text)
	}
	return text
}
