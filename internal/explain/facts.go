package explain

import (
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// Facts holds everything that was learned about a name, with the evidence.
type Facts struct {
	Schema     string        `json:"schema"`
	Kind       Kind          `json:"kind"`
	Input      string        `json:"input"`             // the name as the user typed it
	Trimmed    []string      `json:"trimmed,omitempty"` // parts of Input that are not in the name: "https://", ":443"
	Name       dnsname.Name  `json:"name"`
	Types      []rr.Type     `json:"types,omitempty"`
	At         time.Time     `json:"at"` // time of the first query; all durations count from here
	Took       time.Duration `json:"took"`
	Vantage    Vantage       `json:"vantage"`
	Queries    int           `json:"queries"`
	Unfinished []string      `json:"unfinished,omitempty"` // limits that stopped the scan early; missing facts are unknown

	// Domain is the registrable domain, one label below its public suffix; zero if Name is itself a public suffix.
	Domain dnsname.Name `json:"domain"`
	// Owner is one label below the public or private suffix of Name. A private suffix, such as github.io, is a domain
	// below which a company gives names to its customers.
	Owner dnsname.Name `json:"owner,omitzero"`
	Zone  dnsname.Name `json:"zone,omitzero"` // the zone that contains the name; zero if it was not found
	// Registrations are those of Domain, and of the domains of its nameservers and alias targets.
	Registrations []registry.Registration `json:"registrations,omitempty"`

	Zones    []iterate.Zone `json:"zones,omitempty"` // from the root down; a zone follows its parent
	Servers  []Server       `json:"servers,omitempty"`
	Answers  []Answer       `json:"answers,omitempty"`
	Outcomes []Outcome      `json:"outcomes,omitempty"`
	Chain    []Hop          `json:"chain,omitempty"`
	Denials  []Denial       `json:"denials,omitempty"`
	Primary  *Primary       `json:"primary,omitempty"` // nil: not looked up
	Wildcard *Wildcard      `json:"wildcard,omitempty"`
	// delay before servers with an older serial were queried again; 0: none were
	Settled time.Duration   `json:"settled,omitempty"`
	Notes   []iterate.Note  `json:"notes,omitempty"`
	Anchors []secure.Anchor `json:"anchors,omitempty"` // the trust anchors to validate with
	Secure  []secure.Result `json:"-"`                 // the DNSSEC result for each queried type; set by Validate
	Near    []Near          `json:"near,omitempty"`    // similar names that exist, if this one does not
	Caches  []Cache         `json:"caches,omitempty"`
	Mail    []Lookup        `json:"mail,omitempty"` // records of mail and CAA at Zone, and what they refer to
	Service *Service        `json:"service,omitempty"`

	Expect    []Set              `json:"expect,omitempty"`    // records that the user expects
	PlanNS    []dnsname.Name     `json:"planNS,omitempty"`    // nameservers that the user plans to change to
	Change    bool               `json:"change,omitempty"`    // the user changed the records, or is about to
	Past      []Past             `json:"past,omitempty"`      // results of earlier scans, the latest first
	Exchanges []iterate.Exchange `json:"exchanges,omitempty"` // the evidence: all queries and replies, in order of time
}

// ZoneAt returns the zone with a name, or nil if the walk did not find it.
func (f *Facts) ZoneAt(name dnsname.Name) *iterate.Zone {
	i := slices.IndexFunc(f.Zones, func(z iterate.Zone) bool { return z.Name == name })
	if i < 0 || name.IsZero() {
		return nil
	}
	return &f.Zones[i]
}

// Vantage describes the machine and the network that the queries were sent from.
type Vantage struct {
	Name string `json:"name"` // "here", "lab"
	IPv4 Fact   `json:"ipv4"`
	IPv6 Fact   `json:"ipv6"`
	// address families without a route, such as "IPv6"; these were not queried
	NoRoute     []string      `json:"noRoute,omitempty"`
	Intercepted Probe         `json:"intercepted,omitzero"` // a device on the network path answers for every address
	Skew        time.Duration `json:"skew,omitempty"`       // how far the clock is ahead of the servers' clocks
	SkewKnown   bool          `json:"skewKnown,omitempty"`
	Private     bool          `json:"private,omitempty"` // the name space is internal: private addresses are right
	// prefixes of the operator's own translators, whose addresses count as the IPv4 addresses inside
	NAT64 []netip.Prefix `json:"nat64,omitempty"`
}

// Set is a record set as text.
type Set struct {
	Name dnsname.Name `json:"name"`
	Type rr.Type      `json:"type"`
	TTL  uint32       `json:"ttl"`            // the lowest TTL of its records
	Data []string     `json:"data"`           // in presentation form, sorted
	TTLs []uint32     `json:"ttls,omitempty"` // the TTLs, if they differ (RFC 2181 §5.2 forbids that)
}

// SOA is the content of an SOA record.
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
	Count   int          `json:"count,omitempty"` // number of SOA records in the answer, if not one
}

