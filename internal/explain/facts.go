package explain

import (
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// Schema is the version of the form of Facts. Those of version 1 are read as they are: they also had verdicts of the program
// that wrote them in their samples, which Assess replaces.
const (
	Schema  = "nameplane.facts/2"
	Schema1 = "nameplane.facts/1"
)

// Facts are everything that was found out about a name, and how.
type Facts struct {
	Schema     string        `json:"schema"`
	Kind       Kind          `json:"kind"`
	Input      string        `json:"input"`             // as it was typed
	Trimmed    []string      `json:"trimmed,omitempty"` // what of the input is not a part of the name: "https://", ":443"
	Name       dnsname.Name  `json:"name"`
	Types      []rr.Type     `json:"types,omitempty"`
	At         time.Time     `json:"at"` // when asking began; all durations count from here
	Took       time.Duration `json:"took"`
	Vantage    Vantage       `json:"vantage"`
	Queries    int           `json:"queries"`
	Unfinished []string      `json:"unfinished,omitempty"` // limits that kept it from being complete; what is missing is unknown

	Domain        dnsname.Name            `json:"domain"`                  // to be registered: one label below its public suffix; zero for a suffix itself
	Owner         dnsname.Name            `json:"owner,omitzero"`          // the same by the private suffixes: who controls it, as with github.io
	Zone          dnsname.Name            `json:"zone,omitzero"`           // that the name is in; zero: not found
	Registrations []registry.Registration `json:"registrations,omitempty"` // of the domain, and of those that its servers and aliases are in

	Zones    []iterate.Zone  `json:"zones,omitempty"` // from the root on; a zone comes behind its parent
	Servers  []Server        `json:"servers,omitempty"`
	Answers  []Answer        `json:"answers,omitempty"`
	Outcomes []Outcome       `json:"outcomes,omitempty"`
	Chain    []Hop           `json:"chain,omitempty"`
	Denials  []Denial        `json:"denials,omitempty"`
	Primary  *Primary        `json:"primary,omitempty"` // nil: not looked up
	Wildcard *Wildcard       `json:"wildcard,omitempty"`
	Settled  time.Duration   `json:"settled,omitempty"` // after how long servers with an older version of a zone were asked again; 0: not
	Notes    []iterate.Note  `json:"notes,omitempty"`
	Secure   []secure.Result `json:"secure,omitempty"` // of each type asked for
	Near     []Near          `json:"near,omitempty"`   // names that exist, if this one does not
	Caches   []Cache         `json:"caches,omitempty"`

	Expect    []Set              `json:"expect,omitempty"`    // what the asker says there should be
	PlanNS    []dnsname.Name     `json:"planNS,omitempty"`    // nameservers that the asker is about to change to
	Change    bool               `json:"change,omitempty"`    // the asker is about to change the records, or has done so
	Past      []Past             `json:"past,omitempty"`      // what earlier looks have seen, the latest first
	Exchanges []iterate.Exchange `json:"exchanges,omitempty"` // evidence: everything that was asked, in the order of time
}

// ZoneAt returns the zone with a name, or nil if the walk did not find it.
func (f *Facts) ZoneAt(name dnsname.Name) *iterate.Zone {
	i := slices.IndexFunc(f.Zones, func(z iterate.Zone) bool { return z.Name == name })
	if i < 0 || name.IsZero() {
		return nil
	}
	return &f.Zones[i]
}

// Vantage is from where was asked.
type Vantage struct {
	Name        string        `json:"name"` // "here", "lab"
	IPv4        Fact          `json:"ipv4"`
	IPv6        Fact          `json:"ipv6"`
	NoRoute     []string      `json:"noRoute,omitempty"`    // families that this machine has no way for, "IPv6": their addresses were not asked
	Intercepted Probe         `json:"intercepted,omitzero"` // somebody on the way answers for every address
	Skew        time.Duration `json:"skew,omitempty"`       // how far the clock is ahead of others, as far as was seen
	SkewKnown   bool          `json:"skewKnown,omitempty"`
}

// Set is a record set as text.
type Set struct {
	Name dnsname.Name `json:"name"`
	Type rr.Type      `json:"type"`
	TTL  uint32       `json:"ttl"`            // the least of its records'
	Data []string     `json:"data"`           // in presentation form, sorted
	TTLs []uint32     `json:"ttls,omitempty"` // if they are not all the same (RFC 2181 §5.2 forbids that)
}

// SOA is a start of authority.
type SOA struct {
	Owner   dnsname.Name `json:"owner"`
	TTL     uint32       `json:"ttl"`
	MName   dnsname.Name `json:"mname"`
	RName   dnsname.Name `json:"rname"`
	Serial  uint32       `json:"serial"`
	Refresh uint32       `json:"refresh"`
	Retry   uint32       `json:"retry"`
	Expire  uint32       `json:"expire"`
	Minimum uint32       `json:"minimum"`
	Count   int          `json:"count,omitempty"` // of SOA records in the answer, if not one
}

// Server is one address as a server of one zone, and its conduct.
type Server struct {
	Zone   dnsname.Name   `json:"zone"`
	Host   dnsname.Name   `json:"host"`
	Addr   netip.Addr     `json:"addr"`
	Listed []string       `json:"listed"` // who lists it: "parent", "child"
	Class  iterate.Class  `json:"class"`  // of its reply to the SOA of the zone; iterate.Unknown if it was not asked
	Health iterate.Health `json:"health"`
	Sent   int            `json:"sent"`
	Lost   int            `json:"lost"`
	RTT    time.Duration  `json:"rtt,omitempty"` // median
	SOA    *SOA           `json:"soa,omitempty"`
	Was    uint32         `json:"was,omitempty"` // its serial at first, if it came to another version of the zone meanwhile
	NSID   string         `json:"nsid,omitempty"`

	TCP         Probe `json:"tcp,omitzero"`         // replies over TCP
	EDNS        Probe `json:"edns,omitzero"`        // knows EDNS
	EDNSVersion Probe `json:"ednsVersion,omitzero"` // replies BADVERS to version 1
	EDNSOption  Probe `json:"ednsOption,omitzero"`  // ignores options that it does not know
	EDNSFlag    Probe `json:"ednsFlag,omitzero"`    // ignores flags that it does not know
	Truncation  Probe `json:"truncation,omitzero"`  // keeps to the size that it is given
	Case        Probe `json:"case,omitzero"`        // echoes the case of names
	Source      Probe `json:"source,omitzero"`      // replies from the address that was asked
	Types       Probe `json:"types,omitzero"`       // replies to types that it does not know, or that are new
	Recursion   Probe `json:"recursion,omitzero"`   // resolves names of others for strangers
	Transfer    Probe `json:"transfer,omitzero"`    // gives the whole zone to strangers
	Limits      Probe `json:"limits,omitzero"`      // was seen to limit the rate of replies
	NegativeSOA Probe `json:"negativeSOA,omitzero"` // negative answers have their SOA
	Referral    int   `json:"referral,omitempty"`   // octets of its largest referral
	Evidence    []int `json:"evidence,omitempty"`
}

// Primary is the server that the SOA of the zone names as the one that changes are made at, looked up.
type Primary struct {
	Name     dnsname.Name  `json:"name"`
	Addrs    []netip.Addr  `json:"addrs,omitempty"`
	Alias    bool          `json:"alias,omitempty"`
	Missing  bool          `json:"missing,omitempty"` // there is no such name, or it has no address
	Class    iterate.Class `json:"class"`             // of its reply to the SOA of the zone; iterate.Unknown if it was not asked
	Evidence []int         `json:"evidence,omitempty"`
}

// Answer is what one server of a zone says to one question.
type Answer struct {
	Question iterate.Question `json:"question"`
	Zone     dnsname.Name     `json:"zone"`
	Server   netip.Addr       `json:"server"`
	Subnet   netip.Prefix     `json:"subnet,omitzero"` // that was sent with it (RFC 7871)
	Class    iterate.Class    `json:"class"`
	Sets     []Set            `json:"sets,omitempty"`   // of the answer section, signatures left out
	Others   [][]Set          `json:"others,omitempty"` // what else it said when it was asked again, if it differs
	SOA      *SOA             `json:"soa,omitempty"`    // of a negative answer
	Serial   uint32           `json:"serial,omitempty"` // of the zone at this server
	Evidence []int            `json:"evidence,omitempty"`
}

// Outcome is what the question for one type led to.
type Outcome struct {
	Type   rr.Type       `json:"type"`
	Result iterate.Class `json:"result"` // answer, nodata, nxdomain, unknown
	End    dnsname.Name  `json:"end"`    // the last name of the chain
	Zone   dnsname.Name  `json:"zone"`   // that it is in
	Sets   []Set         `json:"sets,omitempty"`
	Plain  iterate.Class `json:"plain,omitempty"` // without QNAME minimisation, if that was tried
}

// Hop is a link of the chain of aliases.
type Hop struct {
	iterate.Link
	Servers int          `json:"servers"` // that were asked for it
	Agree   int          `json:"agree"`   // that have this target
	Domain  dnsname.Name `json:"domain"`  // the registrable domain of the target
}

// Denial is how a zone says that something does not exist.
type Denial struct {
	Zone     dnsname.Name  `json:"zone"`
	Asked    dnsname.Name  `json:"asked"`
	Class    iterate.Class `json:"class"` // nxdomain, nodata, no-soa
	TTL      uint32        `json:"ttl"`   // of the SOA that came with it
	Minimum  uint32        `json:"minimum"`
	Ranges   safeat.Ranges `json:"ranges,omitempty"`
	NSECTTL  uint32        `json:"nsecTTL,omitempty"`
	Covers   []string      `json:"covers,omitempty"` // the range of names of its NSEC record: from, to
	Evidence []int         `json:"evidence,omitempty"`
}

// Wildcard is what became of a name that nobody can have made.
type Wildcard struct {
	Asked    dnsname.Name  `json:"asked"`
	Class    iterate.Class `json:"class"`
	Same     bool          `json:"same"` // it has the same records as the name
	Sets     []Set         `json:"sets,omitempty"`
	Evidence []int         `json:"evidence,omitempty"`
}

// Near is a name like one that does not exist, which an authority was seen to have.
type Near struct {
	Name     dnsname.Name `json:"name"`
	How      string       `json:"how"` // it is like it
	Evidence []int        `json:"evidence,omitempty"`
}

// How names are like others.
const (
	NearSpelling = "spelling"
	NearDoubled  = "doubled" // it has the name of the zone in it twice
)

// Cache is one recursive resolver and what it holds.
type Cache struct {
	ID       string        `json:"id"`
	Operator string        `json:"operator"`
	Region   string        `json:"region,omitempty"`
	Addr     netip.Addr    `json:"addr"`
	Local    bool          `json:"local,omitempty"`   // the one that this machine uses
	Filters  bool          `json:"filters,omitempty"` // says of itself that it does
	NoVote   bool          `json:"noVote,omitempty"`  // its answers are shown and not counted: it filters, or they may be altered on the way
	Flush    string        `json:"flush,omitempty"`   // page on which its cache can be emptied
	Clamps   safeat.Clamps `json:"clamps,omitzero"`
	NotAsked string        `json:"notAsked,omitempty"` // why
	Samples  []Sample      `json:"samples,omitempty"`
}

// Sample is one answer of a cache.
type Sample struct {
	Question iterate.Question `json:"question"`
	At       time.Duration    `json:"at"`                // since Facts.At
	Recurse  bool             `json:"recurse"`           // RD was set
	NoCheck  bool             `json:"noCheck,omitempty"` // CD was set
	Rcode    string           `json:"rcode,omitempty"`
	Sets     []Set            `json:"sets,omitempty"`
	SOA      *SOA             `json:"soa,omitempty"`
	Errors   []iterate.EDE    `json:"errors,omitempty"`
	NSID     string           `json:"nsid,omitempty"`
	Evidence []int            `json:"evidence,omitempty"`
}

// PastDS is what the zone above had of the keys of a zone. Without Keys it had none.
type PastDS struct {
	TTL  uint32   `json:"ttl"`
	Keys []string `json:"keys,omitempty"` // each a DS in presentation form, sorted
}

// Past is what an earlier look saw.
type Past struct {
	Name      dnsname.Name   `json:"name"`
	At        time.Time      `json:"at"`               // when its last authority had answered
	Serial    uint32         `json:"serial,omitempty"` // the highest of the zone's servers
	NS        []dnsname.Name `json:"ns,omitempty"`
	DS        *PastDS        `json:"ds,omitempty"`     // nil: not known
	Sets      []Set          `json:"sets,omitempty"`   // of the name, by its authority
	Absent    []rr.Type      `json:"absent,omitempty"` // the authority had no such records
	Expires   time.Time      `json:"expires,omitzero"`
	Registrar string         `json:"registrar,omitempty"`
}
