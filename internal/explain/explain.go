// Package explain holds what is known of a domain name, what follows from it, and how it is reported.
//
// Facts are gathered first, by package gather: plain data, in which every question and reply is, so that a file of them is
// all that is needed to judge again. Package check judges: each check is a function of Facts. Package report makes a Report of
// Facts and Findings, and writes it.
//
// What could not be found out is unknown, and never wrong. Answers that differ on purpose, by place, in turn, or because a
// resolver filters, are never called old.
package explain

// Kind is what was asked for.
type Kind string

// The kinds.
const (
	Scan    Kind = "scan"    // a domain: registration, nameservers, SOA
	Analyze Kind = "analyze" // a name: from the root, every server at every level
	Compare Kind = "compare" // a name: the authority against recursive resolvers
)

// Fact is a yes or no that may not be known.
type Fact string

// The facts. The zero Fact was not asked for.
const (
	Unasked Fact = ""
	Yes     Fact = "yes"
	No      Fact = "no"
	Unknown Fact = "unknown" // asked, without a reply that tells
)

// Probe is a question about the conduct of a server, and what came of it.
type Probe struct {
	Fact     Fact   `json:"fact,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Evidence []int  `json:"evidence,omitempty"` // indexes into the exchanges of Facts
}
