package explain

import "time"

// Severity is how bad a finding is if it is one.
type Severity string

// The severities, the worst first.
const (
	Critical Severity = "critical" // users cannot reach it now
	Error    Severity = "error"    // some users cannot, or it will break
	Warning  Severity = "warning"
	Notice   Severity = "notice"
	Info     Severity = "info"
)

// Status is what came of a check.
type Status string

// The statuses.
const (
	Pass     Status = "pass"
	Fail     Status = "fail"
	NotKnown Status = "unknown" // could not be checked, which is not a failure
)

// Actor is who can do something about a finding.
type Actor string

// The actors.
const (
	Nobody    Actor = "nobody" // it passes by itself
	You       Actor = "you"    // who asked: the input, the network of this machine
	Registrar Actor = "registrar"
	DNSHost   Actor = "dns host"
	Target    Actor = "target's owner" // of what an alias leads to
	Resolver  Actor = "resolver's operator"
	Parent    Actor = "parent zone"
)

// Finding is what a check says of a subject.
type Finding struct {
	ID       string    `json:"id"` // "DEL04"
	Severity Severity  `json:"severity"`
	Status   Status    `json:"status"`
	Subject  string    `json:"subject"`       // "ns1.example.org (192.0.2.1)", "www.example.org A"
	Words    string    `json:"words"`         // one sentence: what is the case
	Fix      string    `json:"fix,omitempty"` // one or two: what to do
	Actor    Actor     `json:"actor,omitempty"`
	Visible  time.Time `json:"visibleBy,omitzero"` // when a fix made now is seen by everyone; of what passes by itself: when
	Evidence []int     `json:"evidence,omitempty"`
}

var order = map[Severity]int{Critical: 4, Error: 3, Warning: 2, Notice: 1, Info: 0}

// AtLeast reports whether s is as bad as t, or worse.
func (s Severity) AtLeast(t Severity) bool { return order[s] >= order[t] }
