package explain

import "time"

// Severity is how bad it is that a check fails.
type Severity string

// The severities, the worst first.
const (
	Critical Severity = "critical" // users cannot reach the name now
	Error    Severity = "error"    // some users cannot reach the name, or it will break
	Warning  Severity = "warning"
	Notice   Severity = "notice"
	Info     Severity = "info"
)

// Status is the result of a check.
type Status string

// The statuses.
const (
	Pass     Status = "pass"
	Fail     Status = "fail"
	NotKnown Status = "unknown" // could not be checked; this is not a failure
)

// Actor is the party that can fix a finding.
type Actor string

// The actors.
const (
	Nobody    Actor = "nobody" // time fixes it, or there is nothing to fix
	You       Actor = "you"    // the user: the input, or the network of this machine
	Registrar Actor = "registrar"
	DNSHost   Actor = "dns host"
	Target    Actor = "target's owner" // the owner of the target of an alias
	Resolver  Actor = "resolver's operator"
	Parent    Actor = "parent zone"
)

// Finding is the result of one check for one subject.
type Finding struct {
	ID       string   `json:"id"` // "DEL04"
	Severity Severity `json:"severity"`
	Status   Status   `json:"status"`
	Subject  string   `json:"subject"`       // "ns1.example.org (192.0.2.1)", "www.example.org A"
	Words    string   `json:"words"`         // what was found, in one sentence
	Fix      string   `json:"fix,omitempty"` // what to do, in one or two sentences
	Actor    Actor    `json:"actor,omitempty"`
	// Visible is when everyone sees a fix that is made now. For a finding that time alone fixes, it is that time.
	Visible  time.Time `json:"visibleBy,omitzero"`
	Evidence []int     `json:"evidence,omitempty"`
}

var order = map[Severity]int{Critical: 4, Error: 3, Warning: 2, Notice: 1, Info: 0}

// AtLeast reports whether s is at least as bad as t.
func (s Severity) AtLeast(t Severity) bool { return order[s] >= order[t] }
