// Package report builds the report of facts and findings: a verdict in one sentence, what to do, and the evidence, as
// text, JSON, Markdown, JUnit or a calendar.
//
// Start with Make in make.go: it builds a Report. verdict.go finds the verdict and the exit code, and formats.go lists
// the output formats.
package report

import (
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

// Schema is the version of the JSON form of a Report.
const Schema = "nameplane.report/1"

// Verdict is the answer to "does it work".
type Verdict string

// The verdicts. There are no others.
const (
	Working    Verdict = "working"
	Soon       Verdict = "working soon" // it is set up, but some caches still hold an older answer
	NotWorking Verdict = "not working"
	Undecided  Verdict = "no verdict"
)

// Report is the result of a scan, for people and programs.
type Report struct {
	Schema   string        `json:"schema"`
	Kind     explain.Kind  `json:"kind"`
	Target   dnsname.Name  `json:"target"`
	Types    []rr.Type     `json:"types,omitempty"`
	At       time.Time     `json:"at"`
	Took     time.Duration `json:"took"`
	Verdict  Verdict       `json:"verdict"`
	Summary  string        `json:"summary"`
	SafeAt   time.Time     `json:"safeAt,omitzero"`   // time from which everyone sees the new answer
	AtLatest time.Time     `json:"atLatest,omitzero"` // the same, if the assumptions are wrong
	Assumed  bool          `json:"assumed,omitempty"` // SafeAt is based on assumptions

	Do       []Step            `json:"do,omitempty"`
	Findings []explain.Finding `json:"findings"` // failures (the worst first), then unknown, then passed
	Counts   Counts            `json:"counts"`

	Registration *Registration     `json:"registration,omitempty"`
	Delegation   *Delegation       `json:"delegation,omitempty"`
	Planned      []Nameserver      `json:"planned,omitempty"` // nameservers that the user plans to change to
	SOA          []Line            `json:"soa,omitempty"`
	Negative     *Negative         `json:"negative,omitempty"`
	Chain        []explain.Hop     `json:"chain,omitempty"`
	Outcomes     []explain.Outcome `json:"outcomes,omitempty"`
	Differences  []Difference      `json:"differences,omitempty"`
	Caches       []CacheLine       `json:"caches,omitempty"`
	Safe         *safeat.Report    `json:"safe,omitempty"`
	Plan         *safeat.Plan      `json:"plan,omitempty"`
	Links        []LinkLine        `json:"links,omitempty"`    // of a service, from its class to its backends
	Entries      []Entry           `json:"entries,omitempty"`  // records to enter at the DNS host
	Evidence     []Evidence        `json:"evidence,omitempty"` // the exchanges of findings that did not pass

	Queries    int      `json:"queries"`
	NoRoute    []string `json:"noRoute,omitempty"` // address families that were not queried for lack of a route
	Unfinished []string `json:"unfinished,omitempty"`

	domain dnsname.Name // the registrable domain; zero if the target is a public suffix
	zone   dnsname.Name // the zone that contains the target; zero if it was not found
	host   string       // the hostname of a service
}

// Step is one action to take, and the IDs of the checks that it fixes.
type Step struct {
	Actor    explain.Actor `json:"actor"`
	Text     string        `json:"text"`
	Findings []string      `json:"findings"`
	Visible  time.Time     `json:"visibleBy,omitzero"`
}

// Counts holds the number of checks by result.
type Counts struct {
	Passed  int                      `json:"passed"`
	Unknown int                      `json:"unknown"`
	Failed  map[explain.Severity]int `json:"failed"`
}

// Line is a named value and its meaning.
type Line struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Meaning string `json:"meaning"`
}

// Registration is the part of a registration that is shown. It contains no personal data.
type Registration struct {
	Domain dnsname.Name `json:"domain"`
	// the customer's part of a name below a private suffix, such as github.io
	Owner     dnsname.Name `json:"owner,omitzero"`
	Source    string       `json:"source,omitempty"`
	State     string       `json:"state"`
	Registrar string       `json:"registrar,omitempty"`
	Created   time.Time    `json:"created,omitzero"`
	Expires   time.Time    `json:"expires,omitzero"`
	Days      int          `json:"daysLeft,omitempty"`
	Statuses  []Line       `json:"statuses,omitempty"`
	Problem   string       `json:"problem,omitempty"`
}

// Delegation lists the nameservers of the zone, and where each is listed.
type Delegation struct {
	Zone    dnsname.Name `json:"zone"`
	Servers []Nameserver `json:"servers"`
	NSTTL   [2]uint32    `json:"nsTTL"` // TTL of the NS records at the parent and at the child
}

// Nameserver is one nameserver of a Delegation.
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

// Negative says how long resolvers remember "does not exist", and what that means for new records.
type Negative struct {
	TTL     uint32   `json:"ttl"`
	SOATTL  uint32   `json:"soaTTL"`
	Minimum uint32   `json:"minimum"`
	Ranges  bool     `json:"ranges"` // names that were never queried are affected too (RFC 8198)
	Words   []string `json:"words"`
}

// Difference is a question to which servers of one zone have different answers.
type Difference struct {
	Question string  `json:"question"`
	Manner   string  `json:"manner"` // why the answers differ, in words
	Groups   []Group `json:"groups"`
}

// Group is one answer, and the servers that give it.
type Group struct {
	Answer  string   `json:"answer"`
	Servers []string `json:"servers"`
}

// CacheLine is the state of one resolver.
type CacheLine struct {
	Resolver string       `json:"resolver"`
	Addr     string       `json:"addr"`
	Region   string       `json:"region,omitempty"`
	State    safeat.State `json:"state"`
	Answer   string       `json:"answer,omitempty"`
	Until    time.Time    `json:"until,omitzero"`       // the latest time at which it drops the older answer
	Likely   time.Time    `json:"likelyUntil,omitzero"` // the likely time, within a second
	Caches   int          `json:"cachesSeen,omitempty"` // the least number of caches behind the address
	Why      string       `json:"why,omitempty"`
	NotAsked bool         `json:"notAsked,omitempty"` // it was not queried, on purpose
	NoVote   bool         `json:"notCounted,omitempty"`
	Flush    string       `json:"flush,omitempty"`
}

// Evidence is one exchange, with the dig command that repeats it.
type Evidence struct {
	ID     string        `json:"id"` // "q17"
	At     time.Duration `json:"at"`
	Dig    string        `json:"dig"`
	Result string        `json:"result"`
	RTT    time.Duration `json:"rtt"`
}
