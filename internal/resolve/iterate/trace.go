package iterate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Trace is the record of a walk. It is plain data without conclusions.
type Trace struct {
	Question Question  `json:"question"`
	Began    time.Time `json:"began"`
	DNSSEC   bool      `json:"dnssec"` // DO was set
	Result   Class     `json:"result"` // class of the last name of the chain: answer, nodata, nxdomain or unknown
	Chain    []Link    `json:"chain"`
	Zones    []Zone    `json:"zones"` // parents come before their children
	Notes    []Note    `json:"notes"`
	// Unfinished names the limits that kept the walk from being complete. Missing data is then unknown, not wrong.
	Unfinished []string   `json:"unfinished"`
	Exchanges  []Exchange `json:"exchanges"` // in the order of time
}

// Zone is a zone on the path, as its parent and the zone itself describe it.
type Zone struct {
	Name     dnsname.Name `json:"name"`
	Parent   dnsname.Name `json:"parent"`   // the zone whose servers referred to this one; empty for the root
	Quick    bool         `json:"quick"`    // only visited to find the address of a server: one usable reply was enough
	Hidden   bool         `json:"hidden"`   // it shares servers with its parent, which therefore send no referral
	ParentNS []NSSet      `json:"parentNS"` // several if the servers of the parent disagree
	ChildNS  []NSSet      `json:"childNS"`
	Hosts    []Host       `json:"hosts"` // the servers of all these sets
}

// NSSet is a set of NS records that several servers agree on.
type NSSet struct {
	NS   []dnsname.Name `json:"ns"`
	TTL  uint32         `json:"ttl"`
	From []netip.Addr   `json:"from"`
}

// Host is a name server and its addresses.
type Host struct {
	Name    dnsname.Name `json:"name"`
	Glue    []netip.Addr `json:"glue"`  // the addresses that the parent or the hints have
	Found   []netip.Addr `json:"found"` // the addresses that the authority for its name has
	Problem string       `json:"problem,omitempty"`
}

// Addrs returns all addresses of a host.
func (h Host) Addrs() []netip.Addr {
	return Union(h.Glue, h.Found)
}

// Link is one alias of an alias chain.
type Link struct {
	From dnsname.Name `json:"from"`
	To   dnsname.Name `json:"to"`
	Type string       `json:"type"` // CNAME or DNAME
	TTL  uint32       `json:"ttl"`
	Zone dnsname.Name `json:"zone"` // the zone that has the record
}

// The kinds of notes.
const (
	NoteENT       = "ENT-NXDOMAIN"     // a name is denied although names below it exist
	NoteDiffer    = "REFERRALS-DIFFER" // servers of one zone refer to different cuts or sets
	NoteAliasLoop = "ALIAS-LOOP"
	NoteAliasLong = "ALIAS-CHAIN"    // longer than a walk follows
	NoteAliases   = "ALIASES-DIFFER" // servers of one zone have different targets
	NoteNSLoop    = "NS-LOOP"        // the address of a server can only be found by querying that server
	NoteDepth     = "DEPTH"
)

// Note is an observation that no single exchange shows.
type Note struct {
	Kind    string       `json:"kind"`
	Zone    dnsname.Name `json:"zone"`
	Subject string       `json:"subject"`
}

// Exchange is one query and its result.
type Exchange struct {
	At        time.Duration `json:"at"` // time since the walk began
	RTT       time.Duration `json:"rtt"`
	Zone      dnsname.Name  `json:"zone"` // the zone that the server was queried for
	Server    netip.Addr    `json:"server"`
	Transport string        `json:"transport"`
	Question  Question      `json:"question"`
	// Try numbers the queries of one question to one server. It is 0 if no query was sent, for one of two reasons: the
	// reply was available from a query for another zone, or the budget was used up.
	Try   int    `json:"try"`
	EDNS  bool   `json:"edns"`
	Class Class  `json:"class"`
	Error string `json:"error,omitempty"`
	Reply []byte `json:"reply,omitempty"` // in wire format, with ID 0, packed again
	Size  int    `json:"size,omitempty"`  // bytes of the reply as the server sent it; 0: not known
}

// Message returns the reply, or nil if there is none.
func (e Exchange) Message() (*dns.Msg, error) {
	if len(e.Reply) == 0 {
		return nil, nil
	}
	m := new(dns.Msg)
	if err := m.Unpack(e.Reply); err != nil {
		return nil, fmt.Errorf("reply of %v to %v: %w", e.Server, e.Question, err)
	}
	return m, nil
}

// Compare orders exchanges by time. Exchanges of the same time have an order too, so that traces are reproducible.
func (e Exchange) Compare(f Exchange) int {
	return cmp.Or(cmp.Compare(e.At, f.At), e.Server.Compare(f.Server), e.Question.Name.Compare(f.Question.Name),
		cmp.Compare(e.Question.Type, f.Question.Type), cmp.Compare(e.Transport, f.Transport), cmp.Compare(e.Try, f.Try),
		e.Zone.Compare(f.Zone), slices.Compare(e.Reply, f.Reply))
}

// Health says how reliably a server could be reached.
type Health string

// The values of Health.
const (
	Up        Health = "up"
	Flaky     Health = "flaky" // some queries got no reply
	Down      Health = "down"  // no query got a reply
	Unchecked Health = "unchecked"
)

// Health summarizes the exchanges with a server.
func (t *Trace) Health(server netip.Addr) Health {
	sent, lost := 0, 0
	for _, e := range t.Exchanges {
		if e.Server != server || e.Class == Unknown || e.Try == 0 {
			continue
		}
		sent++
		if e.Class.Transport() {
			lost++
		}
	}
	return HealthOf(sent, lost)
}

// HealthOf returns the health of a server that did not reply to lost of sent queries.
func HealthOf(sent, lost int) Health {
	switch {
	case sent == 0:
		return Unchecked
	case sent == lost:
		return Down
	case lost > 0:
		return Flaky
	}
	return Up
}

// Zone returns a zone of the trace, or nil if it is not in the trace.
func (t *Trace) Zone(name dnsname.Name) *Zone {
	i := slices.IndexFunc(t.Zones, func(z Zone) bool { return z.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Zones[i]
}

// Question is the question of a query. As text: "example.org. A".
type Question struct {
	Name dnsname.Name
	Type rr.Type
}

func (q Question) String() string { return q.Name.String() + " " + q.Type.String() }

// MarshalText implements encoding.TextMarshaler.
func (q Question) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (q *Question) UnmarshalText(text []byte) (err error) {
	name, typ, _ := strings.Cut(string(text), " ")
	if q.Name, err = dnsname.Parse(name); err != nil {
		return err
	}
	q.Type, err = rr.ParseType(typ)
	return err
}

func (q Question) is(d dns.Question) bool {
	name, err := dnsname.Parse(d.Name)
	return err == nil && name == q.Name && d.Qtype == uint16(q.Type)
}
