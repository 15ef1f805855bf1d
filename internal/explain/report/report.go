// Package report makes of facts and findings what people and programs read: a verdict in one sentence, what to do, and the
// evidence, as text, JSON, Markdown or JUnit.
package report

import (
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

// Schema is the version of the form of a Report.
const Schema = "nameplane.report/1"

// Verdict is the answer to "does it work".
type Verdict string

// The verdicts. There are no others.
const (
	Working    Verdict = "working"
	Soon       Verdict = "working soon" // it is set up, and some caches do not know yet
	NotWorking Verdict = "not working"
	CannotTell Verdict = "could not tell"
)

// Report is what is told of a name.
type Report struct {
	Schema   string        `json:"schema"`
	Kind     explain.Kind  `json:"kind"`
	Target   dnsname.Name  `json:"target"`
	Types    []rr.Type     `json:"types,omitempty"`
	At       time.Time     `json:"at"`
	Took     time.Duration `json:"took"`
	Verdict  Verdict       `json:"verdict"`
	Summary  string        `json:"summary"`
	SafeAt   time.Time     `json:"safeAt,omitzero"`   // everyone sees the new answer
	AtLatest time.Time     `json:"atLatest,omitzero"` // the same if what was assumed is wrong
	Assumed  bool          `json:"assumed,omitempty"`

	Do       []Step            `json:"do,omitempty"`
	Findings []explain.Finding `json:"findings"` // failed, then unknown, then passed; the worst first
	Counts   Counts            `json:"counts"`

	Registration *Registration     `json:"registration,omitempty"`
	Delegation   *Delegation       `json:"delegation,omitempty"`
	Planned      []Nameserver      `json:"planned,omitempty"` // nameservers that the asker is about to change to
	SOA          []Line            `json:"soa,omitempty"`
	Negative     *Negative         `json:"negative,omitempty"`
	Chain        []explain.Hop     `json:"chain,omitempty"`
	Outcomes     []explain.Outcome `json:"outcomes,omitempty"`
	Differences  []Difference      `json:"differences,omitempty"`
	Caches       []CacheLine       `json:"caches,omitempty"`
	Safe         *safeat.Report    `json:"safe,omitempty"`
	Plan         *safeat.Plan      `json:"plan,omitempty"`
	Evidence     []Evidence        `json:"evidence,omitempty"` // what the findings that did not pass refer to

	Queries    int      `json:"queries"`
	NoRoute    []string `json:"noRoute,omitempty"` // families of addresses that were not asked, as the machine has no way for them
	Unfinished []string `json:"unfinished,omitempty"`

	domain dnsname.Name // that can be registered; zero if the target is a public suffix
}

// Step is something to do, and for what findings.
type Step struct {
	Actor    explain.Actor `json:"actor"`
	Text     string        `json:"text"`
	Findings []string      `json:"findings"`
	Visible  time.Time     `json:"visibleBy,omitzero"`
}

// Counts are the numbers of checks by what came of them.
type Counts struct {
	Passed  int                      `json:"passed"`
	Unknown int                      `json:"unknown"`
	Failed  map[explain.Severity]int `json:"failed"`
}

// Line is a value and what it means.
type Line struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Meaning string `json:"meaning"`
}

// Registration is the part of a registration that is shown. Persons are not.
type Registration struct {
	Domain    dnsname.Name `json:"domain"`
	Owner     dnsname.Name `json:"owner,omitzero"` // the part that somebody else has who was given a name below the domain, as with github.io
	Source    string       `json:"source,omitempty"`
	State     string       `json:"state"`
	Registrar string       `json:"registrar,omitempty"`
	Created   time.Time    `json:"created,omitzero"`
	Expires   time.Time    `json:"expires,omitzero"`
	Days      int          `json:"daysLeft,omitempty"`
	Statuses  []Line       `json:"statuses,omitempty"`
	Problem   string       `json:"problem,omitempty"`
}

// Delegation is who is named as a server of the zone, by whom.
type Delegation struct {
	Zone    dnsname.Name `json:"zone"`
	Servers []Nameserver `json:"servers"`
	NSTTL   [2]uint32    `json:"nsTTL"` // of the parent's set and of the child's
}

// Nameserver is a row of a Delegation.
type Nameserver struct {
	Name     dnsname.Name `json:"name"`
	Registry explain.Fact `json:"registry,omitempty"`
	Parent   explain.Fact `json:"parent"`
	Child    explain.Fact `json:"child"`
	Addrs    []ServerLine `json:"addresses,omitempty"`
}

// ServerLine is one address of a nameserver.
type ServerLine struct {
	Addr   string        `json:"addr"`
	State  string        `json:"state"` // "answers", "replies REFUSED", "no reply"
	Serial uint32        `json:"serial,omitempty"`
	RTT    time.Duration `json:"rtt,omitempty"`
}

// Negative tells how long "does not exist" is remembered, and what that does to new records.
type Negative struct {
	TTL     uint32   `json:"ttl"`
	SOATTL  uint32   `json:"soaTTL"`
	Minimum uint32   `json:"minimum"`
	Ranges  bool     `json:"ranges"` // names that nobody asked for are affected too (RFC 8198)
	Words   []string `json:"words"`
}

// Difference is a question to which servers of one zone have different answers.
type Difference struct {
	Question string  `json:"question"`
	Manner   string  `json:"manner"` // what kind of difference it is
	Groups   []Group `json:"groups"`
}

// Group are the servers that give the same answer.
type Group struct {
	Answer  string   `json:"answer"`
	Servers []string `json:"servers"`
}

// CacheLine is one resolver in words.
type CacheLine struct {
	Resolver string       `json:"resolver"`
	Addr     string       `json:"addr"`
	Region   string       `json:"region,omitempty"`
	State    safeat.State `json:"state"`
	Answer   string       `json:"answer,omitempty"`
	Until    time.Time    `json:"until,omitzero"`       // at most
	Likely   time.Time    `json:"likelyUntil,omitzero"` // give or take a second
	Caches   int          `json:"cachesSeen,omitempty"`
	Why      string       `json:"why,omitempty"`
	NotAsked bool         `json:"notAsked,omitempty"` // on purpose
	NoVote   bool         `json:"notCounted,omitempty"`
	Flush    string       `json:"flush,omitempty"`
}

// Evidence is one exchange in a form that can be repeated.
type Evidence struct {
	ID     string        `json:"id"` // "q17"
	At     time.Duration `json:"at"`
	Dig    string        `json:"dig"`
	Result string        `json:"result"`
	RTT    time.Duration `json:"rtt"`
}
