package report

import (
	"cmp"
	"fmt"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// edeTexts describes the extended errors (RFC 8914 and its IANA registry).
var edeTexts = map[uint16]string{
	0:  "another error",
	1:  "it cannot check the algorithm of the keys",
	2:  "it cannot check the digest type of the DS record",
	3:  "an old answer, because the servers of the zone do not answer it",
	4:  "a forged answer, on purpose",
	5:  "it could not decide whether the answer is valid (DNSSEC)",
	6:  "the answer is not valid (DNSSEC)",
	7:  "a signature has expired (DNSSEC)",
	8:  "a signature is not valid yet (DNSSEC)",
	9:  "the key for the DS record is missing (DNSSEC)",
	10: "signatures are missing (DNSSEC)",
	11: "no key has the zone key bit (DNSSEC)",
	12: "the proof that something does not exist is missing (DNSSEC)",
	13: "a cached error",
	14: "it is not ready yet",
	15: "blocked by its operator",
	16: "blocked by order of a third party",
	17: "blocked because its client asked for that",
	18: "it does not answer this client",
	19: "an old \"does not exist\", because the servers of the zone do not answer it",
	20: "it is not authoritative for this",
	21: "it does not support this",
	22: "no server of the zone answers it",
	23: "a network error between it and the zone's servers",
	24: "the servers of the zone sent invalid data",
	25: "a signature expires before it becomes valid (DNSSEC)",
	26: "too early",
	27: "too many NSEC3 iterations (DNSSEC)",
	28: "its policy does not allow it",
	29: "synthesised by the resolver from other answers",
	30: "it does not accept this query type",
}

// edeText returns the description and the number of an extended error. It quotes the text of the resolver, which is not
// trusted.
func edeText(e iterate.EDE) string {
	text := fmt.Sprintf("%s (extended error %d)", cmp.Or(edeTexts[e.Code], "an unassigned error code"), e.Code)
	if e.Text != "" {
		// %q also makes control characters visible, which a terminal would obey.
		text += fmt.Sprintf(": %q", e.Text)
	}
	return text
}