// Server is one address of a nameserver of one zone, with the results of the tests of its behaviour.
type Server struct {
	Zone   dnsname.Name   `json:"zone"`
	Host   dnsname.Name   `json:"host"`
	Addr   netip.Addr     `json:"addr"`
	Listed []string       `json:"listed"` // where the NS record is: "parent", "child", "plan"
	Class  iterate.Class  `json:"class"`  // class of the reply to the SOA query; iterate.Unknown if none was sent
	Health iterate.Health `json:"health"`
	Sent   int            `json:"sent"`
	Lost   int            `json:"lost"`
	RTT    time.Duration  `json:"rtt,omitempty"` // median
	SOA    *SOA           `json:"soa,omitempty"`
	Was    uint32         `json:"was,omitempty"` // its first serial, if the zone changed during the scan
	NSID   string         `json:"nsid,omitempty"`

	TCP         Probe `json:"tcp,omitzero"`         // replies over TCP
	EDNS        Probe `json:"edns,omitzero"`        // supports EDNS
	EDNSVersion Probe `json:"ednsVersion,omitzero"` // replies BADVERS to version 1
	EDNSOption  Probe `json:"ednsOption,omitzero"`  // ignores options that it does not know
	EDNSFlag    Probe `json:"ednsFlag,omitzero"`    // ignores flags that it does not know
	Truncation  Probe `json:"truncation,omitzero"`  // respects the UDP size of the query
	Case        Probe `json:"case,omitzero"`        // echoes the case of names
	Source      Probe `json:"source,omitzero"`      // replies from the address that was queried
	Types       Probe `json:"types,omitzero"`       // replies to types that it does not know, or that are new
	Recursion   Probe `json:"recursion,omitzero"`   // is an open resolver
	Transfer    Probe `json:"transfer,omitzero"`    // allows zone transfers to anyone
	Limits      Probe `json:"limits,omitzero"`      // was seen to limit the rate of replies
	NegativeSOA Probe `json:"negativeSOA,omitzero"` // negative answers contain the SOA record
	Referral    int   `json:"referral,omitempty"`   // size of its largest referral, in bytes
	Evidence    []int `json:"evidence,omitempty"`
}

// Primary is the primary server that the SOA record of the zone names (MNAME), and what a lookup of it found.
type Primary struct {
	Name    dnsname.Name `json:"name"`
	Addrs   []netip.Addr `json:"addrs,omitempty"`
	Alias   bool         `json:"alias,omitempty"`
	Missing bool         `json:"missing,omitempty"` // the name does not exist, or has no address
	// class of the reply to the SOA query; iterate.Unknown if none was sent
	Class    iterate.Class `json:"class"`
	Evidence []int         `json:"evidence,omitempty"`
}

// Answer is the reply of one server of a zone to one question.
type Answer struct {
	Question iterate.Question `json:"question"`
	Zone     dnsname.Name     `json:"zone"`
	Server   netip.Addr       `json:"server"`
	Subnet   netip.Prefix     `json:"subnet,omitzero"` // the client subnet sent with the query (RFC 7871)
	Class    iterate.Class    `json:"class"`
	Sets     []Set            `json:"sets,omitempty"`   // the answer section without signatures
	Others   [][]Set          `json:"others,omitempty"` // different answers to repeated queries
	SOA      *SOA             `json:"soa,omitempty"`    // the SOA record of a negative answer
	Serial   uint32           `json:"serial,omitempty"` // the serial of the zone at this server
	Evidence []int            `json:"evidence,omitempty"`
}

// Lookup is the result of looking up one question at a server that has the answer, following aliases.
type Lookup struct {
	Question iterate.Question `json:"question"`
	Result   iterate.Class    `json:"result"`         // answer, nodata, nxdomain, unknown
	Alias    dnsname.Name     `json:"alias,omitzero"` // target of the first alias
	TTL      uint32           `json:"ttl,omitempty"`  // the lowest TTL of the records
	Data     []string         `json:"data,omitempty"` // in presentation form, sorted
	Evidence []int            `json:"evidence,omitempty"`
}

