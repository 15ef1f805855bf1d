// Package explain defines the facts about a domain name, and derives from them which answers are old and when a change
// is visible to everyone.
//
// Start with Facts in facts.go: package gather fills it, and it holds every query and reply, so that a saved file is
// enough to repeat the analysis. Validate in validate.go computes the DNSSEC results, Assess in assess.go compares
// resolvers with the authority, Differences in differ.go compares the servers of a zone, and Safe in safe.go computes
// when everyone sees the new answer. Package check turns Facts into Findings, and package report prints both.
//
// Two rules hold everywhere. A value that could not be determined is unknown, never wrong. An answer is never called
// old if it differs on purpose: by client network, by rotation, or because a resolver filters.
package explain

// Kind is the command that collected the facts.
type Kind string

// The kinds.
const (
	Scan    Kind = "scan"    // a domain: registration, nameservers, SOA
	Analyze Kind = "analyze" // a name: from the root, every server at every level
	Compare Kind = "compare" // a name: the authority against recursive resolvers

	KindService Kind = "service" // a hostname: Kubernetes objects, records, certificates and pages
)

// Fact is a yes or no that may not be known.
type Fact string

// The facts. The zero Fact was not asked for.
const (
	Unasked Fact = ""
	Yes     Fact = "yes"
	No      Fact = "no"
	Unknown Fact = "unknown" // asked, but the replies do not decide it
)

// Probe is the result of one test of a server's behaviour.
type Probe struct {
	Fact     Fact   `json:"fact,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Evidence []int  `json:"evidence,omitempty"` // indexes into the exchanges of Facts
}