// Outcome is the final result of the query for one type, after all aliases.
type Outcome struct {
	Type   rr.Type       `json:"type"`
	Result iterate.Class `json:"result"` // answer, nodata, nxdomain, unknown
	End    dnsname.Name  `json:"end"`    // the last name of the chain
	Zone   dnsname.Name  `json:"zone"`   // the zone that contains End
	Sets   []Set         `json:"sets,omitempty"`
	Plain  iterate.Class `json:"plain,omitempty"` // the result without QNAME minimisation, if it was tried
}

// Hop is one alias (CNAME or DNAME) of a chain.
type Hop struct {
	iterate.Link
	Servers int          `json:"servers"` // number of servers that were queried for it
	Agree   int          `json:"agree"`   // number of servers that have this target
	Domain  dnsname.Name `json:"domain"`  // the registrable domain of the target
}

// Denial is a negative answer of a zone: how it says that a name or type does not exist.
type Denial struct {
	Zone     dnsname.Name  `json:"zone"`
	Asked    dnsname.Name  `json:"asked"`
	Class    iterate.Class `json:"class"` // nxdomain, nodata, no-soa
	TTL      uint32        `json:"ttl"`   // TTL of the SOA record in the reply
	Minimum  uint32        `json:"minimum"`
	Ranges   safeat.Ranges `json:"ranges,omitempty"`
	NSECTTL  uint32        `json:"nsecTTL,omitempty"`
	Covers   []string      `json:"covers,omitempty"` // the two ends of the range in its NSEC record
	Evidence []int         `json:"evidence,omitempty"`
}

// Wildcard is the result for a random name, which can only exist through a wildcard record.
type Wildcard struct {
	Asked    dnsname.Name  `json:"asked"`
	Class    iterate.Class `json:"class"`
	Same     bool          `json:"same"` // the random name has the same records as Name
	Sets     []Set         `json:"sets,omitempty"`
	Evidence []int         `json:"evidence,omitempty"`
}

// Near is an existing name that is similar to the queried name, which does not exist. Reports suggest it to the user.
type Near struct {
	Name     dnsname.Name `json:"name"`
	How      string       `json:"how"` // in which respect it is similar: NearSpelling or NearDoubled
	Evidence []int        `json:"evidence,omitempty"`
}

// The values of Near.How.
const (
	NearSpelling = "spelling"
	NearDoubled  = "doubled" // the name contains the name of the zone twice
)

// Cache is one recursive resolver and its answers.
type Cache struct {
	ID       string     `json:"id"`
	Operator string     `json:"operator"`
	Region   string     `json:"region,omitempty"`
	Addr     netip.Addr `json:"addr"`
	Local    bool       `json:"local,omitempty"`   // the resolver of this machine
	Filters  bool       `json:"filters,omitempty"` // its operator documents that it filters
	// NoVote excludes its answers from the verdict: it filters, or a device on the path may change them. They are still
	// shown.
	NoVote   bool          `json:"noVote,omitempty"`
	Flush    string        `json:"flush,omitempty"` // web page that can empty its cache
	Clamps   safeat.Clamps `json:"clamps,omitzero"`
	NotAsked string        `json:"notAsked,omitempty"` // the reason why it was not queried
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

// PastDS is the DS record set that the parent zone had at an earlier scan. Without Keys, it had none.
type PastDS struct {
	TTL  uint32   `json:"ttl"`
	Keys []string `json:"keys,omitempty"` // DS records in presentation form, sorted
}

// Past is the result of an earlier scan, reduced to what later scans compare with.
type Past struct {
	Name      dnsname.Name   `json:"name"`
	At        time.Time      `json:"at"`               // time of the last authoritative answer
	Serial    uint32         `json:"serial,omitempty"` // the highest serial of the zone's servers
	NS        []dnsname.Name `json:"ns,omitempty"`
	DS        *PastDS        `json:"ds,omitempty"`     // nil: not known
	Sets      []Set          `json:"sets,omitempty"`   // the authoritative records of the name
	Absent    []rr.Type      `json:"absent,omitempty"` // types that the authority denied
	Expires   time.Time      `json:"expires,omitzero"`
	Registrar string         `json:"registrar,omitempty"`

	Ownership *service.Ownership `json:"ownership,omitempty"` // of a service; nil: it needs no proof
	Proofs    string             `json:"proofs,omitempty"`    // the proofs that Ownership is about
}
